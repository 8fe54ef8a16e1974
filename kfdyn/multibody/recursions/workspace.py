"""Workspaces of recursions over a robot, of which each row of a batch has the same one again."""

from kfdyn.sweeps import workspace
from kfdyn.sweeps.workspace import Nowhere


class Workspace(workspace.Workspace):
    """One for a robot and a row of a batch, which says of what sizes the parts are."""

    def __init__(self, robot, row, work):
        self.robot, self.row = robot, row
        super().__init__(work, robot, row)

    @classmethod
    def size(cls, robot, row=None):
        """How many numbers it takes, those included that no layout names."""
        return cls(robot, row, Nowhere()).taken

    @classmethod
    def start(cls, robot, row, work):
        """Make one, and put there what stays from row to row."""
        cls(robot, row, work).begin()

    def begin(self):
        """Put there what stays from row to row."""
