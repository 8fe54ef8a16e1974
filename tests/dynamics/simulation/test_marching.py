"""Motions in one compiled loop: against steps of Python's, closed forms and MuJoCo; what fails is named."""

import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from multibody_cases import close, forest, seeds, state

import kfdyn as kf
from kfdyn.dynamics.simulation import compiled_stepper as marching
from kfdyn.dynamics.simulation.fixed_steps import step_by_step
from kfdyn.dynamics.simulation.motion_arguments import motion
from kfdyn.dynamics.simulation.simulate import simulate
from kfdyn.errors import KfdynError, ModelError, ShapeError, SingularError
from kfdyn.multibody.parts.hinge import Coordinates
from kfdyn.sweeps.jit import Checks

METHODS = ("rk4", "euler", "implicit")


def of_poses(system):
    """Which dofs are of free and custom hinges."""
    return np.repeat(system.layout.coordinates == Coordinates.POSE, np.diff(system.layout.v_start))


def laws(system, q, rng):
    """None, a constant, feedback, a dense one along a moving reference, and commands that are held."""
    nv, pull, knots = system.nv, ~of_poses(system), np.array([0.0, 0.007, 0.03])
    way = rng.normal(size=nv) * pull
    path = np.stack([kf.integrate(system, q, s * way) for s in (0.0, 0.2, 0.5)], axis=-2)
    samples = {"v": rng.normal(size=(3, nv)), "tau": rng.normal(size=(3, nv)), "t": knots}
    return [
        None,
        rng.normal(size=nv),
        kf.LinearFeedback(system, 2.0 * pull, 0.5, q=kf.integrate(system, q, way)),
        kf.LinearFeedback(system, rng.normal(size=(nv, nv)) * pull, 0.3, q=path, **samples),
        kf.LinearFeedback(system, kd=0.5, held=True, **samples),
    ]


