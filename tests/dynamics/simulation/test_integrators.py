"""One step: the Lagrangian's forces, symplecticity, implicit damping as measurement noise, orders, MuJoCo's step."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from multibody_cases import close, derivative, forest, seeds, state

import kfdyn.multibody as mb
from kfdyn.dynamics import as_estimation, bias_forces, mass_matrix
from kfdyn.dynamics.simulation.integrators import euler_step, implicit_step, rk4_step
from kfdyn.dynamics.simulation.motion_arguments import motion, with_armature
from kfdyn.dynamics.simulation.simulate import simulate
from kfdyn.dynamics.simulation.symplectic.variational import lagrangian, symplectic_step
from kfdyn.errors import KfdynError, SingularError
from kfdyn.multibody.models.random_bodies import KINDS
from kfdyn.multibody.parts.hinge import Coordinates
from kfdyn.spatial import spatial_inertia

COORDINATES = tuple(kind for kind in KINDS if kind not in ("custom", "ball", "free"))
GROUPS = tuple(kind for kind in KINDS if kind != "custom")


def tree(seed, hinges, n=6):
    rng = np.random.default_rng(seed)
    system = mb.models.random_tree(n, seed, hinges=hinges, branching=0.3)
    return mb.System(system.bodies, gravity=rng.normal(size=3)), rng


def ad_star(system, v, p):
    """ad*_v p written out, hinge by hinge; zero where q are coordinates, and at custom hinges."""
    out = np.zeros_like(p)
    for name, body in zip(system.hinge_names, system.bodies):
        own, kind = system.v_slice(name), body.hinge.kind
        if kind == "ball":
            out[own] = np.cross(p[own], v[own])
        elif kind == "free":
            w, u, n, f = v[own][:3], v[own][3:], p[own][:3], p[own][3:]
            out[own] = np.concatenate([np.cross(n, w) + np.cross(f, u), np.cross(f, w)])
    return out


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_the_force_of_the_lagrangian_is_its_derivative(seed):
    """dL/dq at fixed v from the energies of the multibody room, dof by dof; p from the mass matrix."""
    system, rng = tree(seed, GROUPS)
    q, v = state(system, rng)
    p, force = lagrangian(system, q, v)
    close(p, mass_matrix(system, q) @ v, 1e-12)

    def energy(dv):
        there = mb.integrate(system, q, dv)
        return mb.kinetic_energy(system, there, v) - mb.potential_energy(system, there)

    expected = np.array([derivative(lambda s, e=e: energy(s * e)) for e in np.eye(system.nv)])
    expected -= ad_star(system, v, system.armature * v)  # rotors are not turned with their body
    # a stencil of energies: its rounding is 1e-13 of the energy, not of the force
    close(force, expected, 1e-10, size=float(mb.kinetic_energy(system, q, v)))


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_lagrange_and_newton_agree_on_the_bias(seed):
    """c = d/dt(M) v - ad*_v p - F on forests of every hinge, custom ones included; F has the external forces."""
    system, rng = forest(seed, n=7)
    q, v = state(system, rng)
    f_ext = rng.normal(size=(system.n_bodies, 6))
    p, force = lagrangian(system, q, v, f_ext)
    rate = derivative(lambda s: lagrangian(system, mb.integrate(system, q, s * v), v).momentum)
    c = bias_forces(system, q, v, external_forces=f_ext)
    close(c, rate - ad_star(system, v, p) - force, 1e-10, size=np.abs(p).max())


def shortened(attempt, h, halvings=4):
    """What ``attempt`` says at the longest of h, h/2, ... that the step accepts; it must accept one soon."""
    for _ in range(halvings):
        try:
            return attempt(h)
        except KfdynError as error:
            if "no solution near this state" not in str(error):
                raise
            h /= 2
    return attempt(h)


def symplectic_defect(step, system, q, v, h):
    """How far the Jacobian A of a step in canonical (q, p) is from A* J A = J, of the square of its size."""
    n, drive = system.nv, motion(system)
    x = np.concatenate([q, mass_matrix(system, q) @ v])

    def moved(x):
        q0, p0 = x[..., :n], x[..., n:]
        v0 = np.linalg.solve(mass_matrix(system, q0), p0[..., None])[..., 0]
        q1, v1, _ = step(drive, 0.0, h, q0, v0)
        return np.concatenate([q1, (mass_matrix(system, q1) @ v1[..., None])[..., 0]], axis=-1)

    J = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])

    def defect(width):
        A = derivative(lambda s: moved(x + s * np.eye(2 * n)), width).T
        return np.abs(A.T @ J @ A - J).max() / np.abs(A).max() ** 2

    # A defect of the step is seen by differences of every width; near a fold of its roots wide ones see their own.
    return min(map(defect, (1e-3, 2.5e-4, 6e-5)))


@settings(max_examples=6, deadline=None)
@given(seeds)
@example(43826)  # no root at h = 0.03, where an iteration once found |v| = 170
@example(58351)
@example(9552)  # nearly constant mass matrix
@example(24737)
@example(653824)  # hardly a root at h = 0.03: differences of 1e-3 are 1e-8 off there
def test_the_variational_step_is_symplectic(seed):
    system, rng = tree(seed, COORDINATES, n=3)
    q, v = state(system, rng)
    # the derivative of roots that are good to 1e-14, by differences of 1e-3: some 1e-11
    assert shortened(lambda h: symplectic_defect(symplectic_step, system, q, v, h), 0.03) < 1e-9


def test_semi_implicit_euler_is_not_symplectic_where_the_mass_matrix_changes():
    """The defect can be seen: of the double pendulum, whose mass matrix depends on the elbow; of one bob it is none."""
    arm, q, v = mb.models.double_pendulum(), np.array([0.4, 1.1]), np.array([1.0, -2.0])
    assert symplectic_defect(euler_step, arm, q, v, 0.03) > 1e-3
    assert symplectic_defect(symplectic_step, arm, q, v, 0.03) < 1e-10
    assert symplectic_defect(euler_step, mb.models.pendulum(), q[:1], v[:1], 0.03) < 1e-10


@settings(max_examples=15, deadline=None)
@given(seeds)
@example(23)  # the root there is at h = 0.02 goes 69 times as far as a short step would
@example(44928)
@example(13471)
@example(65412)
def test_the_variational_step_is_its_own_inverse(seed):
    """Symmetric: a step forth and the same step back lead home, on every kind of hinge."""
    system, rng = forest(seed, n=5)
    q, v = state(system, rng)
    drive = motion(system, stiffness=False)

    def forth_and_back(h):
        there = symplectic_step(drive, 0.0, h, q, 0.3 * v)
        return symplectic_step(drive, h, -h, there.q, there.v)

    back = shortened(forth_and_back, 0.02)
    close(back.v, 0.3 * v, 1e-11)
    sign = np.where(back.q @ q < 0, -1, 1)
    close(back.q, sign * q, 1e-11)


@pytest.mark.parametrize("seed", [23, 44928, 13471, 65412, 43826, 58351, 9552, 24737])
def test_the_variational_step_takes_the_root_that_the_state_leads_to(seed):
    """Beside scipy's solution at 1e-9: the error falls with h² from the first step that is accepted."""
    system, rng = forest(seed, n=5)
    q, v = state(system, rng)
    v = 0.3 * v

    def errors(h):
        exact = simulate(system, q, v, [0.0, h], method="DOP853").v[-1]
        steps = (simulate(system, q, v, [0.0, h], method="symplectic", substeps=n).v[-1] for n in (1, 4))
        return [np.sqrt(2 * mb.kinetic_energy(system, q, u - exact)) for u in steps]

    coarse, fine = shortened(errors, 0.02)
    assert coarse < 0.05 * np.sqrt(2 * mb.kinetic_energy(system, q, v))
    assert fine < coarse / 8


