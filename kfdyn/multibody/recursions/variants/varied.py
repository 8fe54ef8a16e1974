"""Robots of one topology that differ in numbers: the recursions of one robot, each row with the numbers of its own.

No recursion is written again for it. Before a pass the numbers of the robots in its lanes are fetched into the
workspace, and a body reads them there; whatever else it is asked for is the same of all robots.
"""

from functools import cache

import numpy as np

from kfdyn.multibody.recursions.given import changed
from kfdyn.multibody.recursions.robot import OWN
from kfdyn.multibody.recursions.workspace import Workspace, entry_around
from kfdyn.sweeps.control_flow import if_else, loop
from kfdyn.sweeps.records import Table
from kfdyn.sweeps.values import from_lanes

#: Robots whose numbers stand side by side, as lanes want them.
SIDE = 8


def table_of(table):
    """The tables of one of the robots, and numbers of each: its bodies', and then its rotors'.

    Row i of a batch is a state of robot i mod ``robots``.
    """
    return Table(**table.fields, robots=int, numbers=(float,))


def side_by_side(numbers):
    """Numbers (robots, count) as the table has them: (blocks, count, SIDE), the last robot again where one is none."""
    blocks = -(-len(numbers) // SIDE)
    return numbers[np.minimum(np.arange(blocks * SIDE), len(numbers) - 1)].reshape(blocks, SIDE, -1).swapaxes(1, 2)


class Differing(Workspace):
    """A recursion over one robot, given to an ``entry``, and before its own workspace the numbers of its robots."""

    def __init__(self, entry, robot, row, work):
        super().__init__(robot, row, work)
        self.entry, bodies = entry, (robot.n + 1) * OWN.width
        self.numbers = self.take(bodies + robot.nv)
        self.tree = changed(robot, own=self.numbers.part(0), armature=self.numbers.part(bodies))

    @property
    def size(self):
        """The size of both workspaces, in numbers."""
        return self.taken + self.entry.workspace.size(self.robot, self.row)

    def begin(self):
        """Prepare what stays from row to row."""
        self.entry.workspace.start(self.tree, self.row, self.rest)

    def run(self):
        """Fetch, and run."""
        lanes, count = self.robot.lanes, self.taken
        own = [self.row.row_in(l) % self.robot.robots for l in range(lanes)]
        starts = [k // SIDE * (SIDE * count) + k % SIDE for k in own]
        for in_line in if_else((own[0] % lanes == 0) & (own[-1] == own[0] + (lanes - 1))):
            if in_line:
                numbers = self.robot.numbers.part(starts[0]).lanes(lanes)
                for i in loop(count):
                    self.numbers[i] = numbers[i * (SIDE // lanes)]
            else:
                for i in loop(count):
                    numbers = [self.robot.numbers[start + i * SIDE] for start in starts]
                    self.numbers[i] = from_lanes(numbers) if lanes > 1 else numbers[0]
        return self.entry.recursion(self.tree, self.row, self.rest)


@cache
def varied(entry):
    """The same entry for robots that differ."""
    options = entry.options._replace(unroll=0)
    return entry_around(entry, Differing, "varied", table_of(entry.table), entry.given, entry.results, options)
