"""R86:12-NUM, whole motions: analytic pendulums, conservation, energy balance, scipy's solvers, batches, bad input."""

import warnings

import numpy as np
import pytest
from multibody_cases import close, state
from scipy.integrate import solve_ivp
from scipy.special import ellipj, ellipk

import kfdyn.multibody as mb
from kfdyn.dynamics.simulation.adaptive import rates
from kfdyn.dynamics.simulation.feedback import LinearFeedback
from kfdyn.dynamics.simulation.simulate import ADAPTIVE, FIXED_STEP, simulate
from kfdyn.errors import KfdynError, ModelError, ShapeError
from kfdyn.multibody.parts.hinge import Coordinates

G, TIGHT = 9.81, {"rtol": 1e-12, "atol": 1e-13}


def pendulum_angle(start, t, frequency):
    """Released from rest: sin(angle/2) = k cd(frequency t), k = sin(start/2), by Jacobi's functions."""
    k = np.sin(start / 2)
    _, cn, dn, _ = ellipj(frequency * t, k**2)
    return 2 * np.arcsin(k * cn / dn)


@pytest.mark.parametrize(("method", "tol"), [("DOP853", 1e-10), ("rk4", 1e-7)])
def test_pendulum_by_elliptic_functions(method, tol):
    """Over more than a period, from 150 degrees. RK4 at h = 4 ms: h^4 = 3e-10, times the stretch at the top."""
    system = mb.models.pendulum(mass=1.3, length=0.7)
    frequency = np.sqrt(G / 0.7)
    period = 4 * ellipk(np.sin(2.6 / 2) ** 2) / frequency
    t = np.linspace(0, 1.1 * period, 45)
    swing = simulate(system, [2.6], [0.0], t, method=method, substeps=15, **TIGHT)
    close(swing.q[:, 0], pendulum_angle(2.6, t, frequency), tol, size=3.0)


def test_double_pendulum_by_its_equations():
    """Textbook equations in absolute angles, by another solver than the one under test."""
    m1, m2, l1, l2 = 1.2, 0.7, 0.9, 0.6

    def textbook(t, y):
        a, b, da, db = y
        M = np.array([[(m1 + m2) * l1**2, m2 * l1 * l2 * np.cos(a - b)], [m2 * l1 * l2 * np.cos(a - b), m2 * l2**2]])
        s = m2 * l1 * l2 * np.sin(a - b)
        right = [-s * db**2 - (m1 + m2) * G * l1 * np.sin(a), s * da**2 - m2 * G * l2 * np.sin(b)]
        return [da, db, *np.linalg.solve(M, right)]

    t = np.linspace(0, 2, 21)
    start = np.array([1.5, 2.0, 0.3, -0.4])
    expected = solve_ivp(textbook, (0, 2), start, "LSODA", t, rtol=1e-13, atol=1e-13).y.T
    system = mb.models.double_pendulum((m1, m2), (l1, l2))
    swing = simulate(system, [1.5, 0.5], [0.3, -0.7], t, method="DOP853", **TIGHT)
    absolute = np.concatenate([np.cumsum(swing.q, -1), np.cumsum(swing.v, -1)], axis=-1)
    # the motion is chaotic: two solvers at 1e-13 agree to 1e-9 after two seconds
    close(absolute, expected, 1e-9)


def energy_error(method, substeps, t, **options):
    system = mb.models.double_pendulum((1.0, 0.7), (1.0, 0.8))
    return np.abs(simulate(system, [1.2, 0.6], [0.0, 0.5], t, method=method, substeps=substeps, **options).energy_drift)


def test_energy_error_of_rk4_falls_with_the_fourth_power():
    t = np.linspace(0, 1, 11)
    errors = [energy_error("rk4", n, t).max() for n in (5, 10)]
    assert 3.5 < np.log2(errors[0] / errors[1]) < 5.5  # the energy of RK4 is often one order better


def test_energy_error_of_the_symplectic_step_is_bounded_and_of_second_order():
    t = np.linspace(0, 6, 121)
    coarse, fine = energy_error("symplectic", 1, t), energy_error("symplectic", 2, t[:41])
    assert 1.7 < np.log2(coarse[:41].max() / fine.max()) < 2.3
    # no trend: the last third is no worse than the first, while RK4 loses energy steadily
    assert coarse[80:].max() < 1.5 * coarse[:40].max()
    rk4 = energy_error("rk4", 1, t)
    assert rk4[80:].max() > 2 * rk4[:40].max()


