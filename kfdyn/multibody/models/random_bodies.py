"""Random but possible bodies: rotations, inertias and hinges drawn from a generator."""

from __future__ import annotations

import numpy as np

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.multibody.parts.hinge import Hinge
from kfdyn.spatial import quaternion_to_matrix, spatial_inertia

KINDS = (
    "revolute",
    "prismatic",
    "ball",
    "universal",
    "helical",
    "free",
    "cylindrical",
    "gimbal",
    "planar",
    "fixed",
    "succession",
    "custom",
)


def random_unit(rng: np.random.Generator, n: int) -> Array:
    """Draw n unit vectors (n, 3), uniform on the sphere."""
    x = rng.normal(size=(n, 3))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def random_rotation(rng: np.random.Generator, n: int) -> Array:
    """Draw n rotation matrices (n, 3, 3), uniform over all rotations."""
    q = rng.normal(size=(n, 4))
    return quaternion_to_matrix(q / np.linalg.norm(q, axis=1, keepdims=True))


def random_inertia(rng: np.random.Generator, n: int) -> Array:
    """Draw n inertias (n, 6, 6) of clouds of mass: J_c = tr(Σ) 1 − Σ with Σ ≻ 0, so a body can have them."""
    spread = rng.normal(size=(n, 3, 3), scale=0.15)
    second_moment = spread @ np.swapaxes(spread, 1, 2) + 0.01 * np.eye(3)
    mass = rng.uniform(0.5, 2.0, n)
    trace = np.trace(second_moment, axis1=1, axis2=2)[:, None, None]
    J_com = mass[:, None, None] * (trace * np.eye(3) - second_moment)
    return spatial_inertia(mass, rng.normal(size=(n, 3), scale=0.2), J_com)


def random_hinge(rng: np.random.Generator, kind: str) -> Hinge:
    """Hinge of the given kind with random axes."""
    a, b, c = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    match kind:
        case "revolute" | "prismatic" | "cylindrical":
            return getattr(Hinge, kind)(a)
        case "helical":
            return Hinge.helical(a, pitch=rng.uniform(-0.3, 0.3))
        case "universal":
            return Hinge.universal(a, a + b)
        case "gimbal":
            return Hinge.gimbal(a, b + 0.5 * c, c)
        case "planar":
            return Hinge.planar(a, b)
        case "fixed" | "ball" | "free":
            return getattr(Hinge, kind)()
        case "succession":
            turn = np.concatenate([a, rng.normal(size=3, scale=0.3)])
            slide = np.concatenate([np.zeros(3), rng.normal(size=3)])
            return Hinge.succession([turn, slide, np.concatenate([b, rng.normal(size=3, scale=0.3)])])
        case "custom":
            return Hinge.custom(rng.normal(size=(rng.integers(1, 6), 6)))
    raise ModelError(f"there is no hinge of kind {kind!r}; the kinds are {', '.join(KINDS)}")
