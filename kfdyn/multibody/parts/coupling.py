"""Couplings: gears, belts, mimic joints, differentials and cams, where several hinges share fewer coordinates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody.parts.body import as_floats
from kfdyn.multibody.parts.hinge import RANK_TOLERANCE


@dataclass(frozen=True, eq=False, init=False)
class Coupling:
    """The positions of some hinges are X times fewer independent coordinates, plus offsets, or functions of one.

    ::

        q_i = Σ_j X_ij s_j + offset_i,     β_i = Σ_j X_ij ṡ_j        for the hinges i, X constant

    :meth:`by_functions` makes one whose hinges follow curves, q_i = f_i(s) and β_i = f_i'(s) ṡ. A gear
    or a mimic joint has one coordinate, a differential two. The coordinates s_j are named after the first hinges; where
    the first rows of X are a unit matrix they *are* the positions of those hinges.

    Parameters
    ----------
    hinges : sequence of str
        Names of g hinges of one dof each.
    X : (g, r) or (g,)
        Rates of the hinges for unit rates of the r ≤ g coordinates; of full column rank.
    offset : scalar or (g,)
        Positions of the hinges when all coordinates are 0.

    Attributes
    ----------
    curves : tuple of (Curve or None)
        The functions that the hinges follow, None at the first, which leads; empty where X is constant. A coupling
        with curves has neither ``X`` nor ``offset``: they depend on q.

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
    curves: tuple[Curve | None, ...] = field(repr=False)

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
        for key, value in (("hinges", names), ("X", matrix), ("offset", shift), ("curves", ())):
            object.__setattr__(self, key, value)

    @classmethod
    def by_functions(cls, leader: str, followers: Mapping[str, Any]) -> Coupling:
        """Couple hinges to another one by functions of its position: cams, knees, the polynomials of MJCF files.

        ::

            q_i = f_i(s),     β_i = f_i'(s) ṡ,     β̇_i = f_i'(s) s̈ + f_i''(s) ṡ²,     s the leader's position

        Parameters
        ----------
        leader : str
            The hinge whose position is the coordinate.
        followers : dict of str to function
            For each hinge that follows, one of: coefficients c₀, c₁, c₂ … of f(s) = Σ c_k s^k; a
            ``numpy.polynomial.Polynomial``; a spline of SciPy's (what has a method ``derivative``); or four functions
            f, f', f'', f''' of arrays. The third derivative is for derivatives of the dynamics alone.

        Returns
        -------
        Coupling
            One with a constant X where all functions are polynomials of degree 0 or 1.

        Examples
        --------
        A hinge that follows the square of another stands still at 0, so that only the first has inertia there:

        >>> import kfdyn as kf
        >>> arm = kf.models.double_pendulum()
        >>> bent = arm.with_couplings([kf.Coupling.by_functions("shoulder", {"elbow": [0, 0, 0.5]})])
        >>> bent.expand([0.4]), bent.expansion([0.4])
        (array([0.4 , 0.08]), array([[1. ],
               [0.4]]))
        """
        if not isinstance(followers, Mapping):
            raise ModelError(
                f"coupling of {leader!r}: followers must map names of hinges to functions, as in "
                f'{{"patella": [0, 0.3, 0.1]}}, got {type(followers).__name__}'
            )
        made = cls([leader, *followers], np.ones(1 + len(followers)))
        curves = [Curve.of(given, f"coupling of {told(made.hinges)}: {name!r}") for name, given in followers.items()]
        if all(curve.coefficients is not None and len(curve.coefficients) <= 2 for curve in curves):
            lines = [np.append(curve.coefficients, np.zeros(2))[:2] for curve in curves]  # type: ignore[arg-type]
            return cls(made.hinges, [1.0, *(line[1] for line in lines)], [0.0, *(line[0] for line in lines)])
        object.__setattr__(made, "curves", (None, *curves))
        object.__delattr__(made, "X")
        object.__delattr__(made, "offset")
        return made

    if not TYPE_CHECKING:

        def __getattr__(self, key: str) -> Any:
            """Say what a coupling with curves has not, so that nobody takes its X for constant."""
            if key in ("X", "offset"):
                raise ModelError(
                    f"coupling of {told(self.hinges)}: its hinges follow functions, so that its {key} depends on q; "
                    "system.expansion(q) is X, and system.expand(q) are the positions"
                )
            raise AttributeError(f"'Coupling' object has no attribute {key!r}")

    @property
    def size(self) -> int:
        """Number of its coordinates."""
        return 1 if self.curves else int(self.X.shape[1])

    @property
    def named(self) -> tuple[str, ...]:
        """The hinges that its coordinates are named after."""
        return self.hinges[: self.size]

    @property
    def is_selection(self) -> bool:
        """True if its coordinates are the positions of the hinges they are named after."""
        if self.curves:
            return True
        r = self.X.shape[1]
        return bool(np.array_equal(self.X[:r], np.eye(r)) and not self.offset[:r].any())


class Curve:
    """A function f of one coordinate with its first three derivatives; ``coefficients`` if it is a polynomial."""

    def __init__(self, coefficients: Array | None, functions: Sequence[Callable[..., Any]], where: str) -> None:
        self.coefficients, self.functions, self.where = coefficients, tuple(functions), where

    @classmethod
    def of(cls, given: Any, where: str) -> Curve:
        """Make one of what a user gives."""
        if isinstance(given, np.polynomial.Polynomial):
            given = given.convert().coef
        if callable(getattr(given, "derivative", None)):
            given = (given, *(given.derivative(k) for k in (1, 2, 3)))
        if isinstance(given, Sequence) and given and all(callable(f) for f in given):
            if len(given) != 4:
                raise ModelError(f"{where}: give f and three derivatives, f, f', f'' and f''', got {len(given)}")
            return cls(None, given, where)
        if callable(given):
            raise ModelError(
                f"{where}: a function alone does not tell its derivatives; give (f, f', f'', f'''), a spline of "
                "SciPy's, or the coefficients of a polynomial"
            )
        c = np.array(as_floats(given, f"{where}: coefficients"))
        if c.ndim != 1 or not c.size:
            raise ShapeError(f"{where}: coefficients c0, c1, ... must have shape (n,), got {c.shape}")
        if not np.isfinite(c).all():
            raise ModelError(f"{where}: coefficients must be finite")
        c = c[: max(int(np.flatnonzero(c).max(initial=0)), 0) + 1]  # without powers that are not there
        c.flags.writeable = False
        return cls(c, (), where)

    def __call__(self, s: Array, order: int = 0) -> Array:
        """f(s), or its derivative of so high an order, at most three; of any shape."""
        if self.coefficients is not None:
            c = self.coefficients
            for _ in range(order):
                c = c[1:] * np.arange(1, len(c))
            out = np.zeros(s.shape)
            for x in c[::-1]:
                out = out * s + x
            return out
        value = as_floats(self.functions[order](s), f"{self.where}: what its function gives")
        try:
            value = np.broadcast_to(value, s.shape)
        except ValueError:
            raise ShapeError(
                f"{self.where}: its function (derivative {order}) must answer an array of positions of shape "
                f"{s.shape} by one of the same shape, got {value.shape}"
            ) from None
        if not np.isfinite(value).all():
            raise ModelError(f"{self.where}: its function (derivative {order}) is not finite at some position")
        return value


def told(names: Sequence[str], most: int = 4) -> str:
    """Hinges in a sentence."""
    text = ", ".join(repr(name) for name in names[:most])
    return text + (f" and {len(names) - most} more" if len(names) > most else "")
