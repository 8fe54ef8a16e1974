"""Random bodies and motions for the tests of this room; a body that needs no inertia matrix is a point cloud."""

from typing import NamedTuple

import mpmath as mp
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

seeds = st.integers(0, 2**32 - 1)
fast = settings(max_examples=40, deadline=None)
few = settings(max_examples=10, deadline=None)  # for the 60-digit oracles

# Pinocchio writes [linear; angular]
SWAP = np.eye(6)[[3, 4, 5, 0, 1, 2]]


def random_rotation(rng, *shape):
    n = int(np.prod(shape))
    return Rotation.random(n, random_state=rng).as_matrix().reshape(*shape, 3, 3)


class Cloud(NamedTuple):
    """Point masses m (n,) at s (n, 3) in body axes: every property is a plain sum."""

    m: np.ndarray
    s: np.ndarray

    @property
    def parameters(self):
        mass = self.m.sum()
        com = self.m @ self.s / mass
        r = self.s - com
        squares = (r * r).sum(1)
        return (
            mass,
            com,
            np.einsum("n,nij->ij", self.m, squares[:, None, None] * np.eye(3)) - (r.T * self.m) @ r,
        )


def random_cloud(rng, n=6):
    return Cloud(rng.uniform(0.2, 2.0, n), rng.normal(size=(n, 3)))


def assert_close(actual, expected, tolerance=1e-12):
    """Largest error relative to the largest entry (or to 1)."""
    actual, expected = np.asarray(actual, dtype=float), np.asarray(expected, dtype=float)
    assert actual.shape == expected.shape
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


# --- a prescribed motion, differentiated to 60 digits; call these inside mp.workdps(DIGITS) ---

DIGITS = 60
ZERO = mp.mpf(0)
STEP = mp.mpf(10) ** -15  # central differences: error ~ STEP² = 1e-30


def exact(x):
    return np.vectorize(mp.mpf, otypes=[object])(np.asarray(x, dtype=float))


def skew_mp(w):
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]], dtype=object)


def cross_mp(a, b):
    return skew_mp(a).dot(b)


def rotation_mp(w):
    """exp(w~) as a power series, so that nothing of the package's Rodrigues formula is shared."""
    W, term, total = skew_mp(w), exact(np.eye(3)), exact(np.eye(3))
    for k in range(1, 120):
        term = term.dot(W) / k
        total = total + term
        if max(abs(x) for x in term.flat) < mp.mpf(10) ** -DIGITS:
            break
    return total


class Trajectory:
    """Pose R(t) = exp((a0 + a1 t + a2 t²)~), z(t) = b0 + b1 t + b2 t² of a body frame."""

    def __init__(self, rng):
        self.a = exact(rng.normal(size=(3, 3)))
        self.b = exact(rng.normal(size=(3, 3)))
        self.known = {}  # the differences of all quantities meet at a few times

    def rotation(self, t):
        if t not in self.known:
            self.known[t] = rotation_mp(self.a[0] + self.a[1] * t + self.a[2] * t * t)
        return self.known[t]

    def position(self, t):
        return self.b[0] + self.b[1] * t + self.b[2] * t * t

    def rate(self, f, t=ZERO):
        return (f(t + STEP) - f(t - STEP)) / (2 * STEP)

    def omega(self, t):
        """From ω~ = R'R*."""
        S = self.rate(self.rotation, t).dot(self.rotation(t).T)
        return np.array([S[2, 1], S[0, 2], S[1, 0]], dtype=object)

    def V(self, t=ZERO):
        """Spatial velocity at z in inertial axes."""
        return np.concatenate([self.omega(t), self.rate(self.position, t)])


def as_float(x):
    return np.array([float(e) for e in np.asarray(x, dtype=object).flat]).reshape(np.shape(x))
