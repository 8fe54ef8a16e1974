"""Workspaces: memory in named parts, one behind the other."""


class Workspace:
    """Memory that a recursion works in: ``layout(robot, row)`` of a class names its parts and their sizes."""

    def __init__(self, robot, row, work):
        self.robot, self.row, at = robot, row, 0
        for name, count in self.layout(robot, row).items():
            setattr(self, name, work.part(at))
            at = at + count

    @classmethod
    def size(cls, robot, row):
        """How many numbers all parts have."""
        return sum(cls.layout(robot, row).values())
