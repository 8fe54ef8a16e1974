"""Forward dynamics: one outward sweep, one gather, one scatter, on as many configurations as a vector has lanes."""

from kfdyn.dynamics.recursions.articulated import Filter
from kfdyn.multibody.recursions.energy import Q, V
from kfdyn.multibody.recursions.outward import sweep_outward
from kfdyn.multibody.recursions.robot import ROBOT
from kfdyn.sweeps.entry import Entry, Given


def forward_dynamics(robot, row, work):
    """a: THEORY (2)–(4) with scalar measurements in succession. About 600 flops for a body on one dof.

    Where the least d of a row's dofs is not more than rounding, some hinge has no inertia, and the row has no answer.
    """
    f = Filter(robot, row, work, moving=True)
    sweep_outward(robot, row, f.work, f.H, moving=True)
    least = f.gather()
    f.scatter()
    return least


def begin(robot, row, work):
    """Slot 0 and the world stay as they are from row to row."""
    Filter(robot, row, work, moving=True).begin()


#: What most entries are given beside.
FORCES = Given("external_forces", ("n", 6), optional=True)
GRAVITY = Given("gravity", (3,), shared=True, own=True)

FORWARD = Entry(
    forward_dynamics,
    ROBOT,
    [Q, V, Given("tau", ("nv",)), FORCES, GRAVITY],
    [Given("a", ("nv",))],
    lambda robot, row: Filter.size(robot),
    begin,
    unroll=24,
)
