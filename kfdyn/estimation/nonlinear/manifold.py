"""⊕ and ⊖ on rows, and their Jacobians: where a state or a reading is a point on a manifold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.model.blocks import FloatArray
from kfdyn.estimation.nonlinear.jacobians import Differentiator


class Manifold:
    """Points, as rows of numbers, and tangents that move them: plus(x, d) = x ⊕ d, minus(y, x) = y ⊖ x.

    ::

        x ⊕ (y ⊖ x) = y
        x ⊕ (d + δ) = (x ⊕ d) ⊕ J(d) δ + O(δ²)          J: the right Jacobian of a Lie group's exponential

    Points may have more numbers than tangents (a quaternion has 4, its tangent 3).

    Parameters
    ----------
    plus, minus : callable, optional
        Addition and subtraction if not given. An angle needs only ``minus``, which wraps.
    jacobian : callable, optional
        J(d), (rows, n) to (rows, n, n); by differences if not given. With both of the above missing it is 1.
    name : str
        What error messages call its points.

    Attributes
    ----------
    is_vector_space : bool
        Whether plus and minus are addition and subtraction, so that every Jacobian is 1.

    Examples
    --------
    >>> angle = Manifold(minus=lambda y, x: (y - x + np.pi) % (2 * np.pi) - np.pi)
    >>> angle.minus(np.array([[3.1]]), np.array([[-3.1]])).round(4)
    array([[-0.0832]])
    """

    def __init__(
        self,
        plus: Callable[..., Any] | None = None,
        minus: Callable[..., Any] | None = None,
        jacobian: Callable[..., Any] | None = None,
        name: str = "x",
    ) -> None:
        if plus is not None and minus is None:
            raise ModelError(f"plus of {name} is given without minus; give both, with x ⊕ (y ⊖ x) = y")
        if jacobian is not None and minus is None:
            raise ModelError(f"the Jacobian of ⊕ of {name} is given without plus and minus")
        self._plus, self._minus, self._jacobian, self.name = plus, minus, jacobian, name
        self.is_vector_space = minus is None
        # A minus alone wraps: its plus is addition, so every Jacobian is 1.
        self.adds = plus is None
        self._differentiate = Differentiator()

    def plus(self, x: Any, d: Any) -> Any:
        """x ⊕ d, rows."""
        if self._plus is None:
            return x + d
        value = np.asarray(self._plus(x, d))
        if value.shape != np.shape(x):
            raise ShapeError(f"plus of {self.name} returned shape {value.shape} for x of shape {np.shape(x)}")
        return value

    def minus(self, y: Any, x: Any) -> Any:
        """y ⊖ x, rows."""
        return y - x if self._minus is None else np.asarray(self._minus(y, x))

    def plus_jacobian(self, x: FloatArray, d: FloatArray) -> FloatArray:
        """J with x ⊕ (d + δ) = (x ⊕ d) ⊕ J δ, (rows, n, n)."""
        rows, n = d.shape
        if self.adds:
            return np.broadcast_to(np.eye(n), (rows, n, n))
        if self._jacobian is not None:
            return self._given(d)
        at = self.plus(x, d)
        return self._differentiate(lambda e, i: self.minus(self.plus(x[i], d[i] + e), at[i]), n, rows, None)

    def minus_jacobian(self, y: FloatArray, x: FloatArray) -> FloatArray:
        """L with y ⊖ (x ⊕ δ) = (y ⊖ x) − L δ, (rows, n, n); J(−(y ⊖ x))⁻¹ on a Lie group."""
        d = self.minus(y, x)
        rows, n = d.shape
        if self.adds:
            return np.broadcast_to(np.eye(n), (rows, n, n))
        if self._jacobian is not None:
            return np.asarray(np.linalg.inv(self._given(-d)), np.float64)
        return self._differentiate(lambda e, i: d[i] - self.minus(y[i], self.plus(x[i], e)), n, rows, None)

    def turn(self, y: FloatArray, x: FloatArray, H: FloatArray) -> FloatArray:
        """L H, the Jacobian of y ⊖ x(·) but for its sign from that of x(·); rows where y is NaN may be anything."""
        if self.adds:
            return H
        return np.nan_to_num(self.minus_jacobian(np.where(np.isnan(y), x, y), x)) @ H

    def _given(self, d: FloatArray) -> FloatArray:
        assert self._jacobian is not None
        J = np.asarray(self._jacobian(d), np.float64)
        if J.shape != (*d.shape, d.shape[1]):
            raise ShapeError(
                f"the Jacobian of ⊕ of {self.name} returned shape {J.shape} for tangents of shape {d.shape}; it must "
                f"return {(*d.shape, d.shape[1])}"
            )
        return J

    def expect_inverse(self, x: FloatArray) -> None:
        """Refuse a plus and minus that do not undo each other at x, (1, n)."""
        if self.is_vector_space:
            return
        n = self.minus(x, x).shape[1]
        d = 1e-3 * (1.0 + np.arange(n))[None] / max(n, 1)
        back = self.minus(self.plus(x, d), x)
        if not np.allclose(back, d, rtol=0, atol=1e-6):
            raise ModelError(
                f"plus and minus of {self.name} do not undo each other: minus(plus(x, d), x) must be d, but for "
                f"d = {d[0]} it is {back[0]}"
            )
