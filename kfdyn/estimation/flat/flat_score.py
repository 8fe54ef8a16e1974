"""The score under flat priors: the limit of the finite one, which corrections of low rank give."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.estimation.flat.smoothing import FlatSmoothed, add_products, spread
from kfdyn.estimation.inference.scored import Score
from kfdyn.estimation.inference.smoothed import Smoothed
from kfdyn.estimation.model.blocks import Blocks, FloatArray


@dataclass(frozen=True, eq=False)
class FlatScore(Score):
    """Gradient of the log-likelihood of a model with flat priors; the attributes are those of :class:`Score`.

    The finite part of Q counts, in ∂ℓ/∂η = φQλ' as well: the derivative along a flat state's own variance is that of an
    addition to infinity.
    """

    smooth: FlatSmoothed

    @cached_property
    def logdet_Q(self) -> Blocks:
        """∂ log det 𝓜/∂Q(k) = Λ(k) in the limit."""
        return self.smooth.costate_covariances

    @cached_property
    def logdet_R(self) -> Blocks:
        """The diagonal block of the limit of 𝓜⁻¹."""
        return self.smooth.inverse_blocks

    @cached_property
    def _finite(self) -> Score:
        return Score(self.smooth.finite)

    @cached_property
    def _lifted(self) -> FloatArray | None:
        return self._finite._lifted

    @cached_property
    def _maps(self) -> tuple[Blocks, Blocks]:
        """−Λ(p)φP⁺ and −(CH − G*Λ⁺)P in the limit: λ_E cov(δ̂) J* and a_E cov(δ̂) J* are added."""
        phi, H = self._finite._maps
        ss, filt, columns = self.ss, self.smooth.flat, self.smooth.columns
        x, costate = (spread(filt, b.flat, filt.layout.of_state) for b in (columns.x, columns.costate))
        a = spread(filt, columns.a, filt.layout.of_output)
        state, output, parent = ss.arrays.state, ss.arrays.output, np.maximum(ss.tree.parent, 0)
        return (
            add_products(phi, costate, state[parent], x, state, 1.0), add_products(H, a, output, x, state, 1.0),
        )  # fmt: skip


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
        return FlatScore(smooth)  # type: ignore[arg-type]
    return Score(smooth)
