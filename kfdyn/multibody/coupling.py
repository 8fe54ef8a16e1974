"""Couplings: gears, belts, mimic joints and differentials, where several hinges share fewer coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody.body import as_floats
from kfdyn.multibody.hinge import RANK_TOLERANCE

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, init=False)
class Coupling:
    """The positions of some hinges are X times fewer independent coordinates, plus offsets.

    ::

        q_i = Σ_j X_ij s_j + offset_i,     β_i = Σ_j X_ij ṡ_j        for the hinges i, X constant

    A gear or a mimic joint has one coordinate, a differential two. The coordinates s_j are named after the first
    hinges; where the first rows of X are a unit matrix they *are* the positions of those hinges.

    Parameters
    ----------
    hinges : sequence of str
        Names of g hinges of one dof each.
    X : (g, r) or (g,)
        Rates of the hinges for unit rates of the r ≤ g coordinates; of full column rank.
    offset : scalar or (g,)
        Positions of the hinges when all coordinates are 0.

    Notes
    -----
    To the filter a gear is two sensors that report only their sum: T = X*T_hinges (THEORY section 12). An armature of
    hinge i enters as X_ij² R_i: the rotor behind a gear counts with the square of the ratio.

    Examples
    --------
    A motor that turns three times as fast as the arm it drives:

    >>> import kfdyn as kf
    >>> (rod,) = kf.models.uniform_chain(1).bodies
    >>> rotor = kf.Body("rotor", np.diag([0.01, 0.01, 0.01, 0, 0, 0]), kf.Hinge.revolute())
    >>> geared = kf.System([rod, rotor], couplings=[kf.Coupling([rod.hinge_name, "rotor"], [1.0, 3.0])])
    >>> geared.nv, kf.mass_matrix(geared, [0.0]).round(6)  # 1/3 + 9 · 0.01
    (1, array([[0.423333]]))
    """

    hinges: tuple[str, ...]
    X: Array = field(repr=False)
    offset: Array = field(repr=False)

    def __init__(self, hinges: Sequence[str], X: ArrayLike, offset: ArrayLike = 0.0) -> None:
        names = (hinges,) if isinstance(hinges, str) else tuple(hinges)
        if not names or not all(isinstance(name, str) for name in names):
            raise ModelError(f"a coupling needs the names of its hinges, got {hinges!r:.80}")
        if len(set(names)) < len(names):
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise ModelError(f"coupling of {told(names)}: hinge {twice!r} is named twice; name each once")
        where = f"coupling of {told(names)}"
        matrix = np.array(as_floats(X, f"{where}: X"))
        matrix = matrix[:, None] if matrix.ndim == 1 else matrix
        if matrix.ndim != 2 or matrix.shape[0] != len(names) or matrix.shape[1] > len(names):
            raise ShapeError(
                f"{where}: X must have one row for each of the {len(names)} hinges and at most as many columns, got "
                f"{matrix.shape}"
            )
        shift = np.array(as_floats(offset, f"{where}: offset"))
        if shift.shape not in ((), (len(names),)):
            raise ShapeError(f"{where}: offset must be a number or have shape ({len(names)},), got {shift.shape}")
        if not (np.isfinite(matrix).all() and np.isfinite(shift).all()):
            raise ModelError(f"{where}: X and offset must be finite")
        largest = np.abs(matrix).max(axis=0)
        unit = matrix / np.where(largest > 0, largest, 1.0)  # whose squares are doubles
        size = np.linalg.norm(unit, axis=0)
        if (size == 0).any() or (matrix.shape[1] and np.linalg.svd(unit / size, compute_uv=False)[-1] < RANK_TOLERANCE):
            raise ModelError(
                f"{where}: the columns of X are linearly dependent (or zero), so that some coordinate moves nothing "
                "of its own; leave it out"
            )
        shift = np.broadcast_to(shift, (len(names),)).copy()
        matrix.flags.writeable = shift.flags.writeable = False
        for key, value in (("hinges", names), ("X", matrix), ("offset", shift)):
            object.__setattr__(self, key, value)

    @property
    def named(self) -> tuple[str, ...]:
        """The hinges that its coordinates are named after."""
        return self.hinges[: self.X.shape[1]]

    @property
    def is_selection(self) -> bool:
        """Whether its coordinates are the positions of the hinges they are named after."""
        r = self.X.shape[1]
        return bool(np.array_equal(self.X[:r], np.eye(r)) and not self.offset[:r].any())


def told(names: Sequence[str], most: int = 4) -> str:
    """Hinges in a sentence."""
    text = ", ".join(repr(name) for name in names[:most])
    return text + (f" and {len(names) - most} more" if len(names) > most else "")
