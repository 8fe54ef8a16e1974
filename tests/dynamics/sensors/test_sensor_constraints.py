"""Gears, mimic joints and loops: estimates against the dense joint Gaussian, and against dynamics at both ends."""

import numpy as np
import pytest
from against_dense import EXACT, OF_CONDITION, sizes
from dense_sensors import dense
from multibody_cases import forest, state
from sensor_cases import S, random_cov

import kfdyn as kf
from kfdyn.dynamics.sensors.solver.joins import independent_rows
from kfdyn.errors import UnobservableError
from kfdyn.spatial import spatial_inertia

KEYS = ("a", "tau", "body_accelerations", "hinge_forces", "external_forces")


def geared(seed, n=7):
    """A random forest in which some hinges of one dof share coordinates, wherever they are."""
    system, rng = forest(seed, n)
    single = [h for h, b in zip(system.hinge_names, system.bodies) if b.hinge.nv == 1 and b.hinge.nq == 1]
    rng.shuffle(single)
    couplings = []
    while len(single) >= 2:
        count = int(min(len(single), rng.integers(2, 4)))
        names, single = single[:count], single[count:]
        couplings.append(kf.Coupling(names, rng.normal(size=(count, int(rng.integers(1, count))))))
    frames = {name: kf.Frame(frame.body, frame.rotation, frame.position) for name, frame in system.frames.items()}
    return kf.System(system.bodies, system.gravity, frames, couplings=couplings), rng


def own_hinges(system):
    follow = {h for c in system.couplings for h in c.hinges if h not in c.named}
    return [h for h, b in zip(system.hinge_names, system.bodies) if b.hinge.nv and h not in follow]


def sensors_for(system, rng):
    """Torques or accelerations of every coordinate, and some of everything else."""
    out = []
    for hinge in own_hinges(system):
        own = system.v_slice(hinge)
        m = own.stop - own.start
        cov = 0.0 if rng.uniform() < 0.4 else random_cov(rng, m)
        kind = S.JointTorque if rng.uniform() < 0.6 else S.JointAcceleration
        out.append(kind(cov, hinge, bias=rng.normal(size=m)))
        if rng.uniform() < 0.3:
            out.append(S.MotorCurrent(0.5, 0.3, 20.0, hinge))
        if rng.uniform() < 0.3:
            out.append(S.JointTorque(random_cov(rng, m), hinge, rotor=False))
        if rng.uniform() < 0.3:
            out.append(S.JointPrior(random_cov(rng, m), hinge))
    bodies = list(system.body_names)
    out.append(S.Imu(rng.choice(bodies), random_cov(rng, 6)))
    out.append(S.ForceTorque(rng.choice(system.hinge_names), random_cov(rng, 6)))
    out.append(S.ExternalForce(rng.choice(bodies), random_cov(rng, 6)))
    if rng.uniform() < 0.3:
        out.append(S.ExternalForce(rng.choice(bodies), np.inf, moment=False))
    readings = [3 * rng.normal(size=s.size(system)) for s in out]
    if rng.uniform() < 0.3:
        readings[-2][:] = 0.0
        readings[0][0] = np.nan
    return out, readings


def hold(system, q, v, sensors, readings, loop_rows=()):
    """Everything against the dense Gaussian; "ok", "refused" or "skipped"."""
    d = dense(system, q, v, sensors, readings, loop_rows=loop_rows)
    if 1e9 < d.condition < 1e14:
        return "skipped"  # neither plainly determined nor plainly not
    if d.condition >= 1e14:
        with pytest.raises(UnobservableError):
            kf.estimate_dynamics(system, q, v, sensors, readings)
        return "refused"
    est = kf.estimate_dynamics(system, q, v, sensors, readings)
    tol = EXACT + OF_CONDITION * d.condition
    mean, cov = sizes(d, sensors)
    for key in KEYS:
        shape = getattr(est, key).shape
        np.testing.assert_allclose(
            getattr(est, key), d.mean[key].reshape(shape), rtol=0, atol=tol * mean[key], err_msg=key
        )
        variance = d.cov[key].diagonal().reshape(shape)
        np.testing.assert_allclose(est.std(key) ** 2, variance, rtol=0, atol=tol * cov[key], err_msg=key)
        np.testing.assert_allclose(est.cov(key), d.cov[key], rtol=0, atol=tol * cov[key], err_msg=key)
    assert int(est.dof) == d.dof
    np.testing.assert_allclose(est.nis, d.nis, rtol=tol, atol=tol)
    np.testing.assert_allclose(est.llf, d.llf, rtol=tol, atol=10 * tol)
    return "ok"


