"""Workspaces of recursions over a robot, of which each row of a batch has the same one again."""

from kfdyn.sweeps import workspace
from kfdyn.sweeps.entry import Space
from kfdyn.sweeps.workspace import Nowhere


class Workspace(workspace.Workspace):
    """One for a robot and a row of a batch, which says of what sizes the parts are."""

    def __init__(self, robot, row, work):
        self.robot, self.row = robot, row
        super().__init__(work, robot, row)

    @classmethod
    def size(cls, robot, row=None):
        """The size, in numbers, including those that no layout names."""
        return cls(robot, row, Nowhere()).taken

    @classmethod
    def start(cls, robot, row, work):
        """Make one, and put there what stays from row to row."""
        cls(robot, row, work).begin()

    def begin(self):
        """Put there what stays from row to row."""


def entry_around(entry, kind, prefix, table, given, results, options):
    """Make an entry that runs the recursion of another in a workspace ``kind(entry, robot, row, work)`` around it."""

    def run(robot, row, work):
        return kind(entry, robot, row, work).run()

    def size(robot, row):
        return kind(entry, robot, row, Nowhere()).size

    def begin(robot, row, work):
        kind(entry, robot, row, work).begin()

    run.__name__, run.__module__ = f"{prefix}_{entry.name}", entry.recursion.__module__
    return type(entry)(run, table, [*entry.parameters, *given], results, Space(size, begin), options)