def test_what_the_variational_step_refuses_has_no_root():
    """Seed 43826 at h = 0.03: of 𝓜(q + h/2 w) w = π, dense, scipy finds no root at all; at h = 0.015 it finds ours."""
    from scipy.optimize import root

    system, rng = tree(43826, COORDINATES, n=3)
    q, v = state(system, rng)

    def roots(h):
        p = mass_matrix(system, q) @ v
        kick = root(lambda u: mass_matrix(system, q) @ u - p - h / 2 * lagrangian(system, q, u).force, v, tol=1e-12)
        half, momentum = q + h / 2 * kick.x, p + h / 2 * lagrangian(system, q, kick.x).force
        start = np.linalg.solve(mass_matrix(system, half), momentum)
        moves = (
            root(lambda w: mass_matrix(system, half + h / 2 * w) @ w - momentum, start * (1 + scale * x), tol=1e-12)
            for scale in (0.0, 0.3, 1.0, 3.0)
            for x in np.random.default_rng(0).normal(size=(8, system.nv))
        )
        return half, [move.x for move in moves if move.success]

    assert roots(0.03)[1] == []
    with pytest.raises(KfdynError, match=r"no solution near this state at h = 0.03: the root of its move is lost"):
        symplectic_step(motion(system), 0.0, 0.03, q, v)
    half, found = roots(0.015)
    ours = symplectic_step(motion(system), 0.0, 0.015, q, v).q
    assert min(np.abs(half + 0.0075 * w - ours).max() for w in found) < 1e-9


