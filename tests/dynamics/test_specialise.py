"""Code for one robot: the same answers as the sweep that serves all robots, to rounding, and really its own code."""

import copy
import importlib.metadata
import pickle
import warnings

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.dynamics.simulation.motion_arguments import with_armature
from kfdyn.errors import ModelError, SingularError
from kfdyn.multibody.calls.packed_model import model_of
from kfdyn.sweeps import Checks

ROWS = 19  # two passes and a part of one, in lanes of four or eight


def states(system, rows=ROWS, seed=0, right=True):
    """Random states; the first is neutral, the second has right angles (where a gimbal would lock)."""
    rng = np.random.default_rng(seed)
    q = np.stack([system.random_configuration(rng) for _ in range(rows)])
    q[0] = system.neutral()
    q[1] = kf.integrate(system, q[0], np.full(system.nv, np.pi / 2)) if right else q[1]
    return (q, *rng.normal(size=(2, rows, system.nv)))


def answers(system, q, v, u, forces=None, gravity=None):
    """What every call with a special form says, by name."""
    made = {
        "forward": kf.forward_dynamics(system, q, v, u, forces, gravity),
        "inverse": kf.inverse_dynamics(system, q, v, u, forces, gravity),
        "bias": kf.bias_forces(system, q, v),
        "mass": kf.mass_matrix(system, q),
        "mass inverse": kf.mass_matrix_inverse(system, q),
    }
    if forces is None:
        of = kf.forward_dynamics_derivatives(system, q, v, u, gravity)
        made |= {"da_dq": of.da_dq, "da_dv": of.da_dv}
        of = kf.inverse_dynamics_derivatives(system, q, v, u, gravity)
        made |= {"dtau_dq": of.dtau_dq, "dtau_dv": of.dtau_dv}
    return made


def assert_same(own, system, *given, **more):
    """1e-13 of each row's largest entry for sums of inertias, of the condition number where 𝓜 is inverted."""
    condition = np.linalg.cond(kf.mass_matrix(system, given[0])) if system.nv else 1.0
    expected = answers(system, *given, **more)
    for name, found in answers(own, *given, **more).items():
        wanted, axes = expected[name], tuple(range(1, expected[name].ndim))
        size = np.abs(wanted).max(axis=axes, initial=0.0)
        if name in ("forward", "mass inverse", "da_dq", "da_dv"):
            size = np.maximum(size, np.abs(expected["mass inverse"]).max(axis=(1, 2), initial=0.0)) * condition
        gap = np.abs(found - wanted).max(axis=axes, initial=0.0)
        assert (gap <= 1e-13 * np.maximum(size, 1.0)).all(), (name, (gap / np.maximum(size, 1.0)).max())


def used(system):
    """Names of the recursions that have been compiled for a system."""
    return {entry.name for entry, _ in model_of(system.open_tree).specials._made}


ALL = {
    "forward_dynamics", "inverse_dynamics", "mass_matrix", "mass_matrix_inverse", "forward_dynamics_derivatives",
    "inverse_dynamics_derivatives",
}  # fmt: skip


@pytest.mark.parametrize("name", ["pendulum", "double_pendulum", "puma560", "stanford_arm", "free_flyer"])
def test_built_in_models(name):
    system = getattr(kf.models, name)()
    own = kf.specialise(system)
    assert own.is_specialised and not system.is_specialised and "specialised" in repr(own)
    assert_same(own, system, *states(system))
    assert used(own) == (ALL if system.nv < 10 else {"forward_dynamics"})
    assert model_of(system).specials is None


@pytest.mark.parametrize(("n", "seed"), [(1, 0), (2, 5), (3, 1), (4, 8)])
def test_random_trees_with_forces_and_gravity(n, seed):
    system = kf.models.random_tree(n, seed, armature=seed % 2 == 1)
    q, v, u = states(system, seed=seed, right=False)
    rng = np.random.default_rng(seed)
    forces, gravity = rng.normal(size=(ROWS, n, 6)), rng.normal(size=(ROWS, 3))
    assert_same(kf.specialise(system), system, q, v, u, forces=forces, gravity=gravity)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_more_random_trees(seed):
    system = kf.models.random_tree(1 + seed % 10, seed, armature=seed % 2 == 1)
    assert_same(kf.specialise(system), system, *states(system, seed=seed, right=False))


def test_bits_do_not_depend_on_the_batch():
    own = kf.specialise(kf.models.puma560())
    q, v, u = states(own, 700)
    whole = kf.forward_dynamics(own, q, v, u)
    for part in (slice(0, 1), slice(3, 8), slice(5, 14), slice(0, 699)):
        np.testing.assert_array_equal(kf.forward_dynamics(own, q[part], v[part], u[part]), whole[part])


def test_one_state_takes_the_code_that_serves_all_robots():
    """However it is given; and a batch takes its own code, from lists, too."""
    system = kf.models.puma560()
    own = kf.specialise(system)
    q, v, u = states(own, 5, right=False)
    for name, one in answers(own, q[4], v[4], u[4]).items():
        np.testing.assert_array_equal(one, answers(system, q[4], v[4], u[4])[name], err_msg=name)
        np.testing.assert_array_equal(one, answers(own, *(x[4].tolist() for x in (q, v, u)))[name], err_msg=name)
    for call in (kf.bias_forces, lambda s, q, v, **k: kf.inverse_dynamics(s, q, v, u[4], **k)):
        np.testing.assert_array_equal(call(own, q[4], v[4], out=np.empty(6)), call(system, q[4], v[4]))
    listed = answers(own, *(x.tolist() for x in (q, v, u)))
    for name, many in answers(own, q, v, u).items():
        np.testing.assert_array_equal(many, listed[name], err_msg=name)


