"""The score under flat priors: the limit of the finite one, which corrections of low rank give."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kfdyn.estimation.flat.smoothing import FlatSmoothed, spread
from kfdyn.estimation.inference.score import Score
from kfdyn.estimation.model.blocks import Blocks, FloatArray, IntArray


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
        return self.smooth._covariances.Lambda

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
        return _add(phi, costate, state[parent], x, state), _add(H, a, output, x, state)


def _add(known: Blocks, left: FloatArray, left_at: IntArray, right: FloatArray, right_at: IntArray) -> Blocks:
    """Blocks + left(k) right*(k), where the rows of node k begin at the given places."""
    out = known.like(known.flat.copy())
    for nodes, block in known.grouped():
        r, c = block.shape[1:]
        if r and c:
            y = left[left_at[nodes][:, None] + np.arange(r)]
            x = right[right_at[nodes][:, None] + np.arange(c)]
            out.flat[out.places(nodes, r * c)] = (block + y @ x.transpose(0, 2, 1)).reshape(nodes.size, -1)
    return out