@settings(max_examples=25, deadline=None)
@given(seeds, st.floats(1e-3, 10.0))
@example(22521, 1.8605)
@example(13315, 1.0819)
@example(7304, 0.02197)
def test_implicit_damping_is_measurement_noise(seed, h):
    """(M + hB + h^2 K) a = tau - c - B v - K (q + h v): dense algebra beside the filter with R + hB + h^2 K."""
    system, rng = tree(seed, COORDINATES)
    q, v = state(system, rng)
    B, K, tau = rng.uniform(0, 50, system.nv), rng.uniform(0, 50, system.nv), rng.normal(size=system.nv)
    drive = motion(system, tau, damping=B, stiffness=K)
    noise = np.diag(h * B + h**2 * K)
    right = tau - bias_forces(system, q, v) - B * v - K * (q + h * v)
    a = np.linalg.solve(mass_matrix(system, q) + noise, right)
    step = implicit_step(drive, 0.0, h, q, v)
    close(step.v, v + h * a, 1e-10, size=h * np.abs(a).max())
    close(step.q, q + h * step.v, 1e-12)
    plain, damped = as_estimation(system, q), as_estimation(drive.damped(h), q)
    for k, name in enumerate(system.hinge_names):
        own = system.v_slice(name)
        close(damped.R[k] - plain.R[k], noise[own, own], 1e-9)
        close(damped.Q[k], plain.Q[k], 0)


def test_implicit_where_the_explicit_step_explodes():
    """A damper alone: v is divided by 1 + hB/I at every implicit step, multiplied by 1 - hB/I at every explicit one."""
    system = mb.models.pendulum(mass=2.0, length=0.5, armature=0.1)
    inertia, B, h = 2.0 * 0.25 + 0.1, 30.0, 0.1
    run = {"t": h * np.arange(21), "damping": [B], "gravity": np.zeros(3)}
    calm = simulate(system, [0.2], [3.0], method="implicit", **run)
    close(calm.v[:, 0], 3.0 * (1 + h * B / inertia) ** -np.arange(21.0), 1e-12)
    with pytest.warns(RuntimeWarning, match="all that it had or was given; euler is unstable"):
        wild = simulate(system, [0.2], [3.0], method="euler", **run)
    close(wild.v[:, 0], 3.0 * (1 - h * B / inertia) ** np.arange(21.0), 1e-11)
    assert np.abs(wild.v[-1]) > 1e10
    with pytest.raises(KfdynError, match=r"became infinite or NaN.*'implicit'"):
        simulate(system, [0.2], [3.0], np.arange(3000) * h, damping=[B], method="euler")


def error_of(system, q, v, method, n, reference, **drive):
    moved = simulate(system, q, v, reference.t, method=method, substeps=n, **drive)
    return np.abs(features(system, moved) - features(system, reference)).max()