@pytest.mark.parametrize(
    ("method", "h", "tol"), [("symplectic", 0.02, 1e-12), ("rk4", 0.01, 1e-9), ("DOP853", 0.1, 1e-10)]
)
def test_a_free_flyer_keeps_its_momentum(method, h, tol):
    """Arms driven by torques inside: the momentum stays; the variational step keeps it to rounding."""
    system = mb.models.free_flyer()
    rng = np.random.default_rng(3)
    q, v = state(system, rng)
    v[:6] *= 0.2
    inside = np.concatenate([np.zeros(6), rng.normal(size=14)])
    moved = simulate(system, q, v, np.arange(11) * h, inside, method=method, **TIGHT)
    close(moved.momentum, np.broadcast_to(moved.momentum[0], moved.momentum.shape), tol)
    assert np.abs(np.diff(moved.q[:, 7:], axis=0)).max() > h / 10  # it did move


def test_momentum_changes_by_the_impulse():
    """Constant forces at the mass centre of a free body: linear momentum grows by f t, gravity by m g t."""
    body = mb.Body("box", np.diag([0.1, 0.2, 0.3, 2.0, 2.0, 2.0]), mb.Hinge.free())
    system = mb.System([body])
    f = np.array([[0, 0, 0, 1.0, -2.0, 0.5]])
    q, v = system.neutral(), np.array([1.0, 2.0, 3.0, 0.1, 0.2, 0.3])
    moved = simulate(system, q, v, [0.0, 0.5, 1.0], substeps=100, external_forces=f)
    expected = moved.momentum[0, 3:] + np.outer(moved.t, f[0, 3:] + 2.0 * system.gravity)
    close(moved.momentum[:, 3:], expected, 1e-8)  # v is in the turning body's axes: RK4's h^4 is in it
    close(moved.energy_drift, np.zeros(3), 1e-7)


@pytest.mark.parametrize("method", ["rk4", "symplectic", "implicit", "DOP853"])
def test_work_balances_the_energy(method):
    """E(t) - E(0) = W(t) with motors, dampers, springs and forces on, on every hinge: W is integrated, E is not."""
    system = mb.models.random_tree(12, 1, branching=0.4)
    rng = np.random.default_rng(0)
    q, v = state(system, rng)
    f_ext, tau = rng.normal(size=(12, 6)), rng.normal(size=system.nv)
    spring = np.where(
        np.repeat(system.layout.coordinates == Coordinates.POSE, np.diff(system.layout.v_start)), 0.0, 2.0
    )
    drive = {
        "torque": lambda t, q, v: np.cos(5 * t) * tau,
        "external_forces": lambda t, q, v: np.sin(t) * f_ext,
        "damping": 0.5,
        "stiffness": spring,
        "rest": system.random_configuration(rng),
    }
    sizes = {"rk4": (4, 2e-2), "symplectic": (2, 5e-3), "implicit": (1, 5e-3)}
    if method == "DOP853":
        moved = simulate(system, q, 0.3 * v, [0.0, 0.2], method=method, **drive, **TIGHT)
        assert np.abs(moved.work[-1]) > 0.1
        assert np.abs(moved.energy_drift).max() < 1e-10 * moved.kinetic.max()
        return
    order, h = sizes[method]
    t = [0.0, 8 * h]
    drift = [simulate(system, q, 0.3 * v, t, method=method, substeps=8 * k, **drive).energy_drift[-1] for k in (1, 2)]
    assert np.log2(np.abs(drift[0] / drift[1])) == pytest.approx(order, abs=0.5)


