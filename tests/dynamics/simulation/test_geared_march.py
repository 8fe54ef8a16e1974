"""Fixed steps of systems with couplings in compiled code: against Runge and Kutta in NumPy, and steps of Python's."""

from dataclasses import replace

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.dynamics.simulation import compiled_stepper, fixed_steps
from kfdyn.errors import KfdynError, SingularError

METHODS = ("rk4", "euler", "implicit")
SPRUNG = ("revolute", "prismatic", "ball", "helical")


def geared(seed, hinges=None, bodies=16):
    """A random tree with a gear and a differential, springs and dampers at all hinges that take them."""
    rng, kinds = np.random.default_rng(seed), {} if hinges is None else {"hinges": hinges}
    trees = (kf.models.random_tree(bodies, seed=seed + 10 * i, **kinds) for i in range(100))
    tree = next(tree for tree in trees if len(single(tree.bodies)) >= 5)
    bodies = [
        replace(b, damping=rng.uniform(0.1, 0.5), stiffness=rng.uniform(1, 3) if b.hinge.kind in SPRUNG else 0.0)
        for b in tree.bodies
    ]
    one = single(bodies)
    couplings = [
        kf.Coupling(one[:2], [1.0, -2.5], [0.0, 0.4]),
        kf.Coupling(one[2:5], [[1.0, 0.3], [0.5, -1.0], [0.0, 2.0]], 0.1),
    ]
    system = kf.System(bodies, couplings=couplings)
    q = np.stack([system.random_configuration(rng) for _ in range(5)])
    return system, q, rng.normal(size=(5, system.nv)), rng


def single(bodies):
    """Names of the hinges that can be coupled."""
    return [b.hinge_name for b in bodies if b.hinge.nv == 1 and b.hinge.kind != "custom"]


def laws(system, q, rng):
    """No torque, a constant one, feedback that compiled code knows, and a function of Python's."""
    tau = rng.normal(size=system.nv)
    kp = np.full(system.nv, 3.0)
    for body in system.bodies:
        if body.hinge.kind == "custom":  # which may not get to where it is pulled
            kp[system.v_slice(body.hinge_name)] = 0.0
    v, tau_ref = rng.normal(size=(2, 2, system.nv))
    law = kf.LinearFeedback(system, kp=kp, kd=1.0, q=q[:2], v=v, tau=tau_ref, t=[0.0, 0.03])
    return {"none": None, "constant": tau, "feedback": law, "function": lambda t, q, v: tau - (1 + t) * v}


@pytest.mark.parametrize("seed", [1, 4])
@pytest.mark.parametrize("method", METHODS)
def test_beside_steps_of_pythons(method, seed, monkeypatch):
    """All kinds of hinges, with external forces; a motion gets the same bits alone."""
    system, q, v, rng = geared(seed)
    t, more = np.array([0.0, 0.01, 0.03, 0.04]), {"method": method, "damping": True, "stiffness": True, "substeps": 2}
    more["external_forces"] = rng.normal(size=(system.n_bodies, 6))
    for name, law in laws(system, q, rng).items():
        found = kf.simulate(system, q, v, t, law, **more)
        alone = kf.simulate(system, q[3], v[3], t, law, **more)
        with monkeypatch.context() as patched:
            patched.setattr(fixed_steps.MARCH, "serving", lambda system: None)
            expected = kf.simulate(system, q, v, t, law, **more)
        for what in ("q", "v", "work", "tau"):
            one, other = getattr(found, what), getattr(expected, what)
            size = max(np.abs(other).max(), 1e-300)
            assert np.abs(one - other).max() <= 1e-10 * size, (name, what)
            np.testing.assert_array_equal(getattr(alone, what), one[:, 3])


def test_no_step_is_pythons(monkeypatch):
    def refuse(*_):
        raise AssertionError("this is a step of Python's")

    monkeypatch.setattr(fixed_steps, "step_by_step", refuse)
    system, q, v, rng = geared(1)
    for method in METHODS:
        for law in laws(system, q, rng).values():
            kf.simulate(system, q, v, [0.0, 1e-3, 2e-3], law, method=method, damping=True, stiffness=True)