def features(system, moved):
    return np.concatenate([moved.v[-1], mb.link_terms(system, moved.q[-1]).position.ravel()])


@pytest.mark.parametrize(
    ("method", "order", "h"),
    [("rk4", 4, 1 / 40), ("symplectic", 2, 1 / 120), ("implicit", 1, 1 / 160), ("euler", 1, 1 / 160)],
)
def test_orders_on_a_tree_of_every_hinge(method, order, h):
    """Halve the step, and the error falls by 2^order; torque, damper and external forces on."""
    system = mb.models.random_tree(12, 3, branching=0.4)
    rng = np.random.default_rng(1)
    q, v = system.random_configuration(rng), 0.5 * rng.normal(size=system.nv)
    f_ext, tau = rng.normal(size=(12, 6)), rng.normal(size=system.nv)
    drive = {"external_forces": f_ext, "torque": lambda t, q, v: np.cos(3 * t) * tau - 0.1 * v, "damping": 0.3}
    reference = simulate(system, q, v, [0.0, 12 * h], method="DOP853", rtol=1e-12, atol=1e-13, **drive)
    coarse, fine = (error_of(system, q, v, method, k * 12, reference, **drive) for k in (1, 2))
    assert np.log2(coarse / fine) == pytest.approx(order, abs=0.35)


def test_quaternions_stay_unit_and_batches_agree():
    system = mb.models.random_tree(6, 2, hinges=("ball", "free", "custom"))
    rng = np.random.default_rng(0)
    q, v = state(system, rng, (2, 3))
    drive = motion(system)
    turned = np.flatnonzero(system.layout.coordinates != Coordinates.SCREWS)
    columns = system.layout.q_start[turned + 1][:, None] + np.arange(-4, 0)
    for step in (rk4_step, euler_step, implicit_step, symplectic_step):
        many = step(drive, 0.0, 0.01, q, v)
        one = step(drive, 0.0, 0.01, q[1, 2], v[1, 2])
        close(many.q[1, 2], one.q, 1e-12)
        close(many.v[1, 2], one.v, 1e-11)
        close(np.linalg.norm(many.q[..., columns], axis=-1), np.ones((2, 3, turned.size)), 1e-14)


def test_a_step_too_long_for_the_iteration_is_refused():
    system = mb.models.double_pendulum()
    with pytest.raises(KfdynError, match="no solution near this state at h = 5"):
        symplectic_step(motion(system), 0.0, 5.0, np.array([1.0, 2.0]), np.array([5.0, -9.0]))


def test_a_row_does_not_depend_on_the_batch_it_is_in():
    """Rows that plain iteration solves beside rows that need Newton's steps or a path: each as if it were alone."""
    system = mb.models.double_pendulum()
    v = np.array([[0.1, 0.2], [9.0, -14.0], [0.0, 0.0], [6.0, -10.0]])
    q, drive = np.array([[1.0, 2.0], [0.3, 1.2], [0.0, 0.0], [0.3, 1.2]]), motion(system)
    many = symplectic_step(drive, 0.0, 0.05, q, v)
    for b in range(4):
        one = symplectic_step(drive, 0.0, 0.05, q[b], v[b])
        close(many.v[b], one.v, 1e-11)
        close(many.q[b], one.q, 1e-11)


def test_other_rotors_on_the_same_system():
    system = mb.models.puma560()
    other = with_armature(system, np.arange(1.0, 7.0))
    close(other.armature, np.arange(1.0, 7.0), 0)
    close(mass_matrix(other, np.ones(6)) - mass_matrix(system, np.ones(6)), np.diag(other.armature - system.armature))


