"""Arms of R86 in motion, and the same arm as a System of the package."""

from typing import NamedTuple

import numpy as np

import kfdyn as kf
from kfdyn.textbook import r86


class Case(NamedTuple):
    system: kf.System
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    arm: r86.Arm
    chain: r86.Chain
    flip: slice = slice(None, None, -1)  # the package counts from the base, the report from the tip


def arm_case(seed, n=5, gravity=True):
    """A random serial arm of n links, every vector different, without rotors."""
    rng = np.random.default_rng(seed)
    tree = kf.models.random_tree(n, seed, ("revolute",), branching=0.0, armature=False)
    bodies = [
        kf.Body(f"body_{k}", b.inertia, b.hinge, f"body_{k - 1}" if k else None, b.rotation, b.position)
        for k, b in enumerate(tree.bodies)
    ]
    system = kf.System(bodies, gravity=rng.normal(size=3) * 5 if gravity else (0, 0, 0))
    q, v, tau = rng.normal(size=(3, n))
    arm = r86.arm_of(system)
    return Case(system, q, v, tau, arm, r86.chain_of(arm, q[::-1], v[::-1]))


def close(mine, theirs, tolerance=1e-10):
    """Agreement relative to the largest entry."""
    mine, theirs = np.asarray(mine, float), np.asarray(theirs, float)
    scale = max(np.abs(theirs).max(initial=0.0), 1e-300)
    assert mine.shape == theirs.shape
    assert np.abs(mine - theirs).max(initial=0.0) <= tolerance * scale, np.abs(mine - theirs).max() / scale