@settings(max_examples=12, deadline=None)
@given(seeds, st.sampled_from(METHODS), st.sampled_from([(), (1,), (3,), (2, 2)]), st.integers(0, 4))
def test_the_loop_takes_the_steps_that_python_takes(seed, method, lead, which):
    """All hinges, springs, dampers and forces on, steps of two sizes; the work, too."""
    system, rng = forest(seed)
    q, v = state(system, rng, lead)
    law, t = laws(system, q, rng)[which], np.array([0.0, 0.01, 0.02, 0.035])
    spring, rest = np.where(of_poses(system), 0.0, 2.0), system.random_configuration(rng)
    force, g = rng.normal(size=(*lead, system.n_bodies, 6)), rng.normal(size=(*lead, 3))
    options = {"damping": 0.3, "stiffness": spring, "rest": rest, "external_forces": force, "gravity": g}
    driven = motion(system, law, 0.3, spring, rest, force, g)
    expected = step_by_step(driven, q, v, t, method, 3, lambda _: None)
    moved = simulate(system, q, v, t, law, method=method, substeps=3, **options)
    for mine, theirs in zip((moved.q, moved.v, moved.work), expected):
        close(mine, theirs, 1e-12)
    if which != 4:  # what is held is asked for once a step, what is a function at every stage
        asked = simulate(system, q, v, t, lambda *at: driven.driving(*at), method=method, substeps=3, **options)
        for name in ("q", "v", "work", "tau"):
            close(getattr(moved, name), getattr(asked, name), 1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_every_index_is_within_bounds(method, monkeypatch):
    system, rng = kf.models.random_tree(6, 3), np.random.default_rng(1)
    q, v = state(system, rng, (2,))
    for law in laws(system, q, rng):
        options = {"method": method, "damping": 0.2}
        compiled = simulate(system, q, v, [0.0, 0.01, 0.02], law, **options)
        asked = simulate(system, q, v, [0.0, 0.01, 0.02], lambda t, q, v: -v, **options)
        with monkeypatch.context() as patch:
            patch.setattr(Checks, "on", True)
            patch.setattr(marching.ONE_STAGE, "one", marching.ONE_STAGE._first)
            close(simulate(system, q, v, [0.0, 0.01, 0.02], law, **options).q, compiled.q, 1e-13)
            close(simulate(system, q, v, [0.0, 0.01, 0.02], lambda t, q, v: -v, **options).q, asked.q, 1e-13)


def slider(mass=2.0):
    body = kf.Body("cart", np.diag([1.0, 1.0, 1.0, mass, mass, mass]), kf.Hinge.prismatic([1, 0, 0]))
    return kf.System([body], gravity=[0, 0, 0])


def test_a_spring_and_a_damper_by_their_formula():
    """m x'' = kp (1 − x) + kd (0 − x'): overdamped, by its two exponentials; RK4 at h = 1 ms."""
    law, t = kf.LinearFeedback(slider(), kp=24.0, kd=14.0, q=[1.0]), np.linspace(0, 1, 1001)
    moved = simulate(slider(), [0.0], [0.0], t, law)
    slow, fast = 3.0, 4.0  # roots of 2 r² − 14 r + 24
    expected = 1 - (fast * np.exp(-slow * t) - slow * np.exp(-fast * t)) / (fast - slow)
    close(moved.q[:, 0], expected, 1e-11)
    close(moved.tau[:, 0], 24 * (1 - moved.q[:, 0]) - 14 * moved.v[:, 0], 1e-13)


@pytest.mark.parametrize("held", [True, False])
def test_forces_given_as_samples(held):
    """Constant or linear between samples, motions are parabolas or cubics, which RK4 follows exactly."""
    rng = np.random.default_rng(0)
    t = np.cumsum(rng.uniform(0.1, 0.3, 9))
    force, n = rng.normal(size=9), np.diff(t)
    x, v = [0.2], [0.3]
    for i in range(8):
        a, b = force[i] / 2.0, (0.0 if held else (force[i + 1] - force[i]) / n[i] / 2.0)
        x.append(x[-1] + v[-1] * n[i] + a * n[i] ** 2 / 2 + b * n[i] ** 3 / 6)
        v.append(v[-1] + a * n[i] + b * n[i] ** 2 / 2)
    law = kf.LinearFeedback(slider(), tau=force[:, None], t=t, held=held)
    for substeps in (1, 3):
        moved = simulate(slider(), [0.2], [0.3], t, law, substeps=substeps)
        close(moved.q[:, 0], x, 1e-13)
        close(moved.v[:, 0], v, 1e-13)
    close(law(t, moved.q, moved.v)[:, 0], force, 1e-15)
    after = simulate(slider(), x[-1:], v[-1:], t[-1] + np.array([0.0, 1.0]), law)
    close(after.v[-1], v[-1] + force[-1] / 2.0, 1e-13)  # the last sample stays


def test_mujoco_takes_the_same_steps_under_servos(tmp_path):
    """Position servos with damping on an arm, by semi-implicit Euler: 200 steps."""
    mujoco = pytest.importorskip("mujoco")
    file = tmp_path / "arm.xml"
    file.write_text(
        """<mujoco><option timestep="0.005" integrator="Euler"><flag eulerdamp="disable"/></option><worldbody>
        <body pos="0 0 1"><joint name="a" axis="0 1 0"/><inertial pos="0.2 0 0" mass="2" diaginertia="0.1 0.2 0.3"/>
        <body pos="0.4 0 0"><joint name="b" axis="0 0 1"/><inertial pos="0.1 0.1 0" mass="1" diaginertia="0.1 0.1 0.1"/>
        </body></body></worldbody><actuator><position joint="a" kp="40" kv="3"/><position joint="b" kp="20" kv="2"/>
        </actuator></mujoco>"""
    )
    model = mujoco.MjModel.from_xml_path(str(file))
    data, system = mujoco.MjData(model), kf.load(file)
    data.qpos, data.qvel, data.ctrl = [0.3, -0.2], [0.5, 1.0], [0.7, 0.4]
    law = kf.LinearFeedback(system, [40.0, 20.0], [3.0, 2.0], q=[0.7, 0.4])
    moved = simulate(system, [0.3, -0.2], [0.5, 1.0], 0.005 * np.arange(201), law, method="euler")
    for _ in range(200):
        mujoco.mj_step(model, data)
    close(np.concatenate([moved.q[-1], moved.v[-1]]), np.concatenate([data.qpos, data.qvel]), 1e-10)


def test_a_motion_does_not_depend_on_the_batch_it_is_in():
    system, rng = kf.models.humanoid(), np.random.default_rng(2)
    q, v = state(system, rng, (37,))
    together = simulate(system, q, v, [0.0, 1e-3, 2e-3], np.zeros(system.nv))
    for i in (0, 17, 36):
        alone = simulate(system, q[i], v[i], [0.0, 1e-3, 2e-3])
        assert np.array_equal(alone.q, together.q[:, i]) and np.array_equal(alone.v, together.v[:, i])


@pytest.mark.parametrize("method", ["rk4", "euler"])
def test_long_motions_go_in_pieces(method, monkeypatch):
    system, t = kf.models.double_pendulum(), np.linspace(0, 1, 101)
    whole = simulate(system, [1.0, 0.5], [0.0, 0.0], t, [0.1, 0.2], method=method)
    monkeypatch.setattr(marching, "_PATIENCE", 26)
    pieces = simulate(system, [1.0, 0.5], [0.0, 0.0], t, [0.1, 0.2], method=method)
    assert np.array_equal(whole.q, pieces.q)
    close(pieces.work, whole.work, 1e-14)


@pytest.mark.parametrize(("method", "stages"), [("rk4", 4), ("euler", 1), ("implicit", 1)])
def test_a_function_is_called_once_a_stage(method, stages):
    asked = []

    def law(t, q, v):
        asked.append((t, q, v))
        return -v

    moved = simulate(kf.models.double_pendulum(), [1.0, 0.5], [0.0, 0.0], [0.0, 0.1, 0.2], law, method=method)
    assert len(asked) == 2 * stages + 1  # and once where it ends
    assert [t for t, _, _ in asked[::stages]] == [0.0, 0.1, 0.2]
    kept = np.array([q for _, q, _ in asked[::stages]])
    assert np.array_equal(kept, moved.q)  # what the law was given is not written over later
    assert np.array_equal(moved.tau, -moved.v)


def gimbal():
    """Two axes that coincide where the middle angle is 0, and nothing but the last body has inertia."""
    bodies = [
        kf.Body("outer", np.zeros((6, 6)), kf.Hinge.revolute([0, 0, 1])),
        kf.Body("inner", np.zeros((6, 6)), kf.Hinge.revolute([1, 0, 0]), "outer"),
        kf.Body("rod", np.diag([0.1, 0.2, 0.3, 1.0, 1.0, 1.0]), kf.Hinge.revolute([0, 0, 1]), "inner"),
    ]
    return kf.System(bodies, gravity=[0, 0, 0])


def test_a_motion_that_meets_a_hinge_without_inertia_is_named_with_its_step():
    system, q = gimbal(), np.array([[0.1, 0.5, 0.2], [0.1, 0.0, 0.2], [0.1, 0.7, 0.2]])
    assert np.isfinite(simulate(system, q[::2], np.zeros((2, 3)), [0.3, 0.4], np.ones(3)).q).all()
    with pytest.raises(SingularError, match=r"hinge 'outer'.*gimbal.*in the step at t = 0.3 s of motion \[1\]"):
        simulate(system, q, np.zeros((3, 3)), [0.3, 0.4], np.ones(3))
    with pytest.raises(SingularError, match=r"hinge 'outer' \(at q\[1\]\).*gimbal.*in the step at t = 0.3 s"):
        simulate(system, q, np.zeros((3, 3)), [0.3, 0.4], lambda t, q, v: np.ones(3))


def test_the_motion_of_a_batch_that_explodes_is_named():
    system, v = kf.models.double_pendulum(), np.zeros((4, 2))
    v[2] = 1e5
    with pytest.raises(KfdynError, match=r"became infinite or NaN at t = .* of motion \[2\]: rk4 is unstable"):
        simulate(system, np.ones((4, 2)), v, np.linspace(0, 0.5, 51))


def test_what_the_loop_has_no_answer_for_goes_on_step_by_step(monkeypatch):
    """Rounding that looks like a hinge without inertia is no reason to stop: the engine decides."""
    system, t = kf.models.double_pendulum(), np.linspace(0, 1, 21)
    law = kf.LinearFeedback(system, kd=0.1, tau=np.arange(6.0).reshape(3, 2))
    q, v, tau = np.arange(6.0).reshape(3, 2), np.ones((3, 2)), np.arange(6.0).reshape(3, 2)
    whole = marching.March.whole
    for torque in (tau, law):
        expected = simulate(system, q, v, t, torque)

        def doubtful(self, *args):
            marched = whole(self, *args)
            marched.reached[1] = 7
            for x in marched[:3]:
                x[8:, 1] = np.nan
            return marched

        with monkeypatch.context() as patch:
            patch.setattr(marching.March, "whole", doubtful)
            moved = simulate(system, q, v, t, torque)
        close(moved.q, expected.q, 1e-11)
        close(moved.work, expected.work, 1e-11)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"kp": np.ones(3)}, ShapeError, r"kp must be a scalar or have shape \(2,\)"),
        ({"kd": np.inf}, ModelError, "kd has entries that are not finite"),
        ({"q": [0.0]}, ShapeError, "q must have shape"),
        ({"tau": [np.nan, 0.0]}, ModelError, "tau has entries that are not finite"),
        ({"t": [0.0, 0.0]}, ModelError, "times .* that increase"),
        ({"t": [0.0, 1.0], "tau": [[1.0, 2.0]]}, ShapeError, r"tau of a LinearFeedback with 2 times must have shape"),
    ],
)
def test_laws_that_are_none(change, error, match):
    with pytest.raises(error, match=match):
        kf.LinearFeedback(kf.models.double_pendulum(), **change)


