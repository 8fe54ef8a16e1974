"""Other numbers for a model that is there: what is new is checked and packed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kfdyn.estimation.model.blocks import Blocks
from kfdyn.estimation.model.model_blocks import PHI_RULE, covariances, sized, transitions
from kfdyn.estimation.model.packing import BlockInput, pack, variances

if TYPE_CHECKING:
    from kfdyn.estimation.model.state_space import StateSpace

_SAME = "have the size it has in the model that is replaced"


def new_blocks(
    ss: StateSpace, phi: BlockInput | None, H: BlockInput | None, Q: BlockInput | None, R: BlockInput | None
) -> dict[str, Blocks]:
    """Those of the blocks that are given, of the sizes that the model has; None for one that stays."""
    tree, n, m = ss.tree, ss.n, ss.m
    new: dict[str, Blocks] = {}
    if phi is not None:
        new["phi"] = transitions(tree, "phi", phi, n, PHI_RULE)
    if H is not None:
        new["H"] = ss.H.like(sized(tree, "H", pack(tree, "H", H), m, n, _SAME).spread())
    for name, value, size in (("Q", Q, n), ("R", R, m)):
        if value is not None:
            flat = variances(value, len(tree)) if size.size and ss.common[name == "R"] == 1 else None
            if flat is None:
                flat = covariances(tree, name, pack(tree, name, value), size, _SAME).spread()
            new[name] = getattr(ss, name).like(flat)
    return new