@pytest.mark.parametrize("method", ADAPTIVE)
def test_scipy_solvers_agree_with_rk4_on_every_hinge(method):
    system = mb.models.random_tree(12, 5, branching=0.4)
    rng = np.random.default_rng(2)
    q, v = state(system, rng)
    t = [0.0, 0.02, 0.05]
    expected = simulate(system, q, v, t, substeps=40)
    tol = 1e-6 if method in ("RK23", "BDF", "LSODA", "Radau") else 1e-9  # low orders: keep them quick
    moved = simulate(system, q, v, t, method=method, rtol=tol / 100, atol=tol / 100)
    close(moved.v, expected.v, tol)
    close(mb.link_terms(system, moved.q).position, mb.link_terms(system, expected.q).position, tol)
    turned = np.flatnonzero(system.layout.coordinates != Coordinates.SCREWS)
    columns = system.layout.q_start[turned + 1][:, None] + np.arange(-4, 0)
    close(np.linalg.norm(moved.q[:, columns], axis=-1), np.ones((3, turned.size)), 1e-15)


def test_rates_are_the_derivative_of_integrate():
    system = mb.models.random_tree(12, 7)
    rng = np.random.default_rng(4)
    q, v = state(system, rng)
    from multibody_cases import derivative

    close(rates(system)(q, v), derivative(lambda s: mb.integrate(system, q, s * v)), 1e-10)


@pytest.mark.parametrize("method", FIXED_STEP)
def test_a_batch_is_so_many_motions(method):
    system = mb.models.random_tree(5, 8)
    rng = np.random.default_rng(6)
    q, v = state(system, rng, (2, 2))
    t = [0.0, 0.01, 0.03]
    torque = lambda t, q, v: -0.3 * v  # noqa: E731
    many = simulate(system, q, v, t, torque, method=method, substeps=2)
    assert many.q.shape == (3, 2, 2, system.nq) and many.momentum.shape == (3, 2, 2, 6)
    assert many.tau.shape == many.v.shape and many.energy_drift.shape == (3, 2, 2)
    one = simulate(system, q[1, 0], v[1, 0], t, torque, method=method, substeps=2)
    for key in ("q", "v", "tau", "kinetic", "potential", "work", "momentum"):
        close(getattr(many, key)[:, 1, 0], getattr(one, key), 1e-11)
    close(many.tau, -0.3 * many.v, 1e-15)
    assert "4 motions" in many.report() and "4 motions" in repr(many)


def test_springs_and_dampers_of_the_system():
    """A stiffened, damped pendulum without gravity is a linear oscillator, known in closed form."""
    bob = mb.models.pendulum(mass=2.0, length=0.5).bodies[0]
    from dataclasses import replace

    system = mb.System([replace(bob, damping=0.3, stiffness=8.0)], gravity=[0, 0, 0])
    t = np.linspace(0, 3, 31)
    decay, inertia = 0.3 / (2 * 0.5), 0.5
    w = np.sqrt(8.0 / inertia - decay**2)
    expected = 0.2 + np.exp(-decay * t) * (0.5 * np.cos(w * t) + 0.5 * decay / w * np.sin(w * t))
    moved = simulate(system, [0.7], [0.0], t, damping=True, stiffness=True, rest=[0.2], method="DOP853", **TIGHT)
    close(moved.q[:, 0], expected, 1e-10)
    free = simulate(system, [0.7], [0.1], t)
    close(free.q[:, 0], 0.7 + 0.1 * t, 1e-13)


def test_a_ball_spring_keeps_its_energy():
    body = mb.Body("top", np.diag([0.1, 0.2, 0.25, 1, 1, 1]), mb.Hinge.ball(), stiffness=3.0)
    system = mb.System([body], gravity=[0, 0, 0])
    q = mb.integrate(system, system.neutral(), [0.5, -0.8, 0.3])
    moved = simulate(system, q, [1.0, 0.5, -1.0], [0.0, 0.5, 1.0], stiffness=True, method="DOP853", **TIGHT)
    assert moved.worst_energy_drift < 1e-11
    assert np.ptp(moved.potential) > 0.1


def test_a_bar_if_asked_for(capsys):
    simulate(mb.models.pendulum(), [1.0], [0.0], [0.0, 0.1], progress=True)
    assert "pendulum by rk4" in capsys.readouterr().out
    simulate(mb.models.pendulum(), [1.0], [0.0], [0.0, 0.1], method="RK45", progress=True)
    assert "pendulum by RK45" in capsys.readouterr().out


