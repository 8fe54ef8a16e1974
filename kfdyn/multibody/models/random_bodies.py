"""Random but possible bodies: rotations, inertias and hinges drawn from a generator."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kfdyn.errors import ModelError
from kfdyn.multibody.hinge import Hinge
from kfdyn.spatial import quaternion_to_matrix, spatial_inertia

Array = NDArray[np.float64]

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


def random_unit(rng: np.random.Generator) -> Array:
    """Unit vector, uniform on the sphere."""
    x = rng.normal(size=3)
    return x / np.linalg.norm(x)


def random_rotation(rng: np.random.Generator) -> Array:
    """Rotation matrix, uniform over all rotations."""
    q = rng.normal(size=4)
    return quaternion_to_matrix(q / np.linalg.norm(q))


def random_inertia(rng: np.random.Generator) -> Array:
    """Spatial inertia (6, 6) of a cloud of mass: J_c = tr(Σ) 1 − Σ with Σ ⪰ 0, so a body can have it."""
    spread = rng.normal(size=(3, 3), scale=0.15)
    second_moment = spread @ spread.T + 0.01 * np.eye(3)
    mass = rng.uniform(0.5, 2.0)
    J_com = mass * (np.trace(second_moment) * np.eye(3) - second_moment)
    return spatial_inertia(mass, rng.normal(size=3, scale=0.2), J_com)


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
