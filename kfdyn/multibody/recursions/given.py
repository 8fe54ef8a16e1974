"""Arguments of recursions over a robot, by name and shape, and rows in which some of them differ."""

from kfdyn.multibody.recursions.robot import soundness
from kfdyn.sweeps.entry import Given
from kfdyn.sweeps.records import Fields

Q = Given("q", ("nq",), sound=soundness())
V = Given("v", ("nv",))
A = Given("a", ("nv",))
TAU = Given("tau", ("nv",))
FORCES = Given("external_forces", ("n", 6), optional=True)
GRAVITY = Given("gravity", (3,), shared=True, own=True)


def changed(row, **others):
    """The row as it is, but for these columns."""
    state = Fields()
    vars(state).update(vars(row) | others)
    return state