def test_a_law_takes_lists_and_says_what_is_wrong_with_them():
    system = kf.models.double_pendulum()
    for law in (
        kf.LinearFeedback(system, 5.0, 1.0, q=[0.3, -0.2], tau=[1.0, 2.0]),
        kf.LinearFeedback(system, 5.0, 1.0, q=[[0.3, -0.2], [0.5, 0.1]], tau=[[1.0, 2.0]] * 2, t=[0.0, 1.0]),
    ):
        np.testing.assert_array_equal(
            law(0.5, [0.1, 0.2], [1, 2]), law(0.5, np.array([0.1, 0.2]), np.array([1.0, 2.0]))
        )
        with pytest.raises(ShapeError, match=r"q of a LinearFeedback must have shape \(\.\.\., 2\), got \(3,\)"):
            law(0.5, [0.1, 0.2, 0.3], [1.0, 2.0])
        with pytest.raises(ShapeError, match="v must be an array of real numbers, got None"):
            law(0.5, [0.1, 0.2], None)
    with pytest.raises(ModelError, match=r"system must be a kfdyn\.System, got None"):
        kf.LinearFeedback(None)


def test_laws_that_do_not_fit_the_motion():
    system, t = kf.models.double_pendulum(), [0.0, 0.1]
    with pytest.raises(ShapeError, match="law for 1 coordinates"):
        simulate(system, [0.0, 0.0], [0.0, 0.0], t, kf.LinearFeedback(kf.models.pendulum()))
    for law in (np.zeros((3, 2)), kf.LinearFeedback(system, tau=np.zeros((3, 2)))):
        with pytest.raises(ShapeError, match=r"leading axes \(3,\).*must broadcast"):
            simulate(system, [0.0, 0.0], [0.0, 0.0], t, law)


