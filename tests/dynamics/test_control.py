"""R86:12-CTRL: closed loops whose error is a linear oscillator, known in closed form."""

from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from multibody_cases import close, seeds, state
from scipy.linalg import expm

import kfdyn as kf
import kfdyn.multibody as mb
from kfdyn.dynamics import bias_forces, control, forward_dynamics, mass_matrix
from kfdyn.dynamics.control import computed_torque, operational_space_control
from kfdyn.dynamics.simulation.simulate import simulate
from kfdyn.errors import KfdynError, ModelError, ShapeError, SingularError
from kfdyn.multibody.models.random_bodies import KINDS
from kfdyn.spatial import rotation_vector_to_matrix
from kfdyn.sweeps.jit import Checks

TIGHT = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13}
COORDINATES = tuple(kind for kind in KINDS if kind not in ("custom", "ball", "free"))


def oscillator(e, de, kp, kd, t):
    """e(t) of e'' + kd e' + kp e = 0 for matrices kp, kd."""
    n = len(e)
    A = np.block([[np.zeros((n, n)), np.eye(n)], [-kp, -kd]])
    return np.array([(expm(A * s) @ np.concatenate([e, de]))[:n] for s in t])


def spd(rng, n, size):
    A = rng.normal(size=(n, n))
    return size * (A @ A.T / n + np.eye(n))


@settings(max_examples=25, deadline=None)
@given(seeds)
def test_computed_torque_gives_the_acceleration_it_was_designed_for(seed):
    rng = np.random.default_rng(seed)
    system = mb.models.random_tree(6, seed, hinges=COORDINATES)
    (q, v), (q_d, v_d), a_d = state(system, rng), state(system, rng), rng.normal(size=system.nv)
    kp, kd = spd(rng, system.nv, 20.0), rng.uniform(1, 9, system.nv)
    f_ext, g = rng.normal(size=(system.n_bodies, 6)), rng.normal(size=3)
    tau = computed_torque(system, q, v, q_d, v_d, a_d, kp, kd, f_ext, g)
    wanted = a_d + kd * (v_d - v) + kp @ (q_d - q)
    close(tau, mass_matrix(system, q) @ wanted + bias_forces(system, q, v, external_forces=f_ext, gravity=g), 1e-10)
    close(forward_dynamics(system, q, v, tau, f_ext, g), wanted, 1e-10, size=np.linalg.cond(mass_matrix(system, q)))


def test_tracking_error_of_the_puma_is_the_designed_oscillator():
    """A moving reference, coupled gains: the error follows expm to 1e-10 for as long as it lives."""
    arm, rng = mb.models.puma560(), np.random.default_rng(0)
    kp, kd = spd(rng, 6, 60.0), spd(rng, 6, 10.0)
    size, phase = rng.uniform(0.2, 0.6, 6), rng.uniform(0, 6, 6)

    def reference(t):
        t = np.asarray(t)[..., None]
        return size * np.sin(2 * t + phase), 2 * size * np.cos(2 * t + phase), -4 * size * np.sin(2 * t + phase)

    def law(t, q, v):
        return computed_torque(arm, q, v, *reference(t), kp, kd)

    q, v = reference(0.0)[0] + rng.normal(size=6, scale=0.3), rng.normal(size=6)
    t = np.linspace(0, 0.3, 4)
    moved = simulate(arm, q, v, t, law, **TIGHT)
    q_d, v_d, _ = reference(t)
    close(q_d - moved.q, oscillator(q_d[0] - q, v_d[0] - v, kp, kd, t), 1e-10)


