"""The innovations factorisation 𝓜 = (1 + HφK) D (1 + HφK)* as an object that solves, multiplies and samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.estimation.inference.filter_covariances import Method, Riccati
from kfdyn.estimation.inference.filter_sweep import sweep, sweep_back
from kfdyn.estimation.inference.riccati import riccati
from kfdyn.estimation.model.blocks import Blocks, FloatArray
from kfdyn.estimation.model.overflow import expect_finite_blocks
from kfdyn.estimation.model.state_space import StateSpace, expect_model
from kfdyn.estimation.model.validation import draw_axes, expect_generator
from kfdyn.estimation.operators.block_operators import block_diagonal
from kfdyn.estimation.operators.model_operators import Operators


@dataclass(frozen=True, eq=False)
class InnovationsFactor:
    """The output covariance 𝓜 = HφQφ*H* + R, factored in O(N) and never formed.

    ::

        𝓜   = (1 + HφK) D (1 + HφK)*          𝓜⁻¹ = (1 − HψK)* D⁻¹ (1 − HψK)

    With D = L L*, the factor C = (1 + HφK) L is a square root: 𝓜 = C C*. Every method takes leading batch axes and
    is O(N) for each vector, except :meth:`inverse`. Where measurements are missing, 𝓜 is the covariance of the
    observed outputs alone: entries of the others are ignored in what is given and 0 in what is returned.

    Attributes
    ----------
    covariances : Riccati
        The filter's covariances, of which the factor is made.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> ss = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)))
    >>> F = kf.innovations_factor(ss)
    >>> F.solve([1.0, 3.0]), F.logdet()
    (array([-1.,  2.]), 0.0)
    """

    covariances: Riccati

    @property
    def ss(self) -> StateSpace:
        """The model."""
        return self.covariances.ss

    def solve(self, T: ArrayLike) -> FloatArray:
        """𝓜⁻¹ T, shape (..., Σm_k): one filter gather, one smoother scatter (SKO "mass-inverse")."""
        _, nu = self._innovations(T)
        return sweep_back(self.covariances, nu, None, None)[0]

    def matvec(self, a: ArrayLike) -> FloatArray:
        """𝓜 a, shape (..., Σm_k): a scatter of co-states and a gather of states (Newton–Euler)."""
        a = self._observed(self.ss.check_outputs(a, "a"))
        found = self._observed(Operators(self.covariances).output_cov.forward(a))
        expect_finite_blocks(self.ss.tree, "𝓜a", self.ss.output_blocks(found), self.ss.tree.order)
        return found

    def whiten(self, T: ArrayLike) -> FloatArray:
        """C⁻¹ T = L⁻¹ε, shape (..., Σm_k): standard normal when T ~ N(0, 𝓜), and ‖C⁻¹T‖² = T*𝓜⁻¹T."""
        eps, _ = self._innovations(T)
        return self._lower(eps, inverse=True, transposed=False)

    def unwhiten(self, e: ArrayLike) -> FloatArray:
        """C e = (1 + HφK) L e, shape (..., Σm_k): the inverse of :meth:`whiten`."""
        eps = self._lower(self._observed(self.ss.check_outputs(e, "e")), inverse=False, transposed=False)
        return self._observed(Operators(self.covariances).factor.forward(eps))

    def sample(self, rng: np.random.Generator, n: int | None = None) -> FloatArray:
        """Draws from N(0, 𝓜), shape (n, Σm_k), or (Σm_k,) for n None."""
        return self.unwhiten(self._normal(rng, n))

    def sample_inverse(self, rng: np.random.Generator, n: int | None = None) -> FloatArray:
        """Draws from N(0, 𝓜⁻¹), shape (n, Σm_k), or (Σm_k,): C⁻* e, one scatter.

        In dynamics these are thermal joint velocities in units of √kT.
        """
        nu = self._lower(self._observed(self._normal(rng, n)), inverse=True, transposed=True)
        return sweep_back(self.covariances, nu, None, None)[0]

    def quadratic(self, T: ArrayLike) -> float | FloatArray:
        """T*𝓜⁻¹T = Σ ε*D⁻¹ε, one number for each vector."""
        eps, nu = self._innovations(T)
        value = np.einsum("...i,...i->...", eps, nu)
        return float(value) if value.ndim == 0 else value

    def logdet(self) -> float:
        """Log det 𝓜 = Σ log det D(k)."""
        return self.covariances.logdet

    def inverse(self) -> FloatArray:
        """The dense 𝓜⁻¹, (Σm_k, Σm_k), exactly symmetric.

        Column i needs the filter only along the ancestors of i, and of the smoother's scatter only the part that
        symmetry does not give: ½N² steps of 2n² flops in all.
        """
        ss = self.ss
        out = np.zeros((ss.n_outputs, ss.n_outputs))
        dense_inverses(ss, self.covariances, out[None])
        return out

    def inverse_diagonal(self) -> FloatArray:
        """Diagonal of 𝓜⁻¹, (Σm_k,), in O(N)."""
        return self.inverse_blocks().diagonals()

    def inverse_blocks(self) -> Blocks:
        """Diagonal blocks c(k) = D⁻¹ + G*Λ⁺G of 𝓜⁻¹ in O(N) (R86 (10.3), (10.29))."""
        return self.covariances.inverse_blocks

    def _innovations(self, T: ArrayLike) -> tuple[FloatArray, FloatArray]:
        return sweep(self.covariances, self.ss.check_outputs(T, "T"), None, None, states=False)[:2]

    def _normal(self, rng: np.random.Generator, n: int | None) -> FloatArray:
        expect_generator(rng)
        return rng.standard_normal((*draw_axes(n), self.ss.n_outputs))

    def _observed(self, x: FloatArray) -> FloatArray:
        observed = self.covariances.observed
        return x if observed.all() else np.where(observed, x, 0.0)

    def _lower(self, x: FloatArray, *, inverse: bool, transposed: bool) -> FloatArray:
        return apply_lower(self.covariances, x, inverse=inverse, transposed=transposed)


def innovations_factor(ss: StateSpace, *, method: Method = "block") -> InnovationsFactor:
    """Factor the output covariance 𝓜 = HφQφ*H* + R of a model in O(N).

    Parameters
    ----------
    ss : StateSpace
        The model.
    method : {"block", "univariate", "square_root"}
        How vector measurements are processed, or by factors of the covariances where these differ by more than 1e10.

    Returns
    -------
    InnovationsFactor
        ``solve``, ``matvec``, ``whiten``, ``unwhiten``, ``sample``, ``sample_inverse``, ``quadratic``, ``logdet``,
        ``inverse``, ``inverse_diagonal``, ``inverse_blocks``.

    Raises
    ------
    SingularError
        If 𝓜 is singular; names the node.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> ss = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)))
    >>> kf.innovations_factor(ss).inverse()
    array([[ 2., -1.],
           [-1.,  1.]])
    """
    expect_model(ss)
    return InnovationsFactor(riccati(ss, method=method))


def apply_lower(cov: Riccati, x: FloatArray, *, inverse: bool, transposed: bool) -> FloatArray:
    """L x, L* x, L⁻¹ x or L⁻* x for the block-diagonal Cholesky factor L of D; x is (..., Σm_k)."""
    if not inverse:
        L = block_diagonal(cov.D_factor)
        return L.backward(x) if transposed else L.forward(x)
    from kfdyn.estimation.recursions.inverse_columns import divide_by_lower

    out = np.array(x, dtype=np.float64, order="C")
    if out.size:
        divide_by_lower(cov.ss.address, cov.D_factor.flat, int(transposed), out.reshape(-1))
    return out


def dense_inverses(tree: StateSpace, cov: Riccati, out: FloatArray) -> None:
    """Fill 𝓜⁻¹ of every tree of a forest of equal trees, out (trees, Σm_k, Σm_k), zeros given; ``cov`` is the forest's.

    ``tree`` is one of them, which lends its numbering: the forest itself is a forest of one.
    """
    from kfdyn.estimation.recursions.inverse_columns import Columns
    from kfdyn.estimation.recursions.inverse_columns import dense_inverses as kernel

    work = np.empty(Columns.size(tree.n_states, tree.n_outputs, tree.common.most_states))
    kernel(tree.address, cov.ss.address, cov.flats, len(out), out.reshape(-1), work)


def solve_D(cov: Riccati, eps: FloatArray) -> FloatArray:
    """D⁻¹ ε on the observed outputs, shape (..., Σm_k)."""
    return apply_lower(cov, apply_lower(cov, eps, inverse=True, transposed=False), inverse=True, transposed=True)
