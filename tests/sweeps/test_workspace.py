"""Workspaces: parts by name and their sum, one behind the other, none of which reaches into the next."""

import pytest

from kfdyn.estimation.recursions.linalg.lanes import SPARE, Batch
from kfdyn.multibody.recursions.workspace import Workspace as OverRobot
from kfdyn.sweeps import Checked, Record
from kfdyn.sweeps.algebra import Vec3
from kfdyn.sweeps.workspace import Nowhere, Workspace

PAIR = Record(place=Vec3, weight=float)


class Small(Workspace):
    """Some numbers, rows of a record, one number; two more are taken besides."""

    def __init__(self, work, n):
        super().__init__(work, n)
        self.more = self.take(2)

    @staticmethod
    def layout(n):
        return {"first": n, "pairs": (PAIR, n), "last": 1}


def test_parts_stand_one_behind_the_other():
    numbers = list(range(20))
    small = Small(Checked(numbers), 3)
    assert [small.first[0], small.pairs[0].weight, small.pairs[2].weight, small.last[0]] == [0, 6, 14, 15]
    assert [small.more[0], small.more[1], small.rest[0]] == [16, 17, 18]
    assert (small.taken, small.rest.size) == (18, 2)


def test_the_size_is_the_sum_of_what_is_named():
    assert Small.size(3) == 3 + 3 * PAIR.width + 1
    assert Small.size(4) == 4 + 4 * PAIR.width + 1
    assert Small(Nowhere(), 3).taken == Small.size(3) + 2


def test_no_part_reaches_into_the_next():
    small = Small(Checked([0.0] * 20), 3)
    for part, beyond in ((small.first, 3), (small.pairs.memory, 12), (small.last, 1), (small.more, 2)):
        part[beyond - 1] = 1.0
        with pytest.raises(IndexError, match=f"{beyond} is not in {beyond} numbers"):
            part[beyond] = 1.0


def test_a_workspace_is_not_longer_than_its_memory():
    with pytest.raises(IndexError, match="not in 15"):
        Small(Checked([0.0] * 15), 3)


def test_numbers_with_lanes_have_some_to_spare():
    class Two(Batch):
        @staticmethod
        def layout(n):
            return {"one": n, "other": 2 * n}

    made = Two(1, Checked([float(i) for i in range(9)]), 3)
    assert Two.size(3) == 9 + SPARE
    assert Batch.size() == SPARE  # each class has sizes of its own
    assert (made.one[0], made.other[0], made.other.size) == (0.0, 3.0, 6)


def test_over_a_robot_all_counts_that_is_taken():
    class Both(OverRobot):
        def __init__(self, robot, row, work):
            super().__init__(robot, row, work)
            self.more = self.take(5)

        @staticmethod
        def layout(robot, row):
            return {"own": robot}

        def begin(self):
            self.more[0] = 7.0

    numbers = [0.0] * 8
    Both.start(3, None, Checked(numbers))
    assert Both.size(3) == 8
    assert numbers[3] == 7.0