def test_computed_torque_on_ball_and_free_hinges_comes_home():
    """Small errors: the linear design holds to their square; for six time constants."""
    system = mb.models.random_tree(3, 4, hinges=("free", "ball", "revolute"))
    rng = np.random.default_rng(1)
    q_d, zero = system.random_configuration(rng), np.zeros(system.nv)
    q = mb.integrate(system, q_d, 1e-3 * rng.normal(size=system.nv))
    law = lambda t, q, v: computed_torque(system, q, v, q_d, zero, zero, 100.0, 20.0)  # noqa: E731
    t = np.linspace(0, 0.6, 6)
    moved = simulate(system, q, zero, t, law, substeps=10)
    start = mb.difference(system, q, q_d)
    designed = ((1 + 10 * t) * np.exp(-10 * t))[:, None] * start
    # errors of 1e-3, so 1e-6 of coupling; RK4 at 10 ms adds 1e-6 of the error itself
    close(mb.difference(system, moved.q, np.broadcast_to(q_d, moved.q.shape)), designed, 3e-6)


def oscillating_target(t, center):
    turn = rotation_vector_to_matrix(np.array([0.2, 0.1, 0.3]) * np.sin(t))
    p = center + np.array([0.05, -0.08, 0.06]) * np.sin(3 * t)
    velocity = np.concatenate(
        [np.array([0.2, 0.1, 0.3]) * np.cos(t), 3 * np.array([0.05, -0.08, 0.06]) * np.cos(3 * t)]
    )
    acceleration = np.concatenate(
        [np.array([0.2, 0.1, 0.3]) * -np.sin(t), -9 * np.array([0.05, -0.08, 0.06]) * np.sin(3 * t)]
    )
    return turn, p, velocity, acceleration


def test_position_error_of_the_tool_is_the_designed_oscillator_whatever_the_posture_does():
    """The tool follows expm to 1e-10 although a posture torque pulls the other three dofs about."""
    arm, rng = mb.models.puma560(), np.random.default_rng(2)
    q, v = np.array([0.3, -0.7, 0.4, 0.2, 0.6, -0.1]), 0.3 * rng.normal(size=6)
    kp, kd = spd(rng, 3, 60.0), spd(rng, 3, 10.0)
    center = mb.frame_pose(arm, q, "link_6").position + rng.normal(size=3, scale=0.03)

    def law(t, q, v):
        turn, p, velocity, acceleration = oscillating_target(t, center)
        pull = -5.0 * np.sin(q) - v
        return operational_space_control(
            arm, q, v, "link_6", mb.Pose(turn, p), kp, kd, velocity, acceleration, pull, axes=(3, 4, 5)
        )

    t = np.linspace(0, 0.2, 3)
    moved = simulate(arm, q, v, t, law, **TIGHT)
    p_d = np.array([oscillating_target(s, center)[1] for s in t])
    error = p_d - mb.frame_pose(arm, moved.q, "link_6").position
    rate = oscillating_target(0.0, center)[2][3:] - mb.frame_velocity(arm, q, v, "link_6")[3:]
    close(error, oscillator(error[0], rate, kp, kd, t), 1e-10)


@settings(max_examples=15, deadline=None)
@given(seeds)
def test_operational_space_acceleration(seed):
    """R86:12-CTRL. J a + dJ v = the wanted acceleration, on trees; the null space term is Khatib's, densely."""
    rng = np.random.default_rng(seed)
    system = mb.models.random_tree(4, seed, hinges=("free", "ball", "gimbal", "cylindrical", "custom"), branching=0.0)
    q, v = state(system, rng)
    frame, tau_0 = system.body_names[-1], rng.normal(size=system.nv)
    target = mb.Pose(rotation_vector_to_matrix(rng.normal(size=3)), rng.normal(size=3))
    V_d, A_d, g = rng.normal(size=6), rng.normal(size=6), rng.normal(size=3)
    tau = operational_space_control(system, q, v, frame, target, 9.0, 5.0, V_d, A_d, tau_0, gravity=g)
    J, now = mb.jacobian(system, q, frame), mb.frame_pose(system, q, frame)
    from scipy.spatial.transform import Rotation

    error = np.concatenate(
        [Rotation.from_matrix(target.rotation @ now.rotation.T).as_rotvec(), target.position - now.position]
    )
    wanted = A_d + 5.0 * (V_d - J @ v) + 9.0 * error
    inverse = np.linalg.inv(mass_matrix(system, q))
    size = np.linalg.cond(J @ inverse @ J.T) * max(1.0, np.abs(wanted).max())
    a = forward_dynamics(system, q, v, tau, gravity=g)
    close(mb.frame_acceleration(system, q, v, a, frame), wanted, 1e-12, size=size)
    Lambda, c = np.linalg.inv(J @ inverse @ J.T), bias_forces(system, q, v, gravity=g)
    drift = mb.frame_bias_acceleration(system, q, v, frame)
    null = np.eye(system.nv) - J.T @ Lambda @ J @ inverse
    dense = J.T @ Lambda @ (wanted - drift + J @ inverse @ c) + null @ tau_0
    close(tau, dense, 1e-12, size=size * max(1.0, np.abs(dense).max()))


