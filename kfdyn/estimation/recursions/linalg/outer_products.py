"""Outer products of a node's vectors, which the score adds to the smoother for every T; no recursion."""

from typing import Any, NamedTuple

from kfdyn.estimation.recursions.linalg.matrices import Block, Column, outer_sum
from kfdyn.estimation.recursions.linalg.ragged import Parts, Ragged
from kfdyn.sweeps import if_, loop, size, sweep


class Sum(NamedTuple):
    """β b + c x y* of so many rows: β is ``share``, c is ``scale``; in ``out`` are the blocks of row after row."""

    rows: Any
    share: Any
    scale: Any
    out: Any


@sweep(tags=2)
def add_outer(tags, based, base: Ragged, left: Parts, right: Parts, total):
    """Put β b(k) + c x(k) y*(k) into the blocks of every node and row, x and y the parts of a node.

    ``tags`` are the rows and columns of the blocks b where all nodes share them. These are the same for all rows; where
    ``based`` is None, c x y* is added to what is there already.
    """
    known = tags[0] is not None and tags[1] is not None
    # not the widths that are passed: with them compiled code for small blocks takes twice as long
    left_size, right_size, out_size = (flat.size // total.rows for flat in (left.flat, right.flat, total.out))
    for b in loop(total.rows):
        for k in loop(base.rows.size):
            for _ in if_((base.rows[k] > 0) & (base.cols[k] > 0)):
                h, w = size(tags[0], base.rows[k]), size(tags[1], base.cols[k])
                block = Block(total.out, b * out_size + base.at[k], h, w, known)
                x = Column(left.flat, b * left_size + left.at[k], h, known)
                y = Column(right.flat, b * right_size + right.at[k], w, known)
                before = block if based is None else Block(base.flat, base.at[k], h, w, known)
                outer_sum(block, None if based is None else total.share, before, total.scale, x, y)
