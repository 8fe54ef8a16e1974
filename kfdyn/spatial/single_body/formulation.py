"""The four formulations of SRB: which frame the velocity is read in, and what that buys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.spatial._arrays import Array
from kfdyn.spatial.single_body.gyroscopic import gyroscopic_about_body, gyroscopic_about_point
from kfdyn.spatial.transform import _rigid


@dataclass(frozen=True)
class Formulation:
    """One choice of generalised velocity β = φ*(z, r) V(z), made by choosing the frame r.

    z is the origin of the body frame, V(z) the body's spatial velocity there in inertial axes. With
    φ = φ(z, r) follow β = φ*V(z), the force φ^-1 f(z), the momentum φ^-1 h(z) and the inertia ``φ^-1 M(z) φ^-*``.

    Attributes
    ----------
    key, title : str
    velocity, bias : str
        β and b as SRB writes them.
    conserves_momentum, bias_does_no_work, free_of_linear_velocity : bool
        What SRB's summary table states.
    gyroscopic : callable
        (M (..., 6, 6), β (..., 6)) -> b (..., 6).
    frame : callable
        (rotation, position, com) -> φ(z, r) (..., 6, 6); com in body axes, from z.
    coriolis : callable
        (ω, v(z), l(z, C)), inertial axes -> linear part of (dφ*/dt) V(z), not yet in the axes of r.

    Examples
    --------
    >>> from kfdyn.spatial.single_body import FORMULATIONS
    >>> point = FORMULATIONS["point"]
    >>> point.velocity, point.bias, point.conserves_momentum
    ('ᴵV(z)', 'V̄ω(z) M(z) Vω(z)', False)
    """

    key: str
    title: str
    velocity: str
    bias: str
    conserves_momentum: bool
    bias_does_no_work: bool
    free_of_linear_velocity: bool
    gyroscopic: Callable[[Array, Array], Array]
    frame: Callable[[Array, Array, Array], Array]
    coriolis: Callable[[Array, Array, Array], Array]


def _at_mass_centre(rotation: Array, position: Array, com: Array) -> Array:
    return _rigid(np.einsum("...ij,...j->...i", rotation, com), np.eye(3))


def _at_point(rotation: Array, position: Array, com: Array) -> Array:
    return _rigid(np.zeros_like(position), np.eye(3))


def _in_body_axes(rotation: Array, position: Array, com: Array) -> Array:
    return _rigid(np.zeros_like(position), rotation)


def _at_inertial_origin(rotation: Array, position: Array, com: Array) -> Array:
    return _rigid(-position, np.eye(3))


FORMULATIONS = MappingProxyType(
    {
        one.key: one
        for one in (
            Formulation(
                "cm",
                "mass centre, inertial derivative",
                "ᴵV(C)",
                "V̄ω(C) M(C) Vω(C)",
                conserves_momentum=True,
                bias_does_no_work=True,
                free_of_linear_velocity=True,
                gyroscopic=gyroscopic_about_point,
                frame=_at_mass_centre,
                coriolis=lambda omega, v, l: np.cross(omega, np.cross(omega, l)),
            ),
            Formulation(
                "point",
                "any point, inertial derivative",
                "ᴵV(z)",
                "V̄ω(z) M(z) Vω(z)",
                conserves_momentum=False,
                bias_does_no_work=False,
                free_of_linear_velocity=True,
                gyroscopic=gyroscopic_about_point,
                frame=_at_point,
                coriolis=lambda omega, v, l: np.zeros_like(v),
            ),
            Formulation(
                "body",
                "any point, body derivative",
                "ᴮV(z)",
                "V̄(z) h(z)",
                conserves_momentum=False,
                bias_does_no_work=True,
                free_of_linear_velocity=False,
                gyroscopic=gyroscopic_about_body,
                frame=_in_body_axes,
                coriolis=lambda omega, v, l: -np.cross(omega, v),
            ),
            Formulation(
                "inertial",
                "inertially referenced",
                "V_I = φ*(z, I) V(z)",
                "V̄_I h_I",
                conserves_momentum=True,
                bias_does_no_work=True,
                free_of_linear_velocity=False,
                gyroscopic=gyroscopic_about_body,
                frame=_at_inertial_origin,
                coriolis=lambda omega, v, l: -np.cross(omega, v),
            ),
        )
    }
)


def formulation_named(key: str) -> Formulation:
    """The formulation of this key, or a ModelError that lists the keys."""
    if key not in FORMULATIONS:
        raise ModelError(f"no formulation '{key}'; choose one of {', '.join(FORMULATIONS)}")
    return FORMULATIONS[key]