@pytest.mark.parametrize("method", [*FIXED_STEP, *ADAPTIVE])
def test_one_time_is_no_motion(method):
    moved = simulate(mb.models.pendulum(), [1.0], [2.0], [0.5], method=method)
    assert moved.steps == 0 and moved.q.shape == (1, 1) and moved.worst_energy_drift == 0
    np.testing.assert_array_equal([moved.q, moved.v, moved.tau], [[[1.0]], [[2.0]], [[0.0]]])


@pytest.mark.parametrize("method", [*FIXED_STEP, *ADAPTIVE])
@pytest.mark.parametrize("argument", ["q", "v"])
@pytest.mark.parametrize("drive", ["torque", "external_forces"])
def test_a_law_cannot_change_the_motion_behind_its_back(method, argument, drive):
    """At later stages too: the first one alone had a state that is read-only, and scipy's methods had none."""
    system = mb.models.chain(2, seed=0)

    def law(t, q, v):
        if t > 0:
            target = {"q": q, "v": v}[argument]
            target *= 0
        return np.zeros(v.shape) if drive == "torque" else np.zeros((2, 6))

    with pytest.raises(ValueError, match="read-only"):
        simulate(system, [0.4, 0.3], [1.0, -1.0], [0.0, 0.05, 0.1], method=method, **{drive: law})


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"t": [0.0, 0.2, 0.1]}, ModelError, r"t must increase, but t\[1\] = 0.2 is followed by t\[2\] = 0.1"),
        ({"t": [0.0, 0.0]}, ModelError, "t must increase"),
        ({"t": [0.0, np.nan]}, ModelError, "t has entries that are not finite"),
        ({"t": 1.0}, ShapeError, r"t must have shape \(nt,\)"),
        ({"t": []}, ShapeError, "nt >= 1"),
        ({"q": [0.0]}, ShapeError, "q must have shape"),
        ({"v": [np.inf, 0.0]}, ModelError, "v has entries that are not finite"),
        ({"q": [[0.0, 0.0], [np.nan, 0.0]]}, ModelError, r"q has entries.*the first is that at \[1, 0\], nan"),
        ({"torque": [1.0]}, ShapeError, "torque must have shape"),
        ({"torque": np.zeros((2, 2))}, ShapeError, r"constant in time, samples at times t are kf\.LinearFeedback\("),
        (
            {"torque": np.zeros((2, 2)), "method": "symplectic"},
            ShapeError,
            r"constant in time, samples at times t are kf\.LinearFeedback\(",
        ),
        (
            {"torque": LinearFeedback(mb.models.chain(2), kd=1.0)},
            ModelError,
            r"'chain\(2\)' has hinge 'joint_0' \(revolute\) where system 'double pendulum' has 'shoulder'",
        ),
        ({"torque": lambda t, q, v: [1.0]}, ShapeError, r"torque\(t, q, v\) must have shape"),
        ({"torque": lambda t, q, v: [np.nan, 0.0]}, ModelError, r"torque\(t, q, v\) has entries that are not finite"),
        ({"torque": lambda t, q, v: np.zeros((3, 2))}, ShapeError, r"torque\(t, q, v\) has leading axes \(3,\)"),
        ({"external_forces": np.zeros((1, 6))}, ShapeError, "external_forces must have shape"),
        ({"method": "verlet"}, ModelError, "no method 'verlet'.*symplectic"),
        ({"substeps": 0}, ModelError, "substeps must be"),
        ({"substeps": 1.5}, ModelError, "substeps must be"),
        ({"damping": -1.0}, ModelError, "damping must not be negative"),
        ({"damping": [1.0, 2.0, 3.0]}, ShapeError, "damping must have shape"),
        ({"stiffness": np.ones((2, 2))}, ShapeError, "stiffness must be True"),
        ({"rest": np.zeros((2, 2))}, ShapeError, "rest must have shape"),
        ({"method": "RK45", "rtol": 0.0}, ModelError, "rtol and atol must be positive"),
        ({"method": "RK45", "q": np.zeros((3, 2))}, ShapeError, r"RK45 simulates one motion.*\(3,\)"),
        ({"q": np.zeros((3, 2)), "v": np.zeros((4, 2))}, ShapeError, "do not broadcast"),
    ],
)
def test_bad_input(change, error, match):
    given = {"q": [0.1, 0.2], "v": [0.0, 0.0], "t": [0.0, 0.1], **change}
    with pytest.raises(error, match=match):
        simulate(mb.models.double_pendulum(), **given)