def test_batches():
    arm, rng = mb.models.puma560(), np.random.default_rng(3)
    q, v = state(arm, rng, (4, 2))
    q_d = q + 0.1
    tau = computed_torque(arm, q, v, q_d, v, v, 10.0, np.arange(6.0))
    close(tau[3, 1], computed_torque(arm, q[3, 1], v[3, 1], q_d[3, 1], v[3, 1], v[3, 1], 10.0, np.arange(6.0)), 1e-12)
    target = mb.frame_pose(arm, q[0, 0], "link_6")
    tau = operational_space_control(arm, q, v, "link_6", target, 10.0, 3.0, axes=(3, 4, 5))
    one = operational_space_control(arm, q[3, 1], v[3, 1], "link_6", target, 10.0, 3.0, axes=(3, 4, 5))
    close(tau[3, 1], one, 1e-9)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"kp": np.ones(5)}, ShapeError, r"kp must be a scalar or have shape \(6,\)"),
        ({"kd": np.nan}, ModelError, "kd has entries that are not finite"),
        ({"v_d": np.ones(5)}, ShapeError, "v_d must have shape"),
        ({"q_d": np.full(6, np.inf)}, ModelError, "q_d has entries"),
    ],
)
def test_bad_input_to_computed_torque(change, error, match):
    given = {
        "q": np.zeros(6),
        "v": np.zeros(6),
        "q_d": np.ones(6),
        "v_d": np.ones(6),
        "a_d": np.ones(6),
        "kp": 1,
        "kd": 1,
    }
    with pytest.raises(error, match=match):
        computed_torque(mb.models.puma560(), **{**given, **change})


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"frame": "link_7"}, ModelError, "did you mean"),
        ({"axes": (3, 3)}, ModelError, "different numbers from 0 to 5"),
        ({"target": (np.eye(2), np.zeros(3))}, ShapeError, "target.rotation must have shape"),
        ({"target": (np.eye(3), [np.nan, 0, 0])}, ModelError, "target.position has entries"),
        ({"axes": ()}, ModelError, "different numbers from 0 to 5"),
        ({"kp": np.ones(4)}, ShapeError, r"kp must be a scalar or have shape \(6,\)"),
        ({"velocity": np.ones(3)}, ShapeError, "velocity must have shape"),
        ({"q": np.zeros(6)}, SingularError, "frame 'link_6'.*cannot be accelerated along all"),
    ],
)
def test_bad_input_to_operational_space_control(change, error, match):
    given = {
        "q": np.full(6, 0.4),
        "v": np.zeros(6),
        "frame": "link_6",
        "target": mb.Pose(np.eye(3), np.zeros(3)),
        "kp": 1,
        "kd": 1,
    }
    with pytest.raises(error, match=match):
        operational_space_control(mb.models.puma560(), **{**given, **change})


