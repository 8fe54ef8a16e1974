"""Readings of loops: their rows, drifts and gaps."""

from kfdyn.multibody.recursions.given import Q, V
from kfdyn.multibody.recursions.hinges import zeros
from kfdyn.multibody.recursions.loops.loop_rows import ACROSS, ANGULAR, ENDS, LINEAR, LOOPS, ROW, LoopRows
from kfdyn.multibody.recursions.outward import WORK, place_world, sweep_outward
from kfdyn.multibody.recursions.robot import SCREW
from kfdyn.multibody.recursions.robot_entry import entry, put
from kfdyn.sweeps.control_flow import if_, if_else, loop, loop_vars, switch
from kfdyn.sweeps.entry import Given
from kfdyn.sweeps.functions import atan2, sqrt
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.values import where


class Readings(LoopRows):
    """The rows alone: an outward sweep before them in the same workspace."""

    @staticmethod
    def layout(robot, row):
        """The outward sweep's, that of rows, and what their squares are made of."""
        swept = {"bodies": (WORK, robot.n + 1), "rows_of_H": (SCREW, robot.nv)}
        return {**swept, **LoopRows.layout(robot, row), "made_of": row.rows * robot.nv}

    def begin(self):
        """Prepare what stays from row to row."""
        super().begin()
        place_world(self.bodies.memory)
        clear(self.made_of, self.row.rows * self.robot.nv)

    def show(self, r, i, x, seen, size):
        """Keep the size, too."""
        self.made_of[r * self.robot.nv + i] = size
        return super().show(r, i, x, seen, size)

    def _put_forces(self, one, a, b):
        """Write the gaps of the rows; NaN for opposite axes, whose gap has no direction."""
        super()._put_forces(one, a, b)
        apart, turned = b.x - a.x, loop_vars(zeros(self.robot))
        for most in if_else(one.angular == 3):
            if most:  # sin angle · axis is half of what is skew in R_b R_a*
                x, y, z = (a.R.column(i).cross(b.R.column(i)) for i in range(3))
                cosine = 0.5 * (sum(a.R.column(i).dot(b.R.column(i)) for i in range(3)) - 1.0)
                turned.set(_rotation(0.5 * (x + y + z), cosine))
            else:
                for _ in if_(one.angular == 2):
                    x, y = self._axis(one.third), self._axis(one.third, 9)
                    turned.set(_rotation(x.cross(y), x.dot(y)))
        for r in loop(one.last, one.first):
            row = ROW.rows(self.row.row_table)[r]
            for kind in switch(row.kind, (ANGULAR, LINEAR, ACROSS)):
                if kind == ACROSS:
                    self.row.gap[r] = -self._axis(row.j).dot(self._axis(row.k, 9))
                else:
                    self.row.gap[r] = self._axis(row.i).dot(apart if kind == LINEAR else turned.get())


def _rotation(sine, cosine):
    """Angle · axis of sin angle · axis and cos angle."""
    size = sqrt(sine.dot(sine))
    tiny, opposite = size < 1e-12, (size < 1e-6) & (cosine < 0.0)
    safe = where(tiny, size + 1.0, size)
    ratio = where(tiny, safe / safe, atan2(size, cosine) / safe)
    return where(opposite, safe * float("nan"), ratio) * sine


def loop_rows(rows):
    """J, what its squares are made of, J̇v, and the gaps of the rows of all loops; O(depth) a row."""
    robot, row = rows.robot, rows.row
    sweep_outward(robot, row, rows.bodies.memory, rows.rows_of_H.memory, moving=True)
    rows.write()
    row.J.copy(rows.seen, row.rows * robot.nv)
    row.made_of.copy(rows.made_of, row.rows * robot.nv)
    for r in loop(row.rows):
        forces = rows.forces[r]
        row.drift[r] = forces.drift
        put(row.forces, 12 * r, forces.on_a, forces.on_b)


LOOP_ROWS = entry(
    loop_rows,
    Readings,
    [Q, V, ENDS],
    [
        Given("J", ("rows", "nv")),
        Given("made_of", ("rows", "nv")),
        Given("drift", ("rows",)),
        Given("gap", ("rows",)),
        Given("forces", ("rows", 12)),
    ],
    LOOPS,
    may_overflow=False,
)
