"""The score: the gradient of the log-likelihood in every block of a model, read off the smoother."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import ModelError
from kfdyn.estimation.blocks import Blocks, FloatArray, IntArray
from kfdyn.estimation.factor import InnovationsFactor
from kfdyn.estimation.filtering import Filtered, kalman_filter
from kfdyn.estimation.operators import Operators
from kfdyn.estimation.riccati import Method, Riccati, common_sizes
from kfdyn.estimation.smoothing import Smoothed, bryson_frazier
from kfdyn.estimation.state_space import StateSpace
from kfdyn.estimation.sweeps import count_rows


@dataclass(frozen=True, eq=False)
class Score:
    """Gradient of the log-likelihood ℓ of T, and of log det 𝓜; each part is computed when first asked for.

    A matrix of derivatives has the shape of the block it belongs to. Q and R are symmetric, and so are their
    derivatives: the derivative along a symmetric dQ is the sum of the products of all entries, ⟨∂ℓ/∂Q, dQ⟩.

    Attributes
    ----------
    smooth : Smoothed
        What the gradient is read off: λ, x̂, a, and Λ behind it.

    Examples
    --------
    One number, measured twice: ∂ℓ/∂R at each measurement is ½(a² − 𝓜⁻¹(k,k)).

    >>> import kfdyn as kf
    >>> one = [[1.0]]
    >>> ss = kf.StateSpace.chain(one, one, [[0.0]], one, x0=[0.0], P0=one, steps=2)
    >>> g = kf.score(ss, [3.0, 0.0])
    >>> g.R[0].round(6), g.Q[0].round(6), g.xi.round(6)
    (array([[1.666667]]), array([[0.166667]]), array([ 1., -1.]))
    """

    smooth: Smoothed = field(repr=False)

    @property
    def ss(self) -> StateSpace:
        """The model."""
        return self.smooth.ss

    @property
    def filt(self) -> Filtered:
        """The filter's results."""
        return self.smooth.filt

    @property
    def llf(self) -> float | FloatArray:
        """The log-likelihood itself; one for each batch entry."""
        return self.filt.llf

    @cached_property
    def Q(self) -> Blocks:
        """∂ℓ/∂Q(k) = ½(λλ* − uu* − Λ), (..., n_k, n_k), where u = φ*η."""
        ss, state = self.ss, self.ss.arrays.state
        out = self._outer(0.5, ss.Q, self._costate, state, self._costate, state, -0.5, self.logdet_Q.flat)
        if self._lifted is not None:
            self._outer(-0.5, ss.Q, self._lifted, state, self._lifted, state, add_to=out)
        return ss.Q.like(out)

    @cached_property
    def R(self) -> Blocks:
        """∂ℓ/∂R(k) = ½(aa* − C), C = D⁻¹ + G*Λ⁺G, (..., m_k, m_k); 0 where T is missing."""
        ss, output = self.ss, self.ss.arrays.output
        return ss.R.like(self._outer(0.5, ss.R, self.smooth.a, output, self.smooth.a, output, -0.5, self.logdet_R.flat))

    @cached_property
    def phi(self) -> Blocks:
        """∂ℓ/∂φ(p,k) = λ'(p)x̂*(k) − Λ(p)φP⁺(k) + u(p)ζ*(k), (..., n_parent, n_k), where λ' = λ − u; none at a root."""
        ss, blocks = self.ss, self._maps[0]
        state = ss.arrays.state
        above = state[np.maximum(ss.tree.parent, 0)]
        out = self._outer(1.0, blocks, self._own_costate, above, self.smooth.x.flat, state, *self._start(blocks))
        if self._lifted is not None:
            self._outer(1.0, blocks, self._lifted, above, self.eta, state, add_to=out)
        return blocks.like(out)

    @cached_property
    def H(self) -> Blocks:
        """∂ℓ/∂H(k) = ax̂* − (CH − G*Λ⁺)P, (..., m_k, n_k); 0 where T is missing."""
        x, blocks = self.ss.arrays, self._maps[1]
        return blocks.like(
            self._outer(1.0, blocks, self.smooth.a, x.output, self.smooth.x.flat, x.state, *self._start(blocks))
        )

    @property
    def xi(self) -> FloatArray:
        """∂ℓ/∂ξ = λ', (..., Σn_k): the co-state, less φ*η."""
        return self._own_costate

    @cached_property
    def eta(self) -> FloatArray:
        """∂ℓ/∂η = ζ = φQλ', (..., Σn_k): one more gather."""
        op = Operators(self.filt.covariances)
        rows = self._own_costate.reshape(-1, self.ss.n_states)
        return (op.phi @ op.Q).forward(rows).reshape(self._own_costate.shape)

    @cached_property
    def logdet_Q(self) -> Blocks:
        """∂ log det 𝓜/∂Q(k) = Λ(k), (n_k, n_k)."""
        return self.filt.covariances.Lambda

    @cached_property
    def logdet_R(self) -> Blocks:
        """∂ log det 𝓜/∂R(k) = C(k), the diagonal block of 𝓜⁻¹, (m_k, m_k)."""
        return InnovationsFactor(self.filt.covariances).inverse_blocks()

    @property
    def _costate(self) -> FloatArray:
        return self.smooth.costate.flat

    @cached_property
    def _lifted(self) -> FloatArray | None:
        """u = φ*η in every batch entry, or None where η = 0."""
        eta = self.filt.eta
        if eta is None:
            return None
        op = Operators(self.filt.covariances)
        u = op.phi.H.forward(eta.reshape(-1, self.ss.n_states)).reshape(eta.shape)
        return np.ascontiguousarray(np.broadcast_to(u, self._costate.shape))

    @cached_property
    def _own_costate(self) -> FloatArray:
        return self._costate if self._lifted is None else self._costate - self._lifted

    @cached_property
    def _maps(self) -> tuple[Blocks, Blocks]:
        return logdet_of_maps(self.filt.covariances)

    @property
    def _batch(self) -> tuple[int, ...]:
        return self.smooth.a.shape[:-1]

    def _start(self, blocks: Blocks) -> tuple[float, FloatArray | None, FloatArray | None]:
        """Where a part that does not depend on T goes: in place where there is one T, for new memory takes time."""
        return (1.0, blocks.flat, None) if self._batch else (1.0, None, blocks.flat)

    def _outer(
        self,
        scale: float,
        like: Blocks,
        left: FloatArray,
        left_at: IntArray,
        right: FloatArray,
        right_at: IntArray,
        share: float = 1.0,
        base: FloatArray | None = None,
        add_to: FloatArray | None = None,
    ) -> FloatArray:
        """share·base + scale·x(k) y*(k) in the blocks of all nodes and batch entries, or added to what is there."""
        from kfdyn.estimation.recursions.score import add_outer

        assert like.cols is not None
        out = np.empty((*self._batch, int(like.offsets[-1]))) if add_to is None else add_to
        state, output = common_sizes(self.ss)
        tags = tuple(output if vector is self.smooth.a else state for vector in (left, right))
        if count_rows(self._batch):
            add_outer(
                tags, like.rows, like.cols, like.offsets, out.shape[-1], count_rows(self._batch), scale,
                _rows(left), left_at, _rows(right), right_at, share, base, out.reshape(-1),
            )  # fmt: skip
        return out