@pytest.mark.filterwarnings("ignore::kfdyn.spatial.TriangleInequalityWarning")  # published data
@pytest.mark.parametrize("weight", [1e-6, 1.0, 1e6])
def test_a_singular_configuration_is_one_whatever_the_bodies_weigh(weight):
    """Near it all pivots of Ω are positive: what decides is the condition, which has no unit."""
    arm = mb.models.puma560()
    bodies = [
        replace(body, inertia=weight * np.asarray(body.inertia), armature=weight * np.asarray(body.armature))
        for body in arm.bodies
    ]
    arm, target = mb.System(bodies, arm.gravity, name=arm.name), mb.Pose(np.eye(3), np.zeros(3))
    for bend, singular in ((0.3, False), (1e-6, True)):
        q = np.array([0.4, 0.4, 0.4, 0.4, bend, 0.4])
        J = kf.jacobian(arm, q, "link_6")
        low, *_, high = np.linalg.eigvalsh(J @ np.linalg.solve(mass_matrix(arm, q), J.T))
        assert (low < 1e-3 * control.SINGULAR * high) if singular else (low > 1e3 * control.SINGULAR * high)
        if singular:
            with pytest.raises(SingularError, match="cannot be accelerated along all"):
                operational_space_control(arm, q, np.zeros(6), "link_6", target, 1.0, 1.0)
        else:
            assert np.isfinite(operational_space_control(arm, q, np.zeros(6), "link_6", target, 1.0, 1.0)).all()


def one_sweep(call):
    """What the one compiled call says; None where it leaves rows to be made of parts."""

    def refuse(*_, **__):
        raise KfdynError

    with pytest.MonkeyPatch.context() as patch:
        for name in ("_torque_by_parts", "_control_by_parts"):
            patch.setattr(control, name, refuse)
        with suppress(KfdynError):
            return call()
    return None


def many_calls(call):
    """What the functions say of which a controller is made, where no compiled call serves it."""
    with pytest.MonkeyPatch.context() as patch:
        for kernel in (control.COMPUTED_TORQUE, control.OPERATIONAL_SPACE_CONTROL):
            patch.setattr(kernel, "serving", lambda _: None)
        return call()


@settings(max_examples=10, deadline=None)
@given(seeds, st.sampled_from([(), (3,), (2, 2)]), st.sampled_from([0, 1, 2]))
def test_one_sweep_and_many_calls_agree(seed, lead, matrix):
    """The long way calls difference, inverse and forward dynamics, Jacobian, compliance, each for itself."""
    rng = np.random.default_rng(seed)
    kinds = ("free", "ball", "gimbal", "cylindrical", "revolute", "prismatic", "universal", "planar", "helical")
    system = mb.models.random_tree(7, seed, hinges=kinds, branching=0.3)
    q, v = state(system, rng, lead)
    u, f, nv = rng.normal(size=(*lead, system.nv)), rng.normal(size=(*lead, system.n_bodies, 6)), system.nv
    kp = rng.normal(size=(nv,) * matrix) if matrix else 2.0
    wanted = kf.integrate(system, q, 0.3 * u), u, v, kp, 1.5, f
    torque = partial(computed_torque, system, q, v, *wanted)
    close(one_sweep(torque), many_calls(torque), 1e-13)
    rows, frame = [3, 0, 5], system.body_names[-1]
    kp = rng.normal(size=(3,) * matrix) if matrix else 2.0
    target = mb.Pose(rotation_vector_to_matrix(rng.normal(size=3)), rng.normal(size=3))
    motion = rng.normal(size=(2, 6))
    task = partial(
        operational_space_control, system, q, v, frame, target, kp, 1.5, *motion, u, axes=rows, external_forces=f
    )  # fmt: skip
    quick = one_sweep(task)
    try:
        slow = many_calls(task)
    except SingularError:
        assert quick is None
        return
    condition = np.linalg.cond(kf.operational_space_compliance(system, q, frame)[..., rows, :][..., rows]).max()
    if quick is None:
        assert condition > 1e8 / 40  # 36 of which the bound may be too careful
        return
    close(quick, slow, 1e-13, size=condition * np.abs(slow).max())


