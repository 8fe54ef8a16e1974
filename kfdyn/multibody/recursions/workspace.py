"""Workspaces: memory in named parts, one behind the other."""


class Workspace:
    """Memory that a recursion works in, in the parts that ``layout(robot, row)`` of its class names.

    It tells how many numbers a part has, or of which record it has how many rows.
    """

    def __init__(self, robot, row, work):
        self.robot, self.row, at = robot, row, 0
        for name, part in self.layout(robot, row).items():
            memory = work.part(at)
            setattr(self, name, part[0].rows(memory) if isinstance(part, tuple) else memory)
            at = at + _numbers(part)

    @classmethod
    def size(cls, robot, row):
        """How many numbers all parts have."""
        return sum(_numbers(part) for part in cls.layout(robot, row).values())

    @classmethod
    def start(cls, robot, row, work):
        """Put there what stays from row to row."""
        cls(robot, row, work).begin()


def _numbers(part):
    return part[0].width * part[1] if isinstance(part, tuple) else part
