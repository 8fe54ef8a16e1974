"""Workspaces: the memory of a recursion, in parts one behind the other."""

from functools import cache


class Workspace:
    """The numbers that a recursion works in; ``layout`` says of what sizes it has which parts."""

    spare = 0  # numbers to ask for in addition

    def __init__(self, work, *sizes):
        used = 0
        for name, count in self.layout(*sizes).items():
            setattr(self, name, self.part(work, used, count))
            used = used + count

    @staticmethod
    def layout(*sizes):
        """Parts by name: how many numbers each has."""
        return {}

    def part(self, work, start, count):
        """So many numbers of the memory."""
        return work.part(start, count)

    @classmethod
    @cache  # it is asked before every call
    def size(cls, *sizes):
        """How many numbers it takes."""
        return sum(cls.layout(*sizes).values()) + cls.spare
