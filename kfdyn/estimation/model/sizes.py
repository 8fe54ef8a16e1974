"""Sizes of the nodes of a model, and what they have in common."""

from __future__ import annotations

from typing import NamedTuple

from kfdyn.estimation.model.blocks import IntArray


class Common(NamedTuple):
    """State and output size that all nodes share, None where they differ, and the largest ones."""

    n: int | None
    m: int | None
    most_states: int
    most_outputs: int

    @classmethod
    def of(cls, n: IntArray, m: IntArray) -> Common:
        """Read off the sizes of all nodes."""
        if not n.size:
            return cls(None, None, 0, 0)
        (least_n, most_n), (least_m, most_m) = ((int(s.min()), int(s.max())) for s in (n, m))
        return cls(most_n if least_n == most_n else None, most_m if least_m == most_m else None, most_n, most_m)
