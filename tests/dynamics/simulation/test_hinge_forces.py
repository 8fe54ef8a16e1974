"""Stops, Coulomb friction and clipped torques: closed forms, scipy with events, MuJoCo's motors, conserved momenta."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import kfdyn as kf
from kfdyn.dynamics.simulation.motion_arguments import motion
from kfdyn.errors import ModelError, ShapeError
from kfdyn.spatial import spatial_inertia

WEIGHTLESS = [0.0, 0.0, 0.0]


def slider(mass=2.0, **data):
    return kf.System(
        [kf.Body("block", spatial_inertia(mass, [0, 0, 0], np.eye(3)), kf.Hinge.prismatic([1, 0, 0]), **data)]
    )


def limited(system, **data):
    """The same bodies with the same data at every hinge of one dof."""
    bodies = [replace(b, **data) if b.hinge.nv == 1 else b for b in system.open_tree.bodies]
    return system.like(kf.System(bodies, system.gravity, dict(system.frames)))


def bounces(k, c, q, t_end, limit=0.5):
    """A pendulum (m = l = 1) that falls from rest onto a stop at −limit: scipy, stopped where the force has a kink."""

    def free(t, y):
        return [y[1], -9.81 * np.sin(y[0])]

    def pushed(t, y):
        return [y[1], -9.81 * np.sin(y[0]) - k * (y[0] + limit) - c * y[1]]

    def reach(t, y):
        return y[0] + limit

    def leave(t, y):
        return k * (y[0] + limit) + c * y[1]

    reach.direction, leave.direction = -1, 1
    reach.terminal = leave.terminal = True
    t, y, on = 0.0, np.array([q, 0.0]), False
    crossings = 0
    while t < t_end:
        law, event = (pushed, leave) if on else (free, reach)
        found = solve_ivp(law, (t, t_end), y, "DOP853", events=event, rtol=1e-13, atol=1e-14)
        t, y = found.t[-1], found.y[:, -1]
        on, crossings = not on, crossings + found.status
    return y, crossings


@pytest.mark.parametrize(
    ("k", "c", "bound"),
    [(900.0, 0.0, 1e-9), (900.0, 8.0, 1e-9), (400.0, 40.0, 1e-9)],
)
def test_a_pendulum_falls_on_its_stop(k, c, bound):
    """An adaptive solver finds the kinks by itself, and leaves there some hundred times its tolerance of 1e-12."""
    pendulum = limited(kf.models.pendulum(), lower=-0.5)
    expected, crossings = bounces(k, c, 1.2, 2.0)
    assert crossings >= 2
    found = kf.simulate(
        pendulum, [1.2], [0.0], [0.0, 2.0], stops=k, stop_damping=c, method="DOP853", rtol=1e-12, atol=1e-13
    )
    np.testing.assert_allclose([found.q[-1, 0], found.v[-1, 0]], expected, rtol=0, atol=bound)
    assert found.worst_energy_drift < 1e-9
    if c == 0:  # it gives back all it takes
        assert abs(found.work[-1] + 0.5 * k * min(found.q[-1, 0] + 0.5, 0.0) ** 2) < 1e-9
    else:
        assert found.work[-1] < -0.1


@pytest.mark.parametrize("method", ["rk4", "symplectic", "implicit", "euler"])
def test_fixed_steps_converge_to_the_same_motion(method):
    """First order through the kinks, by every method: the force jumps by 8 · 4 N m somewhere in a step."""
    pendulum = limited(kf.models.pendulum(), lower=-0.5)
    expected, _ = bounces(900.0, 8.0, 1.2, 1.0)
    for n in (1000, 10000):
        found = kf.simulate(
            pendulum, [1.2], [0.0], np.linspace(0, 1, n + 1), stops=900.0, stop_damping=8.0, method=method
        )
        assert abs(found.q[-1, 0] - expected[0]) < 16.0 / n


def test_default_stops_are_critically_damped_and_hold():
    """k = I/T², c = 2I/T at rest on the stop: the depth is that of a spring under the weight."""
    pendulum = limited(kf.models.pendulum(mass=3.0, length=0.7), lower=0.4)
    t = np.linspace(0, 3, 3001)
    found = kf.simulate(pendulum, [0.5], [0.0], t, stops=True)
    inertia, weight = 3.0 * 0.7**2, 3.0 * 9.81 * 0.7
    q = found.q[-1, 0]
    assert abs(inertia / 0.01**2 * (0.4 - q) - weight * np.sin(q)) < 1e-9 * weight
    assert found.q[:, 0].min() > 0.4 - 0.02 and abs(found.v[-1, 0]) < 1e-12
    forces = motion(pendulum, stops=True).hinges.forces(
        np.array([[0.39], [0.39], [0.41]]), np.array([[-1.0], [9.0], [-1]])
    )
    expected = [inertia * (0.01 / 1e-4 + 2 / 0.01), 0.0, 0.0]  # leaving faster than the spring pushes, it does not pull
    np.testing.assert_allclose(forces[:, 0], expected, rtol=1e-12)


@pytest.mark.parametrize("method", ["rk4", "DOP853", "symplectic"])
def test_friction_stops_a_slider(method):
    """m v̇ = −μ tanh(v/v₀): sinh(v/v₀) = sinh(u/v₀) exp(−μt/(m v₀)), and far above v₀ plainly v = u − μt/m."""
    mass, mu, slow, start = 2.0, 3.0, 0.02, 0.4
    block = slider(mass, friction=mu)
    t = np.linspace(0, 0.4, 401)
    found = kf.simulate(
        block, [0.0], [start], t, friction=True, friction_speed=slow, method=method, rtol=1e-12, atol=1e-14, substeps=8
    )
    z = np.log(np.sinh(start / slow)) - mu * t / (mass * slow)
    expected = slow * np.arcsinh(np.exp(z))
    bound = {"rk4": 1e-10, "DOP853": 1e-10, "symplectic": 1e-5}[method]  # of order 4, to tolerance, of order 2
    np.testing.assert_allclose(found.v[:, 0], expected, rtol=0, atol=bound)
    np.testing.assert_allclose(found.v[:200, 0], start - mu * t[:200] / mass, rtol=0, atol=max(bound, 1e-4 * slow))
    lost = 0.5 * mass * (found.v[-1, 0] ** 2 - start**2)
    assert abs(found.work[-1] - lost) < 1e-6 * abs(lost) and not found.tau.any()


def test_clipped_motors_are_mujocos():
    """Control and force ranges, gears and joint limits of forces, in the same Euler steps."""
    mujoco = pytest.importorskip("mujoco")
    text = """
    <mujoco><option timestep="0.002" integrator="Euler"><flag contact="disable"/></option>
      <worldbody><body name="a"><joint name="a" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.04"/>
        <body name="b" pos="0 0 -0.5"><joint name="b" axis="1 1 0"/>
          <geom type="capsule" fromto="0 0 0 0.3 0 -0.3" size="0.03"/>
          <body name="c" pos="0.3 0 -0.3"><joint name="c" axis="0 1 0" actuatorfrcrange="-0.4 0.4"/>
            <geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.03"/></body></body></body></worldbody>
      <actuator><motor joint="a" gear="20" ctrlrange="-1 1"/><motor joint="b" gear="3" forcerange="-2 2"/>
        <motor joint="c"/></actuator></mujoco>"""
    model, system = mujoco.MjModel.from_xml_string(text), kf.load(text)
    np.testing.assert_array_equal(system.effort, [20.0, 6.0, 0.4])
    gear, data, n = np.array([20.0, 3.0, 1.0]), mujoco.MjData(model), 300
    data.qpos[:] = q = [0.3, -0.2, 0.1]

    def asked(t, q, v):
        return np.array([30.0, 9.0, 1.0]) * np.sin(7.0 * t + np.arange(3.0)) - 0.1 * v

    there = [np.array(q)]
    for i in range(n):
        data.ctrl[:] = asked(0.002 * i, data.qpos.copy(), data.qvel.copy()) / gear
        mujoco.mj_step(model, data)
        there.append(data.qpos.copy())
    t = 0.002 * np.arange(n + 1)
    found = kf.simulate(system, q, np.zeros(3), t, asked, method="euler", effort=True)
    np.testing.assert_allclose(found.q, there, rtol=0, atol=1e-10)
    assert (np.abs(found.tau).max(axis=0) == system.effort).all()
    free = kf.simulate(system, q, np.zeros(3), t, asked, method="euler")
    assert np.abs(free.q - there).max() > 0.1


@pytest.mark.parametrize("method", ["rk4", "implicit", "euler", "symplectic"])
def test_motions_of_a_batch_are_those_alone(method):
    system = limited(kf.models.double_pendulum(), lower=-0.4, upper=0.6, effort=2.0, friction=0.3)
    rng = np.random.default_rng(3)
    q, v, tau = rng.uniform(-0.3, 0.5, (4, 2)), rng.normal(size=(4, 2)), rng.normal(size=(4, 2)) * 4
    t = np.linspace(0, 0.4, 41)
    asked = {"stops": True, "friction": True, "friction_speed": 0.1, "effort": True, "method": method, "substeps": 5}
    every = kf.simulate(system, q, v, t, tau, **asked)
    assert (np.abs(every.tau) <= 2.0).all() and (np.abs(every.tau) == 2.0).any()
    for i in range(4):
        alone = kf.simulate(system, q[i], v[i], t, tau[i], **asked)
        np.testing.assert_allclose(every.q[:, i], alone.q, rtol=0, atol=1e-10)
        np.testing.assert_array_equal(every.tau[:, i], alone.tau)


def test_forces_of_coupled_hinges():
    """Limits of the coordinates; friction of every hinge, −X* μ tanh(Xv/v₀). Dense algebra on the open tree."""
    bodies = [
        replace(b, friction=0.1 * (k + 1), lower=-0.5, upper=1.0) for k, b in enumerate(kf.models.chain(4, 2).bodies)
    ]
    names = [b.hinge_name for b in bodies]
    system = kf.System(bodies, couplings=[kf.Coupling([names[1], names[3]], [1.0, -3.0])])
    np.testing.assert_allclose(system.lower, [-0.5, -1 / 3, -0.5])
    rng = np.random.default_rng(0)
    q, v, tau = np.array([1.2, -0.6, 0.3]), rng.normal(size=3), 5 * rng.normal(size=3)
    driven = motion(
        system, tau, stops=50.0, stop_damping=0.2, friction=True, friction_speed=0.3, effort=[1.0, np.inf, 2.0]
    )
    a, power = driven.acceleration(0.0, q, v)
    X, tree = system.expansion(q), system.open_tree
    force = np.clip(tau, [-1.0, -np.inf, -2.0], [1.0, np.inf, 2.0])
    force[0] -= 50.0 * 0.2 + 0.2 * v[0]
    force[1] += 50.0 * (0.6 - 1 / 3) - 0.2 * v[1]
    force -= X.T @ (tree.friction * np.tanh(X @ v / 0.3))
    M, c = kf.mass_matrix(tree, system.expand(q)), kf.bias_forces(tree, system.expand(q), X @ v)
    np.testing.assert_allclose(a, np.linalg.solve(X.T @ M @ X, force - X.T @ c), rtol=1e-10)
    assert abs(power - force @ v) < 1e-12
    with pytest.raises(ModelError, match="friction must not be negative"):
        kf.simulate(system, q, v, [0.0, 0.1], friction=-1.0)


def test_a_floating_base_keeps_its_momentum():
    """Forces of hinges are internal: in free flight stops, friction and motors change no momentum."""
    flyer = limited(kf.models.free_flyer(), lower=-0.2, upper=0.3, friction=0.4, effort=1.0)
    v = 4 * np.random.default_rng(1).normal(size=flyer.nv)
    t = np.linspace(0, 0.3, 31)
    law = kf.LinearFeedback(flyer, kp=np.r_[np.zeros(6), np.full(flyer.nv - 6, 50.0)])
    found = kf.simulate(
        flyer, flyer.neutral(), v, t, law, stops=True, friction=True, friction_speed=0.2, effort=True,
        gravity=WEIGHTLESS, substeps=40,
    )  # fmt: skip
    assert np.abs(found.q[:, 7:]).max() > 0.3 and np.abs(found.tau).max() == 1.0 and not found.tau[:, :6].any()
    assert np.abs(found.momentum - found.momentum[0]).max() < 1e-6 * np.abs(found.momentum[0]).max()


def test_loops_bodies_that_bend_and_driven_hinges_have_them_too():
    linkage = limited(kf.models.four_bar(), friction=0.5)
    q, v, t = linkage.random_configuration(0), np.zeros(linkage.nv), np.linspace(0, 0.5, 51)
    q = kf.assemble(linkage, q)
    swung = kf.simulate(linkage, q, v, t, friction=True, friction_speed=0.5, substeps=4)
    assert swung.work[-1] < 0 and swung.worst_energy_drift < 1e-4
    rod = kf.beam("rod", 1.0, 2.0, bending=(0.0, 50.0), modes=1, hinge=kf.Hinge.revolute([0, 1, 0]))
    bent = kf.simulate(kf.FlexibleSystem([rod]), [0.0, 0.0], [1.0, 0.0], t, friction=0.5, method="implicit", substeps=4,
                       friction_speed=0.5)  # fmt: skip
    assert bent.work[-1] < 0
    arm = limited(kf.models.double_pendulum(), friction=0.7)
    led = {"shoulder": lambda t: (t, 1.0, 0.0), "elbow": lambda t: (-t, -1.0, 0.0)}
    plain, rusty = (kf.simulate(arm, [0, 0], [0, 0], t, courses=led, friction=on, substeps=2) for on in (False, True))
    np.testing.assert_allclose(rusty.tau - plain.tau, np.tile([0.7, -0.7], (51, 1)), rtol=0, atol=1e-10)


def test_nothing_changes_unless_asked():
    system = limited(kf.models.double_pendulum(), lower=-0.1, upper=0.1, effort=0.1, friction=1.0)
    t = np.linspace(0, 1, 101)
    one, other = (kf.simulate(s, [1.0, 0.5], [0, 0], t, [1.0, 1.0]) for s in (system, kf.models.double_pendulum()))
    np.testing.assert_array_equal(one.q, other.q)
    assert motion(system).hinges is None
    assert motion(kf.models.double_pendulum(), stops=True, friction=True, effort=True).hinges is None  # it has none


def test_commands_are_held_beside_forces_that_python_computes():
    """A stage at the end of a step sees the command of its beginning, as in compiled code."""
    arm = kf.models.double_pendulum()
    t = np.linspace(0, 0.5, 11)
    law = kf.LinearFeedback(arm, tau=np.random.default_rng(0).normal(size=(11, 2)) * 5, t=t, held=True)
    start = ([0.3, 0.1], [0.0, 0.0], t, law)
    compiled = kf.simulate(arm, *start)
    for beside in ({"external_forces": lambda t, q, v: np.zeros((2, 6))}, {"effort": 1e9}):
        found = kf.simulate(arm, *start, **beside)
        np.testing.assert_allclose(found.q, compiled.q, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.tau, compiled.tau, rtol=0, atol=1e-12)


def test_steps_that_are_too_long_are_warned_of():
    block = slider(0.1, friction=2.0)
    t = np.linspace(0, 1, 101)
    with pytest.warns(RuntimeWarning, match=r"dof 0 .*chatter; take substeps=10,"):
        kf.simulate(block, [0.0], [1.0], t, friction=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = kf.simulate(block, [0.0], [1.0], t, friction=True, substeps=10)
    assert abs(found.v[-1, 0]) < 1e-6


@pytest.mark.parametrize(
    ("asked", "error", "text"),
    [
        ({"stops": -1.0}, ModelError, "stops must not be negative"),
        ({"stops": [1.0, 2.0, 3.0]}, ShapeError, r"stops must be True, False, a number or have shape \(2,\)"),
        ({"stop_damping": 1.0}, ModelError, "ask for them"),
        ({"stops": True, "stop_damping": np.inf}, ModelError, "stop_damping must not be negative or infinite"),
        ({"friction": [0.1]}, ShapeError, "friction must have shape"),
        ({"friction": True, "friction_speed": 0.0}, ModelError, "friction_speed must be a positive number"),
        ({"effort": np.nan}, ModelError, "effort must not be negative"),
    ],
)  # fmt: skip
def test_refused(asked, error, text):
    arm = limited(kf.models.double_pendulum(), lower=-1.0, upper=1.0)
    with pytest.raises(error, match=text):
        kf.simulate(arm, [0, 0], [0, 0], [0.0, 0.1], **asked)