def test_random_gears_against_the_dense_gaussian():
    outcomes = []
    for seed in range(100):
        system, rng = geared(seed, 2 + seed % 6)
        if not system.couplings:
            continue
        q, v = state(system, rng)
        outcomes.append(hold(system, q, v, *sensors_for(system, rng)))
    assert outcomes.count("ok") >= 25 and outcomes.count("refused") >= 3, outcomes


def test_exact_torques_of_gears_are_forward_dynamics_and_exact_accelerations_inverse():
    done = 0
    for seed in range(20):
        system, rng = geared(seed, 6)
        if not system.couplings:
            continue
        q, v = state(system, rng, (3,))
        tau = rng.normal(size=(3, system.nv))
        a = kf.forward_dynamics(system, q, v, tau)
        condition = np.linalg.cond(kf.mass_matrix(system, q)).max()
        est = kf.estimate_dynamics(system, q, v, [S.JointTorque(0.0)], [tau])
        np.testing.assert_allclose(est.a, a, rtol=0, atol=1e-13 * condition * np.abs(a).max())
        ends = kf.estimate_dynamics(system, q, v, [S.JointAcceleration(0.0)], [a])
        size = max(np.abs(kf.bias_forces(system, q, v)).max(), np.abs(tau).max())
        np.testing.assert_allclose(ends.tau, tau, rtol=0, atol=1e-13 * condition * size)
        done += 1
    assert done >= 8


def closed(name):
    """A linkage of the package with its loops, a state on them, and every joint torque read."""
    rng = np.random.default_rng(4)
    system = {
        "four_bar": kf.models.four_bar,
        "slider_crank": kf.models.slider_crank,
        "stewart": kf.models.stewart_platform,
    }[name]()
    guess = {
        "four_bar": lambda: kf.models.four_bar_configuration(0.7),
        "slider_crank": lambda: np.array([0.6, -0.8, *np.zeros(system.nq - 2)]),
        "stewart": lambda: kf.models.stewart_configuration([0.05, -0.03, 1.0]),
    }[name]()
    return system, kf.assemble(system, guess), rng


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "stewart"])
def test_loops_against_the_dense_gaussian(name):
    system, q, rng = closed(name)
    J = np.asarray(kf.multibody.loops.closure.constraint_jacobian(system, q))
    null = np.linalg.svd(J)[2][np.linalg.matrix_rank(J, tol=1e-9) :]
    v = rng.normal(size=len(null)) @ null
    chosen = independent_rows(system, q.tobytes())
    starts = np.cumsum([0, *(len(loop.rows) for loop in system.loops)])
    rows = [start + i for start, part in zip(starts, chosen) for i in part]
    sensors = [S.JointTorque(0.3), S.JointAcceleration(2.0, system.hinge_names[0]), S.Imu(system.body_names[-1], 0.2)]
    readings = [rng.normal(size=s.size(system)) for s in sensors]
    assert hold(system, q, v, sensors, readings, rows) == "ok"
    tau = rng.normal(size=system.nv)
    est = kf.estimate_dynamics(system, q, v, [S.JointTorque(0.0)], [tau])
    a = kf.forward_dynamics(system, q, v, tau)
    np.testing.assert_allclose(est.a, a, rtol=0, atol=1e-9 * max(1.0, np.abs(a).max()))


ROLLING = {
    "in the world's axes": [kf.Loop(None, "contact", rows="point", rolling="disc")],
    "in axes that turn with the carrier": [kf.Loop("contact", None, rows=(0, 3, 4), rolling="disc")],
    "two contacts": [kf.Loop("contact", None, rows=(3,), rolling="disc"), kf.Loop(None, "disc", rows=(5,))],
}


