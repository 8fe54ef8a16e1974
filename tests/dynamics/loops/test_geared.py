"""The compiled sweeps of coupled systems: beside the embedded filter, alone as in a batch, plain; what is refused."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_coupled import close, coupled_tree

import kfdyn as kf
from kfdyn.dynamics.forward import FORWARD
from kfdyn.dynamics.inverse import INVERSE
from kfdyn.dynamics.mass_matrix import MASS_MATRIX
from kfdyn.dynamics.mass_matrix_inverse import MASS_MATRIX_INVERSE
from kfdyn.errors import KfdynError, SingularError
from kfdyn.multibody.calls.packed_model import gears_of
from kfdyn.sweeps import Checks
from kfdyn.sweeps.specialise import Special


def calls(system, q, v, u, force):
    """Every kernel, what it takes beside q, and what the public functions say."""
    g = system.gravity
    return {
        FORWARD: ((v, u, force, g), kf.forward_dynamics(system, q, v, u, force, method="embedding")),
        INVERSE: ((v, u, force, g), kf.inverse_dynamics(system, q, v, u, force)),
        MASS_MATRIX: ((), kf.mass_matrix(system, q)),
        MASS_MATRIX_INVERSE: ((), kf.mass_matrix_inverse(system, q)),
    }


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1e-6, 1.0, 1e6]))
def test_beside_the_embedded_filter_in_every_way_of_running(seed, mass):
    system, rng = coupled_tree(seed)
    if system is None or not system.nv:
        return
    heavy = [
        dataclasses.replace(b, inertia=mass * b.inertia, armature=mass * b.armature) for b in system.open_tree.bodies
    ]
    system = kf.System(heavy, couplings=system.couplings)
    q = np.stack([system.random_configuration(rng) for _ in range(9)])
    v, u = rng.normal(size=(2, 9, system.nv))
    force = rng.normal(size=(9, system.n_bodies, 6))
    M = kf.mass_matrix(system, q)
    D = np.sqrt(np.einsum("bii->bi", M))
    condition = np.linalg.cond(M / (D[:, :, None] * D[:, None, :])).max()
    np.testing.assert_array_equal(M, M.mT)
    for kernel, (more, expected) in calls(system, q, v, u, force).items():
        (got,), fine = kernel.attempt(system, (q, *more))
        assert fine
        close(got, expected, 1e-10, 100 * condition)
        (one,), _ = kernel.attempt(system, (q[4], *(x if x is system.gravity else x[4] for x in more)))
        np.testing.assert_array_equal(one, got[4])
        plain = np.empty_like(got)
        assert kernel.variants["geared"].entry.plain(gears_of(system), q, *more, plain) == 1
        close(plain, got, 1e-12, 100 * condition)


def test_both_members_of_a_pair_count():
    """Two hinges that share one coordinate: their product counts twice."""
    arm = kf.models.chain(2)
    gear = kf.System(arm.bodies, couplings=[kf.Coupling(arm.hinge_names, [1.0, -2.0])])
    q = np.array([0.4])
    M = kf.mass_matrix(arm, gear.expand(q))
    X = np.array([1.0, -2.0])
    np.testing.assert_allclose(kf.mass_matrix(gear, q), [[X @ M @ X]], rtol=1e-14)


def test_a_hinge_may_move_nothing_by_itself():
    """The follower has neither mass nor rotor: its own variance is 0, that of its coordinate is not."""
    turn = kf.Hinge.revolute([0, 0, 1])
    bodies = [kf.Body("arm", np.eye(6), turn), kf.Body("hand", np.zeros((6, 6)), turn, "arm")]
    system = kf.System(bodies, couplings=[kf.Coupling([b.hinge_name for b in bodies], [1.0, 3.0])])
    np.testing.assert_allclose(kf.forward_dynamics(system, np.zeros(1), np.zeros(1), np.ones(1)), [1.0])
    assert FORWARD.attempt(system, (np.zeros(1), np.zeros(1), np.ones(1), None, system.gravity))[1]


def test_what_is_wrong_gets_words():
    bodies = [
        kf.Body("base", np.eye(6), kf.Hinge.free()),
        kf.Body("a", np.eye(6), kf.Hinge.revolute([0, 0, 1]), "base"),
        kf.Body("b", np.eye(6), kf.Hinge.revolute([0, 1, 0]), "base"),
    ]
    system = kf.System(bodies, couplings=[kf.Coupling([b.hinge_name for b in bodies[1:]], [1.0, 2.0])])
    q = system.neutral()
    assert kf.mass_matrix(system, q).shape == (7, 7)
    for i, match in ((3, "quaternion"), (7, "q")):
        wrong = np.stack([q, q])
        wrong[1, i] = 0.5 if i == 3 else np.nan
        for states in (wrong, wrong[1]):
            for f in (kf.mass_matrix, kf.mass_matrix_inverse, kf.bias_forces):
                with pytest.raises(KfdynError, match=match):
                    f(system, states) if f is not kf.bias_forces else f(system, states, np.zeros(7))
    with pytest.raises(KfdynError):
        kf.forward_dynamics(system, q, np.zeros(6), np.zeros(7))


@pytest.mark.skipif(Checks.on, reason="where every index is checked no code is compiled")
def test_specialised_systems_keep_their_couplings():
    """Straight-line code in which X is known: the same answers, and the same words where there are none."""
    tree = kf.models.chain(5, seed=3)
    system = tree.with_couplings([kf.Coupling(tree.hinge_names[1:4], [[1.0, 0.0], [-2.0, 0.5], [0.0, 1.0]], 0.3)])
    own, rng = kf.specialise(system), np.random.default_rng(0)
    q, v, u = rng.normal(size=(3, 12, system.nv))
    for call, args in (
        (kf.forward_dynamics, (q, v, u)),
        (kf.inverse_dynamics, (q, v, u)),
        (kf.mass_matrix, (q,)),
        (kf.mass_matrix_inverse, (q,)),
        (kf.inverse_dynamics_derivatives, (q, v, u)),
    ):
        for one, other in zip(np.atleast_1d(call(own, *args)), np.atleast_1d(call(system, *args))):
            close(one, other, 1e-12)
    made = {entry.name for entry in gears_of(own).specials._made.values() if isinstance(entry, Special)}
    assert made == {
        "geared_forward_dynamics",
        "geared_inverse_dynamics",
        "geared_mass_matrix",
        "geared_mass_matrix_inverse",
        "geared_inverse_dynamics_derivatives",
    }
    turn = kf.Hinge.revolute([0, 0, 1])
    bodies = [kf.Body("arm", np.eye(6), turn), *(kf.Body(n, np.zeros((6, 6)), turn, "arm") for n in ("a", "b"))]
    light = kf.specialise(kf.System(bodies, couplings=[kf.Coupling(["a", "b"], [1.0, 3.0])]))
    with pytest.raises(SingularError, match="'a'"):
        kf.forward_dynamics(light, *np.zeros((3, 9, 2)))
