"""Columns of a large matrix made orthonormal by panels: least squares for flat states (THEORY section 13).

Threads of a BLAS would change last digits, and on a busy machine take ten times as long as the filter before it.
"""

import math

from kfdyn.estimation.recursions.linalg import tiles
from kfdyn.estimation.recursions.linalg.matrices import Column, add_scaled, dot
from kfdyn.sweeps import if_, loop, sqrt, sweep, where
from kfdyn.sweeps.workspace import Workspace

#: Of a column: what is left of it beside those before it is rounding below that part.
RESOLVED = 1e-12


@sweep(tags=0)
def orthonormalise(e, rows, flat, products, work):
    """Make the last ``flat`` columns of e (rows, ·) orthonormal; the others become what is left of them.

    ``products`` (flat, ·) are those of these columns with what e was, the last of which are their upper triangle; a
    diagonal number of it is none where a column does not differ from those before it. All is freed twice of the panels
    before it, and twice within its panel, after which no more than rounding is left. ``work`` is for :class:`Room`.
    6 · rows · flat² flops.
    """
    width = e.size // rows
    own, room = width - flat, Room(work, rows, width, flat)
    tiles.turn(room.lines.part(0), e.part(0), rows, width)
    for j in loop(flat):
        line = room.line(own + j)
        room.sizes[j], room.shrunk[j] = sqrt(dot(line, line)), 1.0
    ragged = flat % tiles.PANEL  # the first panel, which waits for no other, takes what is left over
    for stop in loop(flat + 1, where(ragged > 0, ragged, tiles.PANEL), step=tiles.PANEL):
        first = where(stop < tiles.PANEL, 0, stop - tiles.PANEL)
        for _ in range(2):
            room.free(own + first, stop - first, first)
            for j in loop(stop, first):
                room.shrunk[j] = room.shrunk[j] * _normalise(room, own + first, own + j)
    lines = room.lines.part(own * rows)
    tiles.product(
        products.part(0), products.part(0), width, 0, 1.0, lines, rows, 1, e.part(0), width, flat, width, rows, 0
    )
    for j in loop(flat):
        at = j * width + own + j
        products[at] = where(room.shrunk[j] > RESOLVED * room.sizes[j], products[at], math.nan)
    for first in loop(own, step=tiles.PANEL):
        for _ in range(2):
            room.free(first, tiles.least(own - first, tiles.PANEL), flat)
    tiles.turn(e.part(0), room.lines.part(0), width, rows)


class Room(Workspace):
    """The columns as rows of memory; some of them as columns; their products with others; sizes of flat ones,
    and by what these have shrunk.
    """

    def __init__(self, work, rows, width, flat):
        super().__init__(work, rows, width, flat)
        self.rows, self.own = rows, width - flat

    @staticmethod
    def layout(rows, width, flat):
        """Return the layout for that many rows and columns, the last ``flat`` of which become orthonormal."""
        return {
            "lines": rows * width,
            "panel": rows * tiles.PANEL,
            "shares": flat * tiles.PANEL,
            "sizes": flat,
            "shrunk": flat,
        }

    def line(self, j):
        """Column j."""
        return Column(self.lines, j * self.rows, self.rows)

    def free(self, first, count, before):
        """Take from ``count`` columns what lies along the first flat ones."""
        rows, flat, mine = self.rows, self.lines.part(self.own * self.rows), self.lines.part(first * self.rows)
        panel, shares = self.panel.part(0), self.shares.part(0)
        for _ in if_(before > 0):
            tiles.turn(panel, mine, count, rows)
            tiles.product(shares, shares, count, 0, 1.0, flat, rows, 1, panel, count, before, count, rows, 0)
            tiles.product(mine, mine, rows, 1, -1.0, shares, 1, count, flat, rows, count, rows, before, 0)


def _normalise(room, first, j):
    """Free column j of those from ``first`` on, twice, and make its size 1; returns what that was."""
    line = room.line(j)
    for _ in range(2):
        for i in loop(j, first):
            other = room.line(i)
            add_scaled(line, line, -dot(other, line), other)
    size = sqrt(dot(line, line))
    add_scaled(line, None, 1.0 / where(size > 0.0, size, 1.0), line)
    return size