def test_large_robots_keep_the_sweep_that_serves_all():
    system = kf.models.humanoid()
    own = kf.specialise(system)
    q, v, u = states(system)
    np.testing.assert_array_equal(kf.forward_dynamics(own, q, v, u), kf.forward_dynamics(system, q, v, u))
    assert not used(own)


def test_a_change_of_one_number_is_another_robot():
    """Code on disk has the robot's numbers in its name: nothing stale answers for another mass or rotor."""
    arm = kf.models.stanford_arm()
    q, v, u = states(arm)
    first = kf.specialise(arm)
    before = kf.forward_dynamics(first, q, v, u)
    heavier = with_armature(arm, arm.armature + np.array([0, 0, 0, 0, 0, 1e-3]))
    after = kf.forward_dynamics(kf.specialise(heavier), q, v, u)
    assert not np.allclose(before, after, rtol=1e-6)
    np.testing.assert_allclose(after, kf.forward_dynamics(heavier, q, v, u), rtol=1e-9)
    derived = with_armature(first, arm.armature + 1.0)
    assert not derived.is_specialised
    np.testing.assert_allclose(kf.inverse_dynamics(derived, q, 0 * v, u, gravity=[0, 0, 0]),
                               np.einsum("bij,bj->bi", kf.mass_matrix(arm, q), u) + u, rtol=1e-9)  # fmt: skip
    weightless = kf.System(arm.bodies, gravity=(0, 0, 0))
    np.testing.assert_allclose(
        kf.bias_forces(kf.specialise(weightless), q, v), kf.bias_forces(arm, q, v, gravity=[0, 0, 0]), rtol=1e-9
    )


def test_what_is_made_of_it_stays_special():
    own = kf.specialise(kf.models.stanford_arm())
    q, v, u = states(own)
    expected = kf.forward_dynamics(own, q, v, u)
    for twin in (pickle.loads(pickle.dumps(own)), copy.copy(own), copy.deepcopy(own)):
        assert twin.is_specialised and twin is not own
        np.testing.assert_array_equal(kf.forward_dynamics(twin, q, v, u), expected)
        assert used(twin) == {"forward_dynamics"}
    assert kf.specialise(own) is own
    held = own.with_loops([kf.Loop(own.body_names[-1], None, rows=(5,))])
    assert held.is_specialised and held.open_tree is own
    plain = kf.models.stanford_arm().with_loops(held.loops)
    assert kf.specialise(plain).is_specialised and kf.specialise(plain).loops == plain.loops
    for closed in (held, kf.specialise(plain)):
        np.testing.assert_allclose(
            kf.forward_dynamics(closed, q, v, u), kf.forward_dynamics(plain, q, v, u), rtol=0, atol=1e-7
        )
    gear = kf.Coupling(own.hinge_names[:2], [[1.0], [2.0]])
    coupled = kf.System(kf.models.stanford_arm().bodies, couplings=[gear])
    x = np.random.default_rng(0).normal(size=(ROWS, coupled.nv))
    np.testing.assert_allclose(
        kf.mass_matrix(kf.specialise(coupled), x), kf.mass_matrix(coupled, x), rtol=0, atol=1e-12 * 30
    )


def test_bad_numbers_and_hinges_without_inertia_are_named_as_ever():
    arm = kf.models.chain(3)
    tool = kf.Body("tool", np.zeros((6, 6)), kf.Hinge.revolute([0, 0, 1]), arm.body_names[-1])
    light = kf.specialise(kf.System([*arm.bodies, tool]))
    q, v, u = states(light)
    with pytest.raises(SingularError, match="hinge 'tool'"):
        kf.forward_dynamics(light, q, v, u)
    with pytest.raises(ModelError, match="v has entries that are not finite"):
        kf.forward_dynamics(kf.specialise(arm), q[:, :3], v[:, :3] + np.nan, u[:, :3])
    with pytest.raises(ModelError, match=r"kf\.load reads one"):
        kf.specialise("arm.urdf")


def test_checked_calls_run_the_recursion_itself(monkeypatch):
    own = kf.specialise(kf.models.double_pendulum())
    monkeypatch.setattr(Checks, "on", True)
    kf.mass_matrix(own, states(own, 3)[0])
    assert not used(own)


@pytest.mark.slow
@pytest.mark.parametrize("floating_base", [False, True], ids=["fixed", "floating"])
def test_public_robots(floating_base):
    """Every public robot small enough for code of its own: forward dynamics, and the rest where it has a form."""
    from kfdyn.io import read

    files, seen = importlib.metadata.files("example-robot-data") or [], 0
    for file in sorted(f for f in files if f.name.endswith(".urdf")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                path = str(file.locate())
                system = read(path, floating_base=floating_base, indefinite_inertia="warn", mimic="free").system
            except ModelError:  # nothing moves, or a template without links
                continue
        if system.is_tree and 0 < system.nv <= 24:
            try:
                kf.forward_dynamics(system, *states(system, 2, right=False))
            except SingularError:
                continue
            q, v, u = states(system, right=False)
            condition = np.linalg.cond(kf.mass_matrix(system, q))[:, None]
            wanted, own = kf.forward_dynamics(system, q, v, u), kf.specialise(system)
            size = np.maximum(np.abs(wanted), 1.0).max(axis=1, keepdims=True) * condition
            assert (np.abs(kf.forward_dynamics(own, q, v, u) - wanted) <= 1e-13 * size).all(), file.name
            assert used(own) == {"forward_dynamics"}, file.name
            if system.nv <= 7:
                assert_same(own, system, q, v, u)
            seen += 1
    assert seen > 15
