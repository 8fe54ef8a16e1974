"""Sums over bodies: R86:3.2, momentum, mass centre, and their conservation."""

import numpy as np
import pytest
from hypothesis import given, settings
from multibody_cases import close, forest, phi, seeds, state

import kfdyn.multibody as mb
from kfdyn.errors import ModelError, ShapeError
from kfdyn.spatial import inertia_parameters


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_kinetic_energy_and_momentum_from_the_links(seed):
    """R86:3.2: 1/2 sum V* M V, rotors added; momentum is sum phi M V."""
    system, rng = forest(seed)
    q, v = state(system, rng)
    t = mb.link_terms(system, q, v)
    bodies = 0.5 * np.einsum("ki,kij,kj->", t.velocity, t.inertia, t.velocity)
    close(mb.kinetic_energy(system, q, v), bodies + 0.5 * system.layout.armature @ v**2, 1e-12)
    com = mb.center_of_mass(system, q)
    h = np.einsum("kij,kj->ki", t.inertia, t.velocity)
    close(mb.momentum(system, q, v), sum(phi(p) @ x for p, x in zip(t.position, h)), 1e-12)
    close(mb.centroidal_momentum(system, q, v), sum(phi(p - com) @ x for p, x in zip(t.position, h)), 1e-12)


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_linear_momentum_is_mass_times_the_velocity_of_the_mass_centre(seed):
    """Through frames put at the bodies' mass centres and their Jacobians: no shared sums."""
    system, rng = forest(seed)
    parameters = [inertia_parameters(b.inertia) for b in system.bodies]
    frames = {f"c{k}": mb.Frame(b.name, position=parameters[k].com) for k, b in enumerate(system.bodies)}
    system = mb.System(system.bodies, system.gravity, frames)
    q, v = state(system, rng)
    m = [float(p.mass) for p in parameters]
    com = sum(m[k] * mb.frame_pose(system, q, f"c{k}").position for k in range(len(m))) / sum(m)
    close(mb.center_of_mass(system, q), com, 1e-12)
    close(mb.potential_energy(system, q), -sum(m) * system.gravity @ com, 1e-12)
    linear = sum(m[k] * mb.jacobian(system, q, f"c{k}")[3:] @ v for k in range(len(m)))
    close(mb.centroidal_momentum(system, q, v)[3:], linear, 1e-12)


def test_energy_is_the_same_wherever_the_world_is():
    """A free flyer moved and turned as a whole: energy and centroidal momentum follow."""
    system = mb.models.free_flyer()
    rng = np.random.default_rng(0)
    q, v = state(system, rng)
    moved = q.copy()
    moved[:3] += [1e3, -2e3, 5e2]
    close(mb.kinetic_energy(system, moved, v), mb.kinetic_energy(system, q, v), 1e-13)
    # about the mass centre of all, found a kilometre away: three digits go
    close(mb.centroidal_momentum(system, moved, v), mb.centroidal_momentum(system, q, v), 1e-10)


def test_gravity_can_be_given():
    system = mb.models.pendulum(mass=2.0, length=0.5)
    close(mb.potential_energy(system, [0.0]), -2 * 9.81 * 0.5)
    close(mb.potential_energy(system, [np.pi / 2], gravity=(3, 0, 0)), 3.0)
    close(mb.potential_energy(system, [0.0], gravity=np.zeros((4, 3))), np.zeros(4))
    with pytest.raises(ShapeError, match="broadcast"):
        mb.potential_energy(system, np.zeros((3, 1)), gravity=np.zeros((4, 3)))


def test_batches():
    system, rng = forest(2)
    q, v = state(system, rng, (5, 2))
    assert mb.kinetic_energy(system, q, v).shape == (5, 2)
    assert mb.kinetic_energy(system, q[0, 0], v).shape == (5, 2)
    assert mb.kinetic_energy(system, q, v[0, 0]).shape == (5, 2)
    assert mb.potential_energy(system, q).shape == (5, 2)
    assert mb.center_of_mass(system, q).shape == (5, 2, 3)
    assert mb.momentum(system, q, v).shape == mb.centroidal_momentum(system, q, v).shape == (5, 2, 6)
    close(mb.kinetic_energy(system, q[0, 0], v)[1, 1], mb.kinetic_energy(system, q[0, 0], v[1, 1]), 0)


def test_rotors_carry_energy_but_no_momentum():
    bare, geared = mb.models.pendulum(), mb.models.pendulum(armature=0.5)
    close(mb.kinetic_energy(geared, [0.3], [2.0]) - mb.kinetic_energy(bare, [0.3], [2.0]), 1.0)
    close(mb.momentum(geared, [0.3], [2.0]), mb.momentum(bare, [0.3], [2.0]), 0)


def test_no_mass_no_mass_centre():
    ghost = mb.System([mb.Body("ghost", np.zeros((6, 6)), mb.Hinge.free(), armature=1.0)], name="ghost")
    q, v = ghost.neutral(), np.ones(6)
    close(mb.kinetic_energy(ghost, q, v), 3.0)
    assert mb.potential_energy(ghost, q) == 0
    for call in (lambda: mb.center_of_mass(ghost, q), lambda: mb.centroidal_momentum(ghost, q, v)):
        with pytest.raises(ModelError, match="'ghost' has no mass"):
            call()
