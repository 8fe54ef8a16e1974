"""Write every quantity as a linear map A of white noise, so that its covariance A A* cannot become indefinite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.estimation import Operator, Operators, StateSpace
from kfdyn.estimation.inference.factor import apply_lower
from kfdyn.estimation.model.blocks import Blocks
from kfdyn.estimation.model.covariance_factors import square_root
from kfdyn.estimation.operators.closed_form_covariances import Covariance


@dataclass(frozen=True, eq=False)
class Gram:
    """The covariance A A* of y = A u, u ~ N(0, 1), beside the closed form that a recursion gives for it.

    A closed form such as S = P⁺ − P⁺Λ⁺P⁺ is a difference: where the result is 0 it is a rounding error of either sign,
    and where it is small it has few digits. In A A* what is 0 is the square of a rounding error.

    Attributes
    ----------
    factor : Operator
        A, (d, columns), with products in O(N).
    closed : Covariance
        The closed form of THEORY section 5, equal up to rounding.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> ss = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)))
    >>> x = Gram(noise_maps(ss)["x"], kf.Covariances(ss).x)
    >>> x.dense(), x.seen_in(np.array([[1.0], [1.0]]))
    (array([[1., 1.],
           [1., 2.]]), array([[5.]]))
    """

    factor: Operator
    closed: Covariance

    @property
    def diagonal(self) -> Blocks:
        """The diagonal blocks in closed form, one for each node, O(N)."""
        return self.closed.diagonal

    def block(self, i: int, j: int) -> Array:
        """Return the cross-covariance of nodes i and j in closed form."""
        return self.closed.block(i, j)

    @cached_property
    def _matrix(self) -> Array:
        A = self.factor.dense()
        return np.asarray(A @ A.T)

    def dense(self) -> Array:
        """Return the whole matrix A A*."""
        return self._matrix

    def deviation_along(self, directions: Array) -> float:
        """Return √ of the variances summed over directions (d, k), by the factor A, so that zero stays zero."""
        return float(np.linalg.norm(self.factor.H @ directions)) if directions.size else 0.0

    def seen_in(self, directions: Array) -> Array:
        """Return the covariance V*A A*V of V*y for directions V (d, r); O(N) a direction."""
        seen = self.factor.H @ directions
        return np.asarray(seen.T @ seen)


@dataclass(frozen=True, eq=False)
class Given:
    """A covariance given as a matrix, as a claim; blocks of nodes are cut out of it.

    Attributes
    ----------
    matrix : (d, d)
    start : (N + 1,) of int
        Where each node's entries begin, and the last one's end.
    dtype : str
        The numbers that the matrix came in.

    Examples
    --------
    >>> import numpy as np
    >>> Given(np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([0, 1, 2])).block(0, 1)
    array([[0.5]])
    """

    matrix: Array
    start: NDArray[np.int64]
    dtype: str = "float64"

    @property
    def diagonal(self) -> Sequence[Array]:
        """The diagonal blocks, one for each node."""
        return [self.block(k, k) for k in range(len(self.start) - 1)]

    def block(self, i: int, j: int) -> Array:
        """Return the cross-covariance of nodes i and j."""
        return self.matrix[self.start[i] : self.start[i + 1], self.start[j] : self.start[j + 1]]

    def dense(self) -> Array:
        """Return the whole matrix."""
        return self.matrix

    def deviation_along(self, directions: Array) -> float:
        """Return 0: what is given is taken as it is."""
        return 0.0

    def seen_in(self, directions: Array) -> Array:
        """Return the covariance of V*y for directions V (d, r)."""
        return np.asarray(directions.T @ self.matrix @ directions)


def noise_maps(ss: StateSpace) -> dict[str, Operator]:
    """Return the nine quantities, minus their means, as linear maps of white noise.

    ::

        w = Q^½u, r = R^½v:     x = φw     T = Hφw + r     x − z = ψ(w − Kr)     ε = H(x − z) + r
                                x − x̂ = (x − z) − Pψ*H*D⁻¹ε
        ε = Le, D = LL*:        z = φKε    ν = D⁻¹ε        λ = ψ*H*ν             a = (1 − HψK)*ν

    Returns
    -------
    dict of Operator
        By name, (Σn or Σm, Σn + Σm) for x, T, the errors, (Σn or Σm, Σm) for what is a function of ε.

    Notes
    -----
    O(N) for each product. Sources: THEORY sections 3 to 5; the errors of the filter in ATBI "key covariance
    quantities".

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> ss = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)))
    >>> A = noise_maps(ss)["a"].dense()
    >>> A @ A.T
    array([[ 2., -1.],
           [-1.,  1.]])
    """
    op = Operators(ss)
    cov = op.covariances

    def lower(inverse: bool) -> Operator:
        return Operator(
            (ss.n_outputs, ss.n_outputs),
            lambda e: apply_lower(cov, e, inverse=inverse, transposed=False),
            lambda e: apply_lower(cov, e, inverse=inverse, transposed=True),
        )

    L, L_inverse = lower(inverse=False), lower(inverse=True)
    w, r = op.block_diagonal(square_root(ss.Q, ss.vectors)), op.block_diagonal(square_root(ss.R))
    error = _beside(op.psi @ w, -(op.psi @ op.K @ r))
    innovation = op.H @ error + _beside(0.0 * (op.H @ w), r)
    return {
        "x": op.phi @ w,
        "T": _beside(op.H @ op.phi @ w, r),
        "z": op.phi @ op.K @ L,
        "filter_error": error,
        "eps": L,
        "nu": L_inverse.H,
        "costate": op.psi.H @ op.H.H @ L_inverse.H,
        "a": op.factor_inverse.H @ L_inverse.H,
        "smoothed_error": error - op.P @ op.psi.H @ op.H.H @ L_inverse.H @ L_inverse @ innovation,
    }


def _beside(left: Operator, right: Operator) -> Operator:
    """Return [A, B] for two noises, one after the other."""
    first = left.shape[1]
    return Operator(
        (left.shape[0], first + right.shape[1]),
        lambda u: left.forward(u[..., :first]) + right.forward(u[..., first:]),
        lambda y: np.concatenate([left.backward(y), right.backward(y)], axis=-1),
    )