def test_runge_and_kutta_in_numpy():
    """Hinges with coordinates: the classical method on (q, v, work), with X*𝓜X of the open tree solved by NumPy."""
    system, q, v, rng = geared(2, hinges=("revolute", "prismatic", "universal", "planar", "helical"))
    tree, X, e = system.open_tree, system.expansion(), system._expansion
    force, tau, rest = rng.normal(size=(system.n_bodies, 6)), rng.normal(size=system.nv), rng.normal(size=system.nq)

    def rate(state):
        q, v = state[: system.nq], state[system.nq : -1]
        every, slack = e.positions(q), e.positions(rest)
        M = X.T @ kf.mass_matrix(tree, every, method="columns") @ X
        c = X.T @ kf.bias_forces(tree, every, X @ v, force)
        passive = X.T @ (tree.stiffness * (slack - every) - tree.damping * (X @ v))
        power = tau @ v - (X @ v) @ (tree.damping * (X @ v))
        for k, name in enumerate(tree.body_names):
            power += force[k] @ kf.jacobian(tree, every, name) @ (X @ v)
        return np.concatenate([v, np.linalg.solve(M, tau + passive - c), [power]])

    h, state = 1e-2, np.concatenate([q[0], v[0], [0.0]])
    expected = [state]
    for _ in range(5):
        k1 = rate(state)
        k2 = rate(state + 0.5 * h * k1)
        k3 = rate(state + 0.5 * h * k2)
        k4 = rate(state + h * k3)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        expected.append(state)
    t, more = h * np.arange(6), {"damping": True, "stiffness": True, "rest": rest, "external_forces": force}
    found = kf.simulate(system, q[0], v[0], t, tau, **more)
    by_law = kf.simulate(system, q[0], v[0], t, lambda t, q, v: tau, **more)
    for one in (found, by_law):
        states = np.concatenate([one.q, one.v, one.work[:, None]], axis=1)
        np.testing.assert_allclose(states, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_energy_is_kept():
    """With balls, free bodies and gears, without dampers: what is lost is the method's, of order four."""
    system, q, v, _ = geared(3)
    drift = []
    for substeps in (1, 2):
        run = kf.simulate(system, q, v, np.linspace(0.0, 0.5, 101), stiffness=True, substeps=substeps)
        drift.append(np.abs(run.energy - run.energy[0]).max())
    assert drift[1] < drift[0] / 12 < 1e-4 * np.abs(run.energy).max()


def test_gears_stay_engaged_and_a_damper_of_a_follower_counts_with_its_ratio():
    """One coordinate, no gravity: I v̇ = −r² b v, with I and the damper both behind the gear."""
    turn = kf.Hinge.revolute([0, 0, 1])
    arm = kf.Body("arm", np.diag([1, 1, 2.0, 1, 1, 1]), turn)
    rotor = kf.Body("rotor", np.diag([1, 1, 0.01, 0.1, 0.1, 0.1]), turn, damping=0.02)
    system = kf.System(
        [arm, rotor], couplings=[kf.Coupling(["arm", "rotor"], [1.0, -10.0], [0.0, 0.3])], gravity=[0, 0, 0]
    )
    t = np.linspace(0.0, 1.0, 101)
    run = kf.simulate(system, [0.2], [3.0], t, damping=True)
    np.testing.assert_allclose(run.v[:, 0], 3.0 * np.exp(-(100 * 0.02 / 3.0) * t), rtol=1e-9)
    np.testing.assert_allclose(run.work, 1.5 * (run.v[:, 0] ** 2 - 9.0), atol=1e-9)


def test_what_fails_is_told_with_time_and_motion():
    arm = kf.models.chain(3)
    system = arm.with_couplings([kf.Coupling(arm.hinge_names[:2], [1.0, 2.0])])
    v = np.zeros((5, 2))
    v[3] = 1.0  # the others rest
    with pytest.raises(KfdynError, match=r"became infinite or NaN at t = 0\.\d* s of motion \[3\]"):
        kf.simulate(system, np.zeros((5, 2)), v, np.linspace(0, 1, 101), damping=1e4, gravity=[0.0, 0.0, 0.0])
    turn = kf.Hinge.revolute([0, 0, 1])
    bodies = [kf.Body("arm", np.eye(6), turn), *(kf.Body(n, np.zeros((6, 6)), turn, "arm") for n in ("a", "b"))]
    light = kf.System(bodies, couplings=[kf.Coupling(["a", "b"], [1.0, 3.0])])
    for law in (None, lambda t, q, v: -v):
        with pytest.raises(SingularError, match=r"'a'.*in the step at t = 0 s"):
            kf.simulate(light, np.zeros(2), np.zeros(2), [0.0, 0.1], law)


def test_a_pulled_custom_hinge_is_refused_as_in_a_tree():
    """It cannot get to its reference at constant velocity, with a gear beside it or without."""
    slide = kf.Hinge.custom([[0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0]])
    turn = kf.Hinge.revolute([0, 1, 0])
    bodies = [kf.Body("odd", np.eye(6), slide), *(kf.Body(n, np.eye(6), turn, "odd") for n in ("a", "b"))]
    for system in (kf.System(bodies), kf.System(bodies, couplings=[kf.Coupling(["a", "b"], [1.0, 2.0])])):
        turn, slide = np.eye(system.nv)[:2]
        there = kf.integrate(system, kf.integrate(system, system.neutral(), slide), turn)
        law = kf.LinearFeedback(system, kp=1.0, q=there)
        assert not law.reaches_all
        with pytest.raises(KfdynError, match="hinge map does not allow"):
            kf.simulate(system, system.neutral(), np.zeros(system.nv), [0.0, 1e-3], law)
        free = np.ones(system.nv)
        free[:2] = 0.0
        assert kf.LinearFeedback(system, kp=free).reaches_all


def test_a_piece_without_an_answer_is_marched_step_by_step(monkeypatch):
    """What was not marched was returned as it lay in memory, for rows that had not failed before."""
    system, q, v, _ = geared(1)
    t = np.linspace(0.0, 0.004, 5)
    expected = kf.simulate(system, q, v, t)
    calls, real = [], compiled_stepper.MARCH

    def failing(*given, **more):
        calls.append(given)
        return real(*given, **more) if len(calls) == 1 else 0

    monkeypatch.setattr(compiled_stepper, "_PATIENCE", 1)
    monkeypatch.setattr(compiled_stepper, "MARCH", failing)
    found = kf.simulate(system, q, v, t)
    assert len(calls) == 2
    for name in ("q", "v", "work"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=0, atol=1e-10)