@pytest.mark.parametrize(
    ("hinge", "stiffness", "match"),
    [
        (mb.Hinge.free(), 1.0, "hinge 'box': a free hinge takes no stiffness"),
        (mb.Hinge.ball(), [1.0, 2.0, 3.0], "hinge 'box': the stiffness of a ball hinge must be the same"),
    ],
)
def test_springs_that_have_no_meaning(hinge, stiffness, match):
    system = mb.System([mb.Body("box", np.eye(6), hinge)])
    with pytest.raises(ModelError, match=match):
        simulate(system, system.neutral(), np.zeros(system.nv), [0.0, 1.0], stiffness=stiffness)


def test_a_solver_that_gives_up_says_when():
    """v' = v^3 from v = 1 has no solution beyond t = 1/2."""
    system = mb.models.pendulum()
    with pytest.raises(KfdynError, match=r"RK45 gave up at t = 0\.499\d* s on system 'pendulum'.*'Radau'"):
        simulate(system, [0.0], [1.0], [0.0, 1.0], lambda t, q, v: v**3, method="RK45", gravity=np.zeros(3), rtol=1e-3)


@pytest.mark.parametrize("method", [*FIXED_STEP, "RK45"])
def test_nothing_that_moves(method):
    """No dofs at all, and for fixed steps no motions at all."""
    rock = mb.System([mb.Body("rock", np.eye(6))])
    assert simulate(rock, [], [], [0.0, 0.1], method=method).energy_drift.tolist() == [0.0, 0.0]
    if method in FIXED_STEP:
        none = simulate(mb.models.double_pendulum(), np.zeros((0, 2)), np.zeros((0, 2)), [0.0, 0.1], method=method)
        assert none.q.shape == (2, 0, 2) and none.worst_energy_drift == 0


def test_energy_from_nowhere_is_told():
    """A step of a second at 100 rad/s: thousands of turns, and 1e33 rad/s behind it."""
    arm = mb.models.stanford_arm()
    q, v = np.full(6, 0.4), np.array([np.full(6, 0.1), np.full(6, 100.0)])
    with pytest.warns(RuntimeWarning, match=r"of motion \[1\] is none: its kinetic energy .*more substeps"):
        simulate(arm, q, v, [0.0, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulate(arm, q, v[0], [0.0, 1.0], substeps=100)
        simulate(arm, arm.neutral(), np.zeros(6), [0.0, 1.0], gravity=[0, 0, 0])


def test_the_report_says_what_a_change_of_momentum_means():
    """Units, and whether the world has a hold on what moves: by a root hinge, or by a contact."""
    t, still = [0.0, 0.01, 0.02], [0.0, 0.0, 0.0]
    flyer = mb.models.free_flyer()
    hub = mb.Body("hub", np.eye(6), mb.Hinge.free())
    rod = mb.beam("rod", 1.0, 1.0, bending=(0.0, 10.0), modes=2, hinge=mb.Hinge.revolute(), parent="hub")
    held = flyer.with_loops([mb.Loop(None, flyer.body_names[-1], rows="point")])
    for system, expected in (
        (mb.models.pendulum(), True),
        (flyer, False),
        (held, True),
        (mb.FlexibleSystem([hub, rod]), False),
        (mb.FlexibleSystem([mb.beam("rod", 1.0, 1.0, bending=(0.0, 10.0), modes=2)]), True),
    ):
        start = np.zeros(system.nv) if system.loops else np.full(system.nv, 0.1)
        motion = simulate(system, system.neutral(), start, t, gravity=still, substeps=20)
        angular, linear = (abs(motion.momentum_drift[:, part]).max() for part in (slice(3), slice(3, 6)))
        last = motion.report().splitlines()[-1]
        assert last.startswith(f"momentum change {angular:.1e} kg m²/s, {linear:.1e} kg m/s, ")
        assert ("as it must" in last) is expected and ("an error if" in last) is not expected
        if not expected:
            assert max(angular, linear) < 1e-9