MJCF = """
<mujoco><option timestep="0.01" gravity="0.3 -0.2 -9.81" integrator="{integrator}"><flag contact="disable"/></option>
<worldbody>
 <body name="a" pos="0.1 0.2 0.3" quat="0.9 0.1 0.3 -0.2">
  <joint type="hinge" axis="0 0.6 0.8" damping="{B[0]}" armature="0.05"/>
  <inertial pos="0.1 0.05 -0.2" mass="1.5" diaginertia="0.02 0.03 0.04"/>
  <body name="b" pos="0.3 0 0.1"><joint type="ball" damping="{B[1]}"/>
   <inertial pos="0 0.2 0.1" mass="0.8" diaginertia="0.01 0.02 0.015"/>
   <body name="c" pos="0 0.4 0"><joint type="slide" axis="1 0 0" damping="{B[2]}"/>
    <inertial pos="0.05 0 0" mass="0.5" diaginertia="0.004 0.005 0.006"/></body></body>
  <body name="d" pos="-0.2 0 0.2"><joint type="hinge" axis="1 0 0" damping="{B[3]}" armature="0.01"/>
   <inertial pos="0 0.1 0.3" mass="0.7" diaginertia="0.01 0.01 0.01"/></body>
 </body>
</worldbody></mujoco>
"""


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast"])
def test_mujoco_takes_the_same_damped_steps(integrator):
    """Sixty steps with dampers that an explicit step cannot bear, by MuJoCo's two implicit dampings."""
    mujoco = pytest.importorskip("mujoco")
    B = (4.0, 30.0, 200.0, 15.0)
    model = mujoco.MjModel.from_xml_string(MJCF.format(integrator=integrator, B=B))
    data = mujoco.MjData(model)
    quat = np.array([0.1, 0.3, -0.2, 0.9])
    hinge = mb.Hinge
    system = mb.System(
        [
            mb.Body("a", spatial_inertia(1.5, [0.1, 0.05, -0.2], np.diag([0.02, 0.03, 0.04])),
                    hinge.revolute([0, 0.6, 0.8]), None, _rotation(quat), [0.1, 0.2, 0.3], armature=0.05, damping=B[0]),
            mb.Body("b", spatial_inertia(0.8, [0, 0.2, 0.1], np.diag([0.01, 0.02, 0.015])), hinge.ball(), "a",
                    position=[0.3, 0, 0.1], damping=B[1]),
            mb.Body("c", spatial_inertia(0.5, [0.05, 0, 0], np.diag([0.004, 0.005, 0.006])), hinge.prismatic([1, 0, 0]),
                    "b", position=[0, 0.4, 0], damping=B[2]),
            mb.Body("d", spatial_inertia(0.7, [0, 0.1, 0.3], np.diag([0.01, 0.01, 0.01])), hinge.revolute([1, 0, 0]),
                    "a", position=[-0.2, 0, 0.2], armature=0.01, damping=B[3]),
        ],
        gravity=[0.3, -0.2, -9.81],
    )  # fmt: skip
    rng = np.random.default_rng(5)
    q, v = system.random_configuration(rng), rng.normal(size=6)
    data.qpos = [q[0], q[4], *q[1:4], *q[5:]]  # MuJoCo writes (w, x, y, z)
    data.qvel = v
    moved = simulate(system, q, v, 0.01 * np.arange(61), method="implicit", damping=True)
    for _ in range(60):
        mujoco.mj_step(model, data)
    close(data.qvel, moved.v[-1], 1e-10)
    last = moved.q[-1]
    close(data.qpos, [last[0], last[4], *last[1:4], *last[5:]], 1e-10)


def _rotation(quaternion):
    from kfdyn.spatial import quaternion_to_matrix

    return quaternion_to_matrix(quaternion / np.linalg.norm(quaternion))


@pytest.mark.parametrize("step", [rk4_step, euler_step, implicit_step, symplectic_step])
def test_a_hinge_without_inertia_is_named(step):
    system = mb.System([mb.Body("ghost", np.zeros((6, 6)), mb.Hinge.revolute(), hinge_name="wrist")])
    for lead in ((), (3,)):
        with pytest.raises(SingularError, match="'wrist'"):
            step(motion(system), 0.0, 0.1, np.zeros((*lead, 1)), np.ones((*lead, 1)))
    # a damper is measurement noise, and noise is inertia enough for an implicit step
    assert implicit_step(motion(system, damping=1.0), 0.0, 0.1, np.zeros(1), np.ones(1)).v == pytest.approx(0.0)
