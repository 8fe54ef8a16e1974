"""Random robots with random sensors: exact and noisy, correlated, doubled, missing, flat and known forces."""

import numpy as np
from multibody_cases import forest, state

import kfdyn as kf
import kfdyn.multibody as mb

S = kf.sensors


def random_cov(rng, n, low=-2.0, high=1.0):
    A = rng.normal(size=(n, n))
    size = 10.0 ** rng.uniform(low, high)
    return size * (A @ A.T / n + 0.1 * np.eye(n))


def case(seed, n=None):
    """(system, q, v, sensors, readings), readings near what the robot could have."""
    system, rng = forest(seed, n)
    bodies = list(system.body_names)
    frames = {f"frame_{i}": mb.Frame(rng.choice(bodies), random_rotation(rng), rng.normal(size=3)) for i in range(4)}
    system = mb.System(system.bodies, system.gravity, frames, system.name)
    q, v = state(system, rng)
    sensors = []
    hinges = [h for h, b in zip(system.hinge_names, system.bodies) if b.hinge.nv]
    style = rng.choice(["torque", "acceleration", "mixed", "prior", "bare"], p=[0.38, 0.15, 0.25, 0.2, 0.02])
    for hinge in hinges:
        m = system.v_slice(hinge).stop - system.v_slice(hinge).start
        how = style if style in ("torque", "acceleration") else rng.choice(["torque", "acceleration"])
        exact = rng.uniform() < 0.4
        if style == "bare" or rng.uniform() < 0.02:
            continue
        cov = 0.0 if exact else random_cov(rng, m)
        if style == "prior":
            sensors.append(S.JointPrior(random_cov(rng, m), hinge))
        if style != "prior" or rng.uniform() < 0.5:
            kind = S.JointTorque if how == "torque" else S.JointAcceleration
            sensors.append(kind(cov, hinge, bias=rng.normal(size=m)))
        if rng.uniform() < 0.15:
            sensors.append(S.MotorCurrent(0.5, 0.3, 20.0, hinge))
        if rng.uniform() < 0.1:
            sensors.append(S.JointTorque(random_cov(rng, m), hinge, rotor=False))
    places = bodies + list(frames)
    for _ in range(rng.integers(0, 4)):
        kind = [S.Accelerometer, S.AngularAcceleration, S.Imu][rng.integers(3)]
        size = kind.entries
        cov = 0.0 if rng.uniform() < 0.06 else 1e-9 if rng.uniform() < 0.05 else random_cov(rng, size)
        place = rng.choice(places)
        sensors.append(kind(place, cov, bias=0.1 * rng.normal(size=size)))
        if rng.uniform() < 0.2:  # a second one at the same place
            sensors.append(kind(place, random_cov(rng, size)))
    for _ in range(rng.integers(0, 3)):
        hinge = rng.choice(system.hinge_names)
        k = system.hinge_index(hinge)
        own = [name for name, frame in system.frames.items() if frame.body == bodies[k]]
        cov = 0.0 if rng.uniform() < 0.1 else random_cov(rng, 6)
        way = rng.choice(["child_to_parent", "parent_to_child"])
        sensors.append(S.ForceTorque(hinge, cov, frame=rng.choice([*own, None]), direction=str(way)))
    for _ in range(rng.integers(0, 4)):
        place, axes = rng.choice(places), str(rng.choice(["world", "frame"]))
        moment = bool(rng.uniform() < 0.7)
        size = 6 if moment else 3
        kind = rng.choice(["flat", "known", "some", "wide"], p=[0.12, 0.2, 0.6, 0.08])
        cov = {"flat": np.inf, "known": 0.0, "some": random_cov(rng, size), "wide": 1e9}[kind]
        if kind == "some" and rng.uniform() < 0.15:
            cov = np.where(rng.uniform(size=size) < 0.3, np.inf, rng.uniform(0.1, 2, size))
        sensors.append(S.ExternalForce(place, cov, axes, moment))
    readings = []
    for s in sensors:
        size = s.size(system)
        y = 3 * rng.normal(size=size)
        if not s.prior and rng.uniform() < 0.1:
            y[rng.uniform(size=size) < 0.5] = np.nan
        readings.append(None if s.prior and rng.uniform() < 0.3 else y)
    return system, q, v, sensors, readings


def random_rotation(rng):
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return Q * np.sign(np.linalg.det(Q))


def wrist():
    """Axes z, y, z through the centre of one body, which lock where the tilt is 0."""
    none = np.zeros((6, 6))
    first = kf.Body("first", none, kf.Hinge.revolute([0, 0, 1]), hinge_name="pan")
    second = kf.Body("second", none, kf.Hinge.revolute([0, 1, 0]), "first", hinge_name="tilt")
    hand = kf.Body("hand", np.diag([1.0, 2.0, 2.5, 1.0, 1.0, 1.0]), kf.Hinge.revolute([0, 0, 1]), "second")
    return kf.System([first, second, hand])