def test_a_custom_hinge_is_pulled_only_where_it_can_go():
    """A hinge map of two screws that do not commute: no straight way to most poses."""
    rng = np.random.default_rng(0)
    custom = kf.Hinge.custom(rng.normal(size=(2, 6)))
    system = kf.System([kf.Body("box", np.eye(6), custom)])
    q = kf.integrate(system, kf.integrate(system, system.neutral(), [1.0, 0.0]), [0.0, 1.0])
    with pytest.raises(ModelError, match=r"does not allow at constant velocity.*in the step at t = 0"):
        simulate(system, q, [0.0, 0.0], [0.0, 0.1], kf.LinearFeedback(system, kp=1.0))
    moved = simulate(system, q, [1.0, 0.0], [0.0, 0.1], kf.LinearFeedback(system, kd=1.0))
    assert np.isfinite(moved.q).all()


@pytest.mark.parametrize("method", ["rk4", "symplectic", "DOP853"])
def test_a_law_works_with_every_method_and_on_loops(method):
    """With a coupling the law is asked for at every stage; the adaptive solver is the judge."""
    system = kf.models.double_pendulum()
    law = kf.LinearFeedback(system, 5.0, 1.0, q=[0.3, -0.2])
    t = np.linspace(0, 0.2, 3)
    moved = simulate(system, [1.0, 0.5], [0.0, 0.0], t, law, method=method, substeps=50 if method != "DOP853" else 1)
    expected = simulate(system, [1.0, 0.5], [0.0, 0.0], t, lambda t, q, v: law(t, q, v), method="DOP853")
    close(moved.q, expected.q, 1e-5 if method == "symplectic" else 1e-8)
    geared = kf.System(system.bodies, couplings=[kf.Coupling(system.hinge_names, [[1.0], [2.0]])])
    law = kf.LinearFeedback(geared, 5.0, 1.0, q=[0.3])
    if method == "rk4":
        one = simulate(geared, [1.0], [0.0], t, law, substeps=20)
        close(one.q, simulate(geared, [1.0], [0.0], t, lambda t, q, v: law(t, q, v), substeps=20).q, 1e-13)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("lead", [(), (3,)])
