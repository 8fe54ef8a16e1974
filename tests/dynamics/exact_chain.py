"""Forward dynamics of a serial chain in 50 digits: articulated bodies in each link's own frame (Featherstone).

An oracle of its own: it shares no frame, no order of operations and no number type with the sweeps of kfdyn. Rotations
and axes that are so only to rounding mean slightly different things in different frames; chains along the axes of
parallel frames (:func:`aligned_chain`) are told to both without any rounding.
"""

from dataclasses import replace

import mpmath as mp
import numpy as np

import kfdyn as kf
from kfdyn.spatial import spatial_inertia

DIGITS = 50


def aligned_chain(n, seed=0, tip=1.0):
    """A chain of n revolute links along random axes of its frames, the last one ``tip`` times as heavy."""
    rng = np.random.default_rng(seed)
    bodies = []
    for k in range(n):
        factor = rng.normal(scale=0.05, size=(3, 3))
        spread = factor @ factor.T  # second moments of mass, so that the inertia is one that a body can have
        inertia = spatial_inertia(
            rng.uniform(0.5, 2.0), rng.normal(scale=0.2, size=3), np.trace(spread) * np.eye(3) - spread
        )
        bodies.append(
            kf.Body(
                f"link {k}",
                inertia * tip if k == n - 1 else inertia,
                kf.Hinge.revolute(np.eye(3)[rng.integers(3)]),
                f"link {k - 1}" if k else None,
                position=rng.normal(scale=0.3, size=3),
            )
        )
    return kf.System(bodies, name=f"chain of {n}")


def heavy_tip(system, tip):
    """The same chain with its last link ``tip`` times as heavy."""
    last = system.bodies[-1]
    return kf.System([*system.bodies[:-1], replace(last, inertia=tip * last.inertia)])


def exact_forward_dynamics(system, q, v, tau):
    """Accelerations (n,) of a chain of revolute hinges, as mpmath numbers."""
    layout = system.layout
    n = system.n_bodies
    assert (layout.order == np.arange(n)).all() and (layout.parent == np.arange(-1, n - 1)).all()
    assert not layout.screws[:, 3:].any()
    with mp.workdps(DIGITS):
        inertia, bias, transform, coriolis, axis = [], [], [], [], []
        velocity = exact(np.zeros(6))
        for k in range(n):
            X = motion_transform(layout.rotation[k], layout.position[k], layout.screws[k, :3], q[k])
            S = exact(layout.screws[k])
            joint = S * mp.mpf(v[k])
            velocity = X @ velocity + joint
            I = link_inertia(layout.mass[k], layout.com[k], layout.J[k])
            inertia.append(I)
            bias.append(-(motion_cross(velocity).T @ (I @ velocity)))  # v ×* I v
            transform.append(X)
            coriolis.append(motion_cross(velocity) @ joint)
            axis.append(S)
        U, d, u = [None] * n, [None] * n, [None] * n
        for k in reversed(range(n)):
            U[k] = inertia[k] @ axis[k]
            d[k] = axis[k] @ U[k] + mp.mpf(layout.armature[k])
            u[k] = mp.mpf(tau[k]) - axis[k] @ bias[k]
            if k:
                articulated = inertia[k] - np.outer(U[k], U[k]) / d[k]
                pressed = bias[k] + articulated @ coriolis[k] + U[k] * (u[k] / d[k])
                X = transform[k]
                inertia[k - 1] = inertia[k - 1] + X.T @ (articulated @ X)
                bias[k - 1] = bias[k - 1] + X.T @ pressed
        a, moved = [], np.concatenate([exact(np.zeros(3)), -exact(system.gravity)])
        for k in range(n):
            moved = transform[k] @ moved + coriolis[k]
            a.append((u[k] - U[k] @ moved) / d[k])
            moved = moved + axis[k] * a[k]
        return np.array(a)


def exact(array):
    """The same numbers, digit by digit."""
    return np.vectorize(mp.mpf, otypes=[object])(array)


def skew(x):
    o = mp.mpf(0)
    return np.array([[o, -x[2], x[1]], [x[2], o, -x[0]], [-x[1], x[0], o]])


def block(a, b, c, d):
    return np.concatenate([np.concatenate([a, b], 1), np.concatenate([c, d], 1)])


def motion_transform(rotation, position, axis, angle):
    """From the parent's frame to the child's, [angular; linear]."""
    turn, angle = skew(exact(axis)), mp.mpf(angle)
    R = exact(rotation) @ (exact(np.eye(3)) + mp.sin(angle) * turn + (1 - mp.cos(angle)) * (turn @ turn))
    return block(R.T, exact(np.zeros((3, 3))), -R.T @ skew(exact(position)), R.T)


def motion_cross(v):
    w, u = skew(v[:3]), skew(v[3:])
    return block(w, exact(np.zeros((3, 3))), u, w)


def link_inertia(mass, com, J):
    m, c = mp.mpf(mass), skew(exact(com))
    return block(exact(J), m * c, -m * c, m * exact(np.eye(3)))