def test_one_sweep_with_every_index_checked(monkeypatch):
    arm, rng = mb.models.puma560(), np.random.default_rng(0)
    q, v = state(arm, rng, (2,))
    target = mb.frame_pose(arm, q[0] + 0.1, "link_6")

    def both():
        yield one_sweep(lambda: computed_torque(arm, q, v, q + 0.1, v, v, 3.0, np.eye(6)))
        yield one_sweep(lambda: operational_space_control(arm, q, v, "link_6", target, 3.0, 1.0, axes=(3, 4, 5)))

    compiled = list(both())
    monkeypatch.setattr(Checks, "on", True)
    for mine, theirs in zip(compiled, both()):
        close(mine, theirs, 1e-13)


@pytest.mark.parametrize("seed", range(3))
def test_lists_and_broadcasts_have_the_bits_of_arrays(seed):
    """And so has a state alone: one compiled call tells them all."""
    system, rng = mb.models.random_tree(6, seed, branching=0.3), np.random.default_rng(seed)
    frame = system.body_names[-1]
    q, v = state(system, rng, (3,))
    q_d, target = kf.integrate(system, q, 0.3 * v), mb.frame_pose(system, q[0], frame)

    def both(q, v, q_d, target):
        yield computed_torque(system, q, v, q_d, v, v, 2.0, 1.5)
        yield operational_space_control(system, q, v, frame, target, 2.0, 1.5, axes=(5,))
        yield kf.mass_matrix_logdet(system, q)

    whole = list(both(q, v, q_d, target))
    for other in (
        both(q.tolist(), v.tolist(), q_d.tolist(), target),
        both(q, v, q_d, mb.Pose(*(np.broadcast_to(x, (3, *x.shape)) for x in target))),
        [np.stack(x) for x in zip(*(both(*own, target) for own in zip(q, v, q_d)))],
    ):
        for one, two in zip(whole, other):
            np.testing.assert_array_equal(one, two)
    at_rest = list(both(q, np.zeros_like(v), q_d, target))
    for one, two in zip(at_rest, both(q, np.zeros(system.nv), q_d, target)):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("axes", [(3.9,), ("3",), (None,), 3, [[3, 4]], (float("nan"),)])
def test_axes_are_whole_numbers(axes):
    arm = mb.models.puma560()
    with pytest.raises(ModelError, match="axes must be different numbers from 0 to 5"):
        operational_space_control(
            arm, np.zeros(6), np.zeros(6), "link_6", mb.Pose(np.eye(3), np.zeros(3)), 1, 1, axes=axes
        )


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1.0, np.pi - 1e-7, np.pi])
def test_the_turn_to_a_target_near_half_a_revolution(angle):
    """scipy's rotation vectors are the judge; at π either way round is right."""
    from scipy.spatial.transform import Rotation

    box = kf.System([kf.Body("box", np.eye(6), kf.Hinge.free())], gravity=[0, 0, 0])
    q, axis = box.neutral(), np.array([2.0, -1.0, 2.0]) / 3
    for first in (axis, np.roll(axis, 1), np.array([0.0, 0.0, 1.0])):
        R = Rotation.from_rotvec(angle * first).as_matrix()
        tau = operational_space_control(box, q, np.zeros(6), "box", mb.Pose(R, np.zeros(3)), 1.0, 0.0)
        turn = tau[:3] if tau[:3] @ first >= 0 or angle < np.pi else -tau[:3]
        close(turn, angle * first, 1e-8 if angle > 3 else 1e-14)


def test_a_target_that_is_no_rotation_goes_the_long_way():
    arm, q = mb.models.puma560(), np.full(6, 0.4)
    for R in (np.diag([1.0, 1.0, -1.0]), 1.001 * np.eye(3)):
        target = mb.Pose(R, np.zeros(3))
        task = partial(operational_space_control, arm, q, np.zeros(6), "link_6", target, 1.0, 1.0, axes=(3, 4, 5))
        assert one_sweep(task) is None
        with pytest.raises(ModelError, match=r"target\.rotation is "):
            task()
    target = mb.Pose(np.stack([np.eye(3), R]), np.zeros(3))
    with pytest.raises(ModelError, match=r"target\.rotation\[1\] is "):
        operational_space_control(arm, q, np.zeros(6), "link_6", target, 1.0, 1.0)
