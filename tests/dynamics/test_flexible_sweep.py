"""The compiled sweep of flexible systems: against the engine and itself run plain, rows, lanes, noise, lost rank."""

import numpy as np
import pytest
from flexible_cases import compiled, inertia, random_flexible, random_tree, state, tree

import kfdyn as kf
from kfdyn.dynamics.forward import FORWARD
from kfdyn.multibody.flexible.packed_flexible import flexible_model_of


def close(got, wanted, digits=1e-10):
    np.testing.assert_allclose(got, wanted, rtol=digits, atol=digits * np.abs(wanted).max())


@pytest.mark.parametrize("seed", range(12))
def test_it_is_the_engine_on_random_trees(seed):
    system = random_tree(seed)
    rng = np.random.default_rng(seed)
    q, v = state(system, seed)
    tau, force, g = rng.normal(size=system.nv), rng.normal(size=(system.n_bodies, 6)), rng.normal(size=3)
    got = compiled(FORWARD, system, q, v, tau, force, g)
    wanted = kf.forward_dynamics(system, q, v, tau, force, g, method="engine")
    cond = np.linalg.cond(kf.mass_matrix(system, q))
    close(got, wanted, max(1e-10, 64 * np.finfo(float).eps * cond))
    close(kf.inverse_dynamics(system, q, v, got, force, g), tau, 1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_compiled_and_plain_are_one_text(seed):
    system = random_tree(seed)
    q, v = state(system, seed)
    plain, tau = np.empty(system.nv), np.ones(system.nv)
    entry = FORWARD.serving(system).entry
    assert entry.plain(flexible_model_of(system), q, v, tau, None, system.gravity, plain) == 1
    close(kf.forward_dynamics(system, q, v, tau), plain, 1e-11)


def test_rows_and_lanes_are_their_states():
    system = tree(1)
    rng = np.random.default_rng(1)
    q = np.stack([system.random_configuration(rng) for _ in range(37)])
    v, tau = rng.normal(size=(2, 37, system.nv))
    together = kf.forward_dynamics(system, q, v, tau)
    for i in (0, 7, 36):
        np.testing.assert_array_equal(together[i], kf.forward_dynamics(system, q[i], v[i], tau[i]))
    still = kf.forward_dynamics(system, q, None, tau[0])
    close(still[5], kf.forward_dynamics(system, q[5], np.zeros(system.nv), tau[0]))


def test_noise_of_an_implicit_step_is_in_the_sweep():
    """(𝓜 + R) a = tau − c, dense."""
    system = tree(2)
    q, v = state(system, 2)
    K, C = system.elasticity
    noise = 1e-2 * K + 0.1 * C + np.diag(np.where(system.elastic, 0.0, 0.3))
    tau = np.ones(system.nv)
    wanted = np.linalg.solve(kf.mass_matrix(system, q) + noise, tau - kf.bias_forces(system, q, v))
    noisy = system.with_noise(noise)
    close(compiled(FORWARD, noisy, q, v, tau, None, None), wanted, 1e-9)
    close(kf.forward_dynamics(noisy, q, v, tau, method="engine"), wanted, 1e-9)
    mixed = system.with_noise(noise + 0.01)  # couples hinges with modes: the engine's affair
    assert FORWARD.serving(mixed) is None
    wanted = np.linalg.solve(kf.mass_matrix(mixed, q), tau - kf.bias_forces(system, q, v))
    close(kf.forward_dynamics(mixed, q, v, tau), wanted, 1e-9)


def test_inverse_mass_matrix_by_unit_forces():
    system = tree(3)
    rng = np.random.default_rng(3)
    q = np.stack([system.random_configuration(rng) for _ in range(4)]).reshape(2, 2, -1)
    close(kf.mass_matrix_inverse(system, q), np.linalg.inv(kf.mass_matrix(system, q)), 1e-9)
    assert abs(kf.bias_forces(system.slack, q, None, gravity=np.zeros(3))).max() < 1e-12


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize("what", ["length", "mass", "stiffness"])
def test_units_do_not_matter(what, scale):
    """The same robot in other units: hinge accelerations and modes in the same ones."""

    def arm(length=1.0, mass=1.0, stiffness=1.0):
        rng = np.random.default_rng(7)
        first = random_flexible(rng, "first", hinge=kf.Hinge.revolute([0.2, 1, 0.3]))
        first = kf.FlexibleBody(
            "first", mass * first.mass, length * first.points, length * first.shapes, stiffness * first.stiffness, 0.0,
            first.turns, length * first.bends, hinge=first.rigid.hinge,
        )  # fmt: skip
        J = np.diag([length] * 3 + [1.0] * 3)
        tip = kf.Body("tip", mass * J @ inertia(rng, 0.5) @ J, kf.Hinge.ball(), "first", position=first.points[3])
        return kf.FlexibleSystem([first, tip], gravity=(0, 0, -9.81 * length))

    one, other = arm(stiffness=0.0 + 1.0), arm(**{what: scale}, **({"stiffness": scale} if what == "mass" else {}))
    if what == "length":
        other = arm(length=scale, stiffness=scale**2)
    q, v = state(one, 1)
    tau = np.zeros(one.nv)
    if what == "stiffness":  # time in other units
        factor = np.sqrt(scale)
        slow = kf.forward_dynamics(one, q, v, tau, gravity=(0, 0, 0))
        close(kf.forward_dynamics(other, q, factor * v, tau, gravity=(0, 0, 0)), scale * slow, 1e-8)
    else:
        close(kf.forward_dynamics(other, q, v, tau), kf.forward_dynamics(one, q, v, tau), 1e-8)


def test_a_hinge_that_moves_nothing_is_named():
    rod = kf.beam("rod", 1.0, 1.0, bending=(0.0, 5.0), modes=1)
    tip = kf.Body("tip", np.zeros((6, 6)), kf.Hinge.revolute([0, 0, 1]), "rod", position=[1.0, 0, 0])
    system = kf.FlexibleSystem([rod, tip])
    with pytest.raises(kf.errors.SingularError, match="moves no mass"):
        kf.forward_dynamics(system, system.neutral(), None, np.zeros(system.nv))


def test_a_quaternion_that_is_none_is_named():
    system = tree(0)
    q, v = state(system, 0)
    q[system.q_slice("second")] *= 1.1
    with pytest.raises(kf.errors.ModelError, match="quaternion"):
        kf.forward_dynamics(system, q, v, np.zeros(system.nv))
