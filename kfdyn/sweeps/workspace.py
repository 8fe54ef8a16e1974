"""Workspaces: the memory of a recursion, divided into named parts."""

from functools import cache


class Nowhere:
    """Memory that counts what a workspace takes."""

    def part(self, start, size=None):
        """Return itself."""
        return self


class Workspace:
    """The numbers a recursion works in: the parts that ``layout`` names, then what it takes besides."""

    def __init__(self, work, *sizes):
        self.memory, self.taken = work, 0
        for name, part in self.layout(*sizes).items():
            setattr(self, name, self.take_rows(*part) if isinstance(part, tuple) else self.take(part))

    @staticmethod
    def layout(*sizes):
        """Name the parts: how many numbers each has, or which record and how many rows."""
        return {}

    @classmethod
    @cache  # it is asked before every call
    def size(cls, *sizes):
        """Return how many numbers the named parts have."""
        return sum(_numbers(part) for part in cls.layout(*sizes).values())

    def take(self, count):
        """Take the next numbers."""
        part = self.part(self.taken, count)
        self.taken = self.taken + count
        return part

    def take_rows(self, record, count):
        """Take the next rows of a record."""
        return record.rows(self.take(count * record.width))

    def part(self, start, count):
        """Return a part of the memory."""
        return self.memory.part(start, count)

    @property
    def rest(self):
        """The memory behind all that was taken."""
        return self.memory.part(self.taken)


def _numbers(part):
    """Return how many numbers a part of a layout has."""
    if isinstance(part, tuple):
        record, rows = part
        return rows * record.width
    return part