def score(
    ss: StateSpace,
    T: ArrayLike,
    xi: ArrayLike | None = None,
    eta: ArrayLike | None = None,
    *,
    method: Method = "block",
) -> Score:
    """Differentiate the log-likelihood of T in every block of a model: one filter, one smoother.

    ::

        ∂ℓ/∂ξ(k) = λ            ∂ℓ/∂Q(k) = ½(λλ* − Λ)          ∂ℓ/∂R(k) = ½(aa* − C)
        ∂ℓ/∂φ(p,k) = λ(p) x̂*(k) − Λ(p) φ P⁺(k)                 ∂ℓ/∂H(k) = a x̂* − (C H − G*Λ⁺) P

    with C = D⁻¹ + G*Λ⁺G; where η ≠ 0 there are terms in u = φ*η (see :class:`Score`). Nothing is inverted but D, so it
    holds where the smoother does: R = 0, singular Q, missing measurements.

    Parameters
    ----------
    ss : StateSpace
        The model.
    T : array, shape (..., Σm_k)
        Measurements, NaN where missing.
    xi, eta : array, shape (..., Σn_k), optional
        Known inputs; these replace the model's own.
    method : {"block", "univariate"}
        How a vector measurement is processed; same answers.

    Returns
    -------
    Score
        ``phi[k]``, ``H[k]``, ``Q[k]``, ``R[k]`` with the shapes of the blocks and ``xi``, ``eta`` flat, batch axes
        leading: one gradient for each batch entry; ``llf``; ``logdet_Q[k]``, ``logdet_R[k]``.

    Raises
    ------
    SingularError
        If some D(k) is not positive definite.

    Notes
    -----
    O(N): the filter, half of the smoother's covariances, and 4n³ + O(n²m) flops a node for φ and H. Source: THEORY
    section 10.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> ss = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)))
    >>> g = kf.score(ss, [1.0, 3.0])
    >>> g.Q[0], g.phi[0], g.H[1]
    (array([[0.]]), array([[2.]]), array([[5.]]))
    """
    filt = kalman_filter(ss, T, xi, eta, method=method)
    return score_of(bryson_frazier(ss, filt, covariances=False))


