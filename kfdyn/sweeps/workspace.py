"""Workspaces: the memory of a recursion, in parts one behind the other."""

from functools import cache


class Nowhere:
    """Memory that a workspace is made in to see how much it takes."""

    def part(self, start, size=None):
        """Nowhere either."""
        return self


class Workspace:
    """The numbers that a recursion works in: first the parts that ``layout`` names, then what it takes besides."""

    def __init__(self, work, *sizes):
        self.memory, self.taken = work, 0
        for name, part in self.layout(*sizes).items():
            setattr(self, name, self.take_rows(*part) if isinstance(part, tuple) else self.take(part))

    @staticmethod
    def layout(*sizes):
        """Parts by name: how many numbers each has, or of which record it has how many rows."""
        return {}

    @classmethod
    @cache  # it is asked before every call
    def size(cls, *sizes):
        """How many numbers the parts have that are named."""
        return sum(_numbers(part) for part in cls.layout(*sizes).values())

    def take(self, count):
        """The next so many numbers."""
        part = self.part(self.taken, count)
        self.taken = self.taken + count
        return part

    def take_rows(self, record, count):
        """The next so many rows of a record."""
        return record.rows(self.take(count * record.width))

    def part(self, start, count):
        """So many numbers of the memory."""
        return self.memory.part(start, count)

    @property
    def rest(self):
        """What is behind all that was taken."""
        return self.memory.part(self.taken)


def _numbers(part):
    """How many numbers a part has that a layout names."""
    if isinstance(part, tuple):
        record, rows = part
        return rows * record.width
    return part