@pytest.mark.parametrize("loops", ROLLING.values(), ids=ROLLING)
@pytest.mark.parametrize("seed", range(3))
def test_what_rolls_is_held_where_it_touches(loops, seed):
    """A coin whose contact is a frame of the carrier, which does not spin: forward dynamics, and Newton's law."""
    slides, lean = np.eye(6)[3:].tolist(), [[0, 0, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0]]
    disc = spatial_inertia(2.0, [0, 0, 0], np.diag([0.045, 0.09, 0.045]))
    bodies = [
        kf.Body("carrier", np.zeros((6, 6)), kf.Hinge.succession([*slides, *lean])),
        kf.Body("disc", disc, kf.Hinge.revolute([0, 1, 0]), "carrier"),
    ]
    frames = {"contact": kf.Frame("carrier", position=[0, 0, -0.3])}
    coin, rng = kf.System(bodies, frames=frames, loops=loops), np.random.default_rng(seed)
    q, tau = coin.random_configuration(rng), rng.normal(size=6)
    v = kf.impact(coin, q, rng.normal(size=6)).v
    a = kf.forward_dynamics(coin, q, v, tau)
    est = kf.estimate_dynamics(coin, q, v, [S.JointTorque(0.0)], [tau])
    np.testing.assert_allclose(est.a, a, atol=1e-12 * np.abs(a).max())
    np.testing.assert_allclose(est.tau, tau, atol=1e-12 * np.abs(a).max())
    if len(loops) == 1 and loops[0].frame_a is None:  # what the ground gives, the hinge need not
        contact = kf.constraint_forces(coin, q, v, tau)[0]
        moved = kf.frame_acceleration(coin.open_tree, q, v, a, "disc")[3:]
        by_hinge = 2.0 * (moved - coin.gravity) - contact
        np.testing.assert_allclose(est.hinge_forces[1, 3:], by_hinge, atol=1e-11 * np.abs(by_hinge).max())


def test_likelihood_and_draws_of_a_gear():
    """The gradient against differences, at a coupling and elsewhere; draws have the covariance that is told."""
    system, rng = next((s, r) for s, r in (geared(seed, 5) for seed in range(50)) if s.couplings)
    q, v = state(system, rng)
    name = system.couplings[0].named[0]
    rest = [h for h in own_hinges(system) if h != name]
    sensors = [S.JointTorque(0.4, name), S.JointAcceleration(0.7, name), S.JointTorque(0.3, rest)]
    sensors.append(S.Imu(system.body_names[-1], 0.2))
    readings = [rng.normal(size=s.size(system)) for s in sensors]
    est = kf.estimate_dynamics(system, q, v, sensors, readings)
    g, h = est.gradient(), 1e-5

    def llf(i, cov=0.0, reading=0.0):
        changed = [s.replace(cov=s.cov + cov) if j == i else s for j, s in enumerate(sensors)]
        moved = [y + reading if j == i else y for j, y in enumerate(readings)]
        return float(kf.estimate_dynamics(system, q, v, changed, moved).llf)

    for i in range(4):
        slope = (llf(i, cov=h) - llf(i, cov=-h)) / (2 * h)
        np.testing.assert_allclose(np.trace(g.cov[i]), slope, rtol=1e-6, atol=1e-6)
        slope = (llf(i, reading=h) - llf(i, reading=-h)) / (2 * h)
        np.testing.assert_allclose(g.readings[i].sum(), slope, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(est.residuals[i], readings[i] - est.predicted[i], rtol=1e-9, atol=1e-9)
    n = 4000
    drawn = est.draw(1, n)
    for key in ("a", "tau"):
        cov = est.cov(key)
        error = np.sqrt((np.outer(cov.diagonal(), cov.diagonal()) + cov**2) / n)
        assert np.all(np.abs(np.cov(drawn[key].T).reshape(cov.shape) - cov) < 5 * error + 1e-12)


def test_what_a_coupling_leaves_undetermined_is_named():
    system, rng = next((s, r) for s, r in (geared(seed, 5) for seed in range(50)) if s.couplings)
    q, v = state(system, rng)
    name = system.couplings[0].named[0]
    rest = [h for h in own_hinges(system) if h != name]
    others = S.JointAcceleration(0.1, rest)
    with pytest.raises(UnobservableError, match=name):
        kf.estimate_dynamics(system, q, v, [others], [np.zeros(others.size(system))])
    std = kf.observability(system, q, [others]).std("a")
    assert np.isinf(std[system.v_slice(name)]).all() and np.isfinite(std[system.v_slice(rest[0])]).all()
