"""Workspaces: the memory of a recursion over a robot, in parts one behind the other."""


class Nowhere:
    """Memory that a workspace is made in to see how much it takes."""

    def part(self, start):
        """Nowhere either."""
        return self


class Workspace:
    """The numbers that a recursion works in: first the parts that ``layout`` names, then what it takes besides."""

    def __init__(self, robot, row, work):
        self.robot, self.row, self.memory, self.taken = robot, row, work, 0
        for name, part in self.layout(robot, row).items():
            setattr(self, name, self.take_rows(*part) if isinstance(part, tuple) else self.take(part))

    @staticmethod
    def layout(robot, row):
        """Parts by name: how many numbers each has, or of which record it has how many rows."""
        return {}

    def take(self, count):
        """The next so many numbers."""
        part = self.rest
        self.taken = self.taken + count
        return part

    def take_rows(self, record, count):
        """The next so many rows of a record."""
        return record.rows(self.take(count * record.width))

    @property
    def rest(self):
        """What is behind all that was taken."""
        return self.memory.part(self.taken)

    @classmethod
    def size(cls, robot, row=None):
        """How many numbers it takes."""
        return cls(robot, row, Nowhere()).taken

    @classmethod
    def start(cls, robot, row, work):
        """Make one, and put there what stays from row to row."""
        cls(robot, row, work).begin()

    def begin(self):
        """Put there what stays from row to row."""
