"""Configurations in which levers vanish: neutral, and every hinge turned by a multiple of a right angle."""

import numpy as np

import kfdyn as kf


def right_angles(system, rng):
    """Turn every revolute hinge by k·90°, k = −2 … 2; bases and balls by two such turns; slides stay."""
    q = system.neutral()
    following = {hinge for coupling in system.couplings for hinge in coupling.hinges if hinge not in coupling.named}
    for body in system.bodies:
        if body.hinge_name in following:  # a mimic joint has no place of its own in q
            continue
        at = system.v_slice(body.hinge_name)
        turning = [at.start + i for i, screw in enumerate(body.hinge.screws) if np.any(screw[:3])]
        for _ in range(min(len(turning), 2)):
            step = np.zeros(system.nv)
            step[rng.choice(turning)] = 0.5 * np.pi * rng.integers(-2, 3)
            q = kf.integrate(system, q, step)
    return q


def poses(system, number, seed=5):
    """(q, v) of the neutral pose and of ``number`` right-angle ones; at rest and with rates of −1, 0 or 1 in turn."""
    rng = np.random.default_rng(seed)
    yield system.neutral(), np.zeros(system.nv)
    for i in range(number):
        yield right_angles(system, rng), rng.integers(-1, 2, system.nv).astype(float) * (i % 2)


def samples_for(system):
    """Few, but enough for every covariance of the system: rounding errs alike at any number."""
    return max(500, 8 * system.n_bodies)
