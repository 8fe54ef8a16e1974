"""Linear operators with adjoints, composed and added like matrices, applied to batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.linalg import LinearOperator

from kfdyn.errors import ShapeError
from kfdyn.estimation.model.blocks import FloatArray, real_array

Rows = Callable[[FloatArray], FloatArray]

# scipy types the composition of two operators as its own class; ours compose to ours, so mypy is told nothing of it.
_Base: Any = LinearOperator


class Operator(_Base):
    """A linear operator given by its product and its adjoint's product, both on vectors (..., n) with batch axes.

    A scipy ``LinearOperator``: ``A @ x`` for vectors (n,) and matrices (n, columns), ``A.H``, and ``A @ B``, ``A + B``,
    ``A - B``, ``c * A``, which are Operators again.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> ss = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)))
    >>> op = kf.Operators(ss)
    >>> (op.H @ op.phi @ op.Q @ op.phi.H @ op.H.H).dense()
    array([[1., 1.],
           [1., 2.]])
    """

    def __init__(self, shape: tuple[int, int], forward: Rows, backward: Rows) -> None:
        super().__init__(np.dtype(np.float64), shape)
        self._forward = forward
        self._backward = backward

    def forward(self, x: ArrayLike) -> FloatArray:
        """Return A x for vectors x (..., columns), shape (..., rows)."""
        return self._forward(_vectors(x, self.shape[1]))

    def backward(self, y: ArrayLike) -> FloatArray:
        """Return A* y for vectors y (..., rows), shape (..., columns)."""
        return self._backward(_vectors(y, self.shape[0]))

    def _matmat(self, X: FloatArray) -> FloatArray:
        return self.forward(np.asarray(X).T).T

    def _matvec(self, x: FloatArray) -> FloatArray:
        return self.forward(np.asarray(x).reshape(-1))

    def _rmatmat(self, X: FloatArray) -> FloatArray:
        return self.backward(np.asarray(X).T).T

    def _rmatvec(self, x: FloatArray) -> FloatArray:
        return self.backward(np.asarray(x).reshape(-1))

    def _adjoint(self) -> Operator:
        return Operator((self.shape[1], self.shape[0]), self._backward, self._forward)

    _transpose = _adjoint

    def dot(self, x: Any) -> Any:
        """Multiply by an array, or compose with an operator."""
        if isinstance(x, Operator):
            if self.shape[1] != x.shape[0]:
                raise ShapeError(f"operators of shapes {self.shape} and {x.shape} do not compose")
            return Operator(
                (self.shape[0], x.shape[1]),
                lambda rows: self.forward(x.forward(rows)),
                lambda rows: x.backward(self.backward(rows)),
            )
        if isinstance(x, float | int | np.number):
            scale = float(x)
            return Operator(self.shape, lambda r: scale * self.forward(r), lambda r: scale * self.backward(r))
        return super().dot(x)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Operator):
            if self.shape != other.shape:
                raise ShapeError(f"operators of shapes {self.shape} and {other.shape} do not add")
            return Operator(
                self.shape,
                lambda r: self.forward(r) + other.forward(r),
                lambda r: self.backward(r) + other.backward(r),
            )
        return super().__add__(other)

    def __neg__(self) -> Operator:
        return self.dot(-1.0)

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rmul__(self, scale: Any) -> Any:
        return self.dot(scale)

    def dense(self) -> FloatArray:
        """Return the matrix, (rows, columns), for checking and for teaching."""
        return self.forward(np.eye(self.shape[1])).T.copy()


def dottest(operator: LinearOperator, rng: np.random.Generator | None = None, trials: int = 4) -> float:
    """Test an adjoint by random vectors: the largest |⟨y, Ax⟩ − ⟨A*y, x⟩| relative to |y||Ax|.

    A correct pair gives a few rounding errors (below 1e-12).

    Parameters
    ----------
    operator : LinearOperator
        With ``matvec`` and ``rmatvec``.
    rng : numpy Generator, optional
        Source of the random x and y.
    trials : int
        How many of them.

    Returns
    -------
    float
        The worst relative difference.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> ss = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)))
    >>> dottest(kf.Operators(ss).psi) < 1e-14
    True
    """
    rng = np.random.default_rng(0) if rng is None else rng
    worst: float = 0.0
    for _ in range(trials):
        x, y = rng.standard_normal(operator.shape[1]), rng.standard_normal(operator.shape[0])
        Ax, Ay = operator @ x, operator.H @ y
        scale = np.linalg.norm(y) * np.linalg.norm(Ax) + np.linalg.norm(Ay) * np.linalg.norm(x)
        if scale > 0:
            worst = max(worst, float(abs(y @ Ax - Ay @ x) / scale))
    return worst


def _vectors(x: ArrayLike, size: int) -> FloatArray:
    """Return the vectors (..., size) as float64, of checked length."""
    array = real_array(x, "the vector")
    if array.ndim == 0 or array.shape[-1] != size:
        raise ShapeError(f"the vector has shape {array.shape}, but the operator takes (..., {size})")
    return array


def identity(n: int) -> Operator:
    """Make the identity on vectors of n numbers."""
    return Operator((n, n), lambda rows: rows, lambda rows: rows)
