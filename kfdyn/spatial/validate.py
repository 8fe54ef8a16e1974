"""Check that a 6×6 matrix is the inertia of a possible body."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError
from kfdyn.spatial._arrays import SYMMETRY_TOLERANCE, trailing
from kfdyn.spatial.inertia import inertia_parameters, structure_fault

ROUNDING = 1e-12  # of trace J: what J_c = J + m p~p~ may lose to cancellation


class TriangleInequalityWarning(UserWarning):
    """Principal moments of inertia that no distribution of positive mass has.

    Examples
    --------
    A body whose third moment exceeds the sum of the others, as some robots are published:

    >>> import warnings
    >>> from kfdyn.spatial import spatial_inertia
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     M6 = validate_inertia(spatial_inertia(1.0, [0, 0, 0], np.diag([1.0, 1.0, 3.0])), "elbow")
    >>> print(str(said[0].message)[:77])
    'elbow': principal moments of inertia 1 + 1 < 3 break the triangle inequality
    """


class IndefiniteInertiaWarning(TriangleInequalityWarning):
    """A negative principal moment of inertia, let pass on request: J1 < 0 means J3 >= J2 > J1 + J2 too.

    Examples
    --------
    >>> import warnings
    >>> from kfdyn.spatial import spatial_inertia
    >>> negative = spatial_inertia(1.0, [0, 0, 0], np.diag([1.0, 1.0, -0.1]))
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     M6 = validate_inertia(negative, "elbow", indefinite_inertia="warn")
    >>> said[0].category.__name__
    'IndefiniteInertiaWarning'
    """


def validate_inertia(
    M6: ArrayLike, name: str | Sequence[str] = "body", *, indefinite_inertia: Literal["refuse", "warn"] = "refuse"
) -> Array:
    """Spatial inertia, returned if a body can have it: M = [[J, m p~], [−m p~, m 1]] ⪰ 0.

    Parameters
    ----------
    M6 : (..., 6, 6)
    name : str or sequence of str
        Names the culprit in messages; a sequence names the entries of the first axis.
    indefinite_inertia : {"refuse", "warn"}
        What to do about a negative principal moment, the one fault that published robots are used with.

    Returns
    -------
    (..., 6, 6)
        ``M6`` as float64.

    Raises
    ------
    ModelError
        If an entry is not finite, the matrix is not symmetric or has not the form of a spatial inertia, the
        mass is negative, a mass-less body has a mass centre, or the inertia about the mass centre has a
        negative principal moment (which, with m ≥ 0, is when M has a negative eigenvalue), unless asked to warn.

    Warns
    -----
    TriangleInequalityWarning
        If one principal moment exceeds the sum of the others: impossible, yet common in published arms.
    IndefiniteInertiaWarning
        If asked to warn of a negative principal moment. Such an M is no covariance: sums of inertias (mass matrix,
        inverse dynamics) are well defined, filters only while every innovation variance stays positive.

    Notes
    -----
    Mass-less bodies are legal, with or without rotational inertia (an ideal rotor).
    Source: R86 (3.1). Cost: one 3×3 eigenvalue problem per body.

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial import spatial_inertia, validate_inertia
    >>> validate_inertia(spatial_inertia(-1.0, [0, 0, 0], np.eye(3)), name="forearm")
    Traceback (most recent call last):
    kfdyn.errors.ModelError: 'forearm': mass -1 is negative; a body needs mass >= 0
    """
    check_indefinite_inertia(indefinite_inertia)
    if not isinstance(name, str):
        stack = trailing(M6, (6, 6), "M6", finite=False)  # whose entry it is, is said below
        if stack.ndim < 3 or len(name) != len(stack):
            raise ShapeError(f"{len(name)} names for inertias of shape {stack.shape}; give one name per body")
        for M, label in zip(stack, name):
            validate_inertia(M, label, indefinite_inertia=indefinite_inertia)
        return stack
    M6 = trailing(M6, (6, 6), f"spatial inertia of '{name}'")

    gap, size = np.abs(M6 - np.swapaxes(M6, -1, -2)).max(axis=(-2, -1)), np.abs(M6).max(axis=(-2, -1))
    fault = gap > SYMMETRY_TOLERANCE * size
    _raise(fault, name, "spatial inertia is not symmetric; average it with its transpose if that is rounding")
    mass = np.trace(M6[..., 3:, 3:], axis1=-2, axis2=-1) / 3
    _raise(mass < 0, name, "mass {:.6g} is negative; a body needs mass >= 0", mass)
    lever = np.abs(M6[..., :3, 3:]).max(axis=(-2, -1))
    _raise((mass == 0) & (lever > 0), name, "no mass but a mass centre; set the blocks m p~ to zero")
    _raise(structure_fault(M6), name, "not of the form [[J, m p~], [-m p~, m 1]]; build it with spatial_inertia")
    moments = np.linalg.eigvalsh(inertia_parameters(M6).inertia_com)  # ascending
    slack = ROUNDING * np.trace(M6[..., :3, :3], axis1=-2, axis2=-1)
    indefinite = np.asarray(moments[..., 0] < -np.abs(slack))
    if indefinite_inertia == "refuse":
        _raise(
            indefinite,
            name,
            "principal moment of inertia {:.6g} about the mass centre is negative; check the signs of the inertia, and "
            "whether it was given about another point than the mass centre; or use it as it is, with "
            'indefinite_inertia="warn"',
            moments[..., 0],
        )
    elif indefinite.any():
        where = tuple(np.argwhere(indefinite)[0])
        warnings.warn(
            f"{_label(name, where)}: principal moment of inertia {moments[where][0]:.6g} about the mass centre is "
            "negative, as no body's is; the dynamics use it as it is given",
            IndefiniteInertiaWarning,
            stacklevel=2,
        )
    excess = moments[..., 2] - moments[..., 1] - moments[..., 0]
    fault = ~indefinite & (excess > 1e-9 * moments[..., 2] + np.abs(slack))
    if fault.any():
        where = tuple(np.argwhere(fault)[0])
        a, b, c = moments[where]
        warnings.warn(
            f"{_label(name, where)}: principal moments of inertia {a:.6g} + {b:.6g} < {c:.6g} break the "
            "triangle inequality: no distribution of mass has them; the dynamics use them as they are given",
            TriangleInequalityWarning,
            stacklevel=2,
        )
    return M6


def check_indefinite_inertia(value: str) -> None:
    """Refuse any word but the two that are known."""
    if value not in ("refuse", "warn"):
        raise ModelError(f'indefinite_inertia must be "refuse" or "warn", got {value!r}')


def _label(name: str, where: tuple[int, ...]) -> str:
    return f"'{name}'" + (f"[{', '.join(map(str, where))}]" if where else "")


def _raise(fault: NDArray[np.bool_], name: str, message: str, value: NDArray[np.floating] | None = None) -> None:
    if np.any(fault):
        where = tuple(int(i) for i in np.argwhere(fault)[0])
        text = message if value is None else message.format(value[where])
        raise ModelError(f"{_label(name, where)}: {text}")