def test_a_march_in_pieces_has_the_same_bits(method, lead, monkeypatch):
    """Within one interval, too: knots, times and steps that rounding puts on either side of each other."""
    system, rng = kf.models.double_pendulum(), np.random.default_rng(5)
    q, v = rng.normal(size=(2, *lead, 2))
    times, march, calls = np.array([0.0, 0.01, 0.03, 0.1]), marching.MARCH, []

    def counted(*args, **more):
        calls.append(args)
        return march(*args, **more)

    for law in laws(system, np.zeros(2), rng):
        found = []
        for patience in (10**9, 50, 1):
            monkeypatch.setattr(marching, "_PATIENCE", patience)
            monkeypatch.setattr(marching, "MARCH", counted)
            calls.clear()
            found.append(simulate(system, q, v, times, law, method=method, substeps=30, damping=0.3))
        assert len(calls) == 90  # every step is a call of its own, between which Python looks for signals
        for other in found[1:]:
            for name in ("q", "v", "work", "tau"):
                assert getattr(other, name).tobytes() == getattr(found[0], name).tobytes(), name


@pytest.mark.parametrize("geared", [False, True])
def test_other_threads_run_while_one_motion_is_marched(geared, monkeypatch):
    """No thread is made to give way here: another one runs only if the march lets go of the interpreter."""
    system = kf.models.double_pendulum()
    if geared:
        system = system.with_couplings([kf.Coupling(system.hinge_names, [1.0, -1.0])])
    march, begin, ran, calls = marching.MARCH, threading.Event(), threading.Event(), []

    def other():
        begin.wait()
        ran.set()

    def watched(*args, **more):
        begin.set()
        for _ in range(3000):  # the system need not wake the other one at once
            status = march(*args, **more)
            if ran.is_set():
                break
        calls.append(ran.is_set())
        return status

    simulate(system, np.zeros(system.nq), np.zeros(system.nv), [0.0, 0.1], substeps=9)  # compiled
    monkeypatch.setattr(marching, "MARCH", watched)
    thread, before = threading.Thread(target=other), sys.getswitchinterval()
    thread.start()
    sys.setswitchinterval(1e4)
    try:
        simulate(system, np.zeros(system.nq), np.zeros(system.nv), [0.0, 0.1], substeps=3000)
    finally:
        sys.setswitchinterval(before)
        begin.set()
        thread.join()
    assert calls == [True]