def score_of(smooth: Smoothed) -> Score:
    """Score of what is smoothed already.

    Parameters
    ----------
    smooth : Smoothed
        Result of :func:`bryson_frazier`, with covariances or without.

    Returns
    -------
    Score
        As :func:`score` returns it.

    Examples
    --------
    >>> import kfdyn as kf
    >>> one = [[1.0]]
    >>> ss = kf.StateSpace.chain(one, one, one, one, x0=[0.0], P0=one, steps=2)
    >>> score_of(kf.bryson_frazier(ss, kf.kalman_filter(ss, [3.0, 1.0]))).xi.round(6)
    array([ 1.4, -0.2])
    """
    if not isinstance(smooth, Smoothed):
        raise ModelError(f"the score is read off a Smoothed, as bryson_frazier returns it, not {type(smooth).__name__}")
    if smooth.ss.flat is not None:
        from kfdyn.estimation.flat.score import FlatScore

        return FlatScore(smooth)  # type: ignore[arg-type]
    return Score(smooth)


def logdet_of_maps(cov: Riccati) -> tuple[Blocks, Blocks]:
    """−½ ∂ log det 𝓜/∂φ = −Λ(p)φP⁺ and −½ ∂ log det 𝓜/∂H = −(CH − G*Λ⁺)P: what of the score does not depend on T."""
    from kfdyn.estimation.recursions.score import score_of_maps, work_size

    ss, x = cov.ss, cov.ss.arrays
    steps = Blocks(np.empty(0), ss.phi.rows, ss.n)  # each stored for itself, though the model's may be shared
    d_phi, d_H = np.empty(int(steps.offsets[-1])), np.empty(ss.H.flat.size)
    score_of_maps(
        common_sizes(ss), x.parent, x.state, x.output, x.phi, x.phi_at,
        x.H_at, x.Q_at, cov.Lambda.flat, cov.P_plus.flat, cov.G.flat, steps.offsets, d_phi, d_H,
        np.empty(work_size(ss.common.most_states)),
    )  # fmt: skip
    return steps.like(d_phi), ss.H.like(d_H)


def _rows(array: FloatArray) -> FloatArray:
    """All numbers in one flat buffer."""
    return np.ascontiguousarray(array).reshape(-1)
