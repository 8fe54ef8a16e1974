"""What a sweep needs of each body, side by side: frames turned so that hinges are simple, places for what it keeps.

A body on one rotation gets a frame of its own whose z is the axis and whose x is the common normal of the axis and the
next one. Then Rz(a) Rx(alpha) Rz(b + q) leads from the parent's frame to it, with a = 0 along a chain (Denavit and
Hartenberg's angles; the origin stays where it is). No answer depends on the choice of these frames.
"""

from typing import Any, NamedTuple

from numba import njit

from kfdyn._kernels.vectors import item
from kfdyn.multibody._kernels.fused.numbers import INLINED

#: Columns of ``index``. Bodies are counted from 1, each followed by all that is outboard of it, up to END; 0 is the
#: world. Dofs are counted in the same order: those of the body are COLUMN … OWN_END, with what is outboard …
#: COLUMN_END; :func:`entry` says which entry of v each is. Slots hold what a gather sums up: a body's sum so far is at
#: IN; with its own part it is added to what is at BASE and put at OUT. Slot 0 is always zero. LOOSE: 1 if
#: something outboard slides, 2 if very many bodies are outboard. FORCE_ROW: where the body's external force is in a row
#: of such. SNAP: where the inverse keeps the columns outboard of a body that branches, or −1.
PARENT, KIND, TWISTED, Q, V, V_END, FORCE_ROW, IN, BASE, OUT, LOOSE = range(11)
END, COLUMN, OWN_END, COLUMN_END, SNAP = range(11, 16)

#: More columns, for the making of the plan: the body's number in the layout, its place by that number, the child that
#: its frame looks at, lists of children (youngest, next), bodies that wait, the slot of a body's sum, free slots.
_BODY, _PLACE, _LOOKS_AT, _YOUNGEST, _NEXT, _WAITING, _SLOT, _FREE, INDEX = range(16, 25)

#: Kinds of hinges: one rotation, one translation (up to here one dof); any number of screws; the rest have quaternions.
REVOLUTE, SLIDE, SCREWS, BALL, POSE = 0, 1, 2, 3, 4

#: Columns of ``real``: rotation 9, cosine and sine of a and of alpha, b, position of the hinge in the parent's frame 3,
#: moment of inertia about the hinge point 6, m p 3, m; the moment as j + sym(x g) + sym(y h), see below; the
#: armature of the first dof; mass of all outboard, and a bound of their moment of inertia where that is constant.
ROTATION, TWIST, TILT, OFFSET, POSITION, MOMENT, FIRST, MASS = 0, 9, 11, 13, 14, 17, 23, 26
SPLIT, ARMATURE, ALL_MASS, ALL_MOMENT, _FRAME, REAL = 27, 33, 34, 35, 36, 45


class Plan(NamedTuple):
    """Pointers to tables over bodies (row 0 is the world) and dofs, and sizes."""

    index: Any
    real: Any
    screws: Any
    armature: Any
    n: int
    nq: int
    nv: int
    slots: int
    snaps: int


@njit(**INLINED)
def of(plan, t, column):
    """A float of body t."""
    return item(plan.real, t * REAL + column)


@njit(**INLINED)
def at(plan, t, column):
    """An index of body t."""
    return item(plan.index, t * INDEX + column)


@njit(**INLINED)
def entry(plan, column):
    """Which entry of v the dof of a column is: behind the rows of the bodies."""
    return item(plan.index, (plan.n + 1) * INDEX + column)
