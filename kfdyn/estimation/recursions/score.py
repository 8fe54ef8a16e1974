"""What the score adds to the smoother for every T: outer products of a node's vectors, no recursion."""

from kfdyn.estimation.recursions.dense import Block, Column, outer_sum
from kfdyn.sweeps import loop, size, sweep, when


@sweep(tags=2)
def add_outer(tags, based, heights, widths, at, rows, scale, left, left_at, right, right_at, share, base, out):
    """Put β b(k) + c x(k) y*(k) into the blocks of every node and row; x and y lie at their places in their rows.

    ``heights`` and ``widths`` are the sizes of the blocks, which lie at ``at``; ``tags`` are the sizes where all nodes
    share them. ``base`` is the same for all rows, β is ``share``; where ``based`` is None, c x y* is added to what is
    there already.
    """
    left_size, right_size, out_size = left.size // rows, right.size // rows, out.size // rows
    known = tags[0] is not None and tags[1] is not None
    for b in loop(rows):
        for k in loop(heights.size):
            for _ in when((heights[k] > 0) & (widths[k] > 0)):
                h, w = size(tags[0], heights[k]), size(tags[1], widths[k])
                block = Block(out, b * out_size + at[k], h, w, known)
                x = Column(left, b * left_size + left_at[k], h, known)
                y = Column(right, b * right_size + right_at[k], w, known)
                before = block if based is None else Block(base, at[k], h, w, known)
                outer_sum(block, None if based is None else share, before, scale, x, y)
