"""A robot as recursions see it: bodies counted outward, frames turned so that hinges are simple, places to keep sums.

A body on one rotation gets a frame of its own whose z is the axis and whose x is the common normal of the axis and the
next one. Then Rz(a) Rx(alpha) Rz(b + q) leads from the parent's frame to it, with a = 0 along a chain (Denavit and
Hartenberg's angles; the origin stays where it is). No answer depends on the choice of these frames.
"""

from kfdyn.multibody.calls.arguments import QUATERNION_TOLERANCE
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.algebra import Mat3, Sym3, Vec3
from kfdyn.sweeps.batch.entry_codegen import finite
from kfdyn.sweeps.control_flow import down, if_, loop, while_
from kfdyn.sweeps.functions import sqrt
from kfdyn.sweeps.records import Record, Table
from kfdyn.sweeps.trace_context import tracing
from kfdyn.sweeps.values import now, unboxed, where
from kfdyn.sweeps.variables import local

#: Kinds of hinges: one rotation, one translation (up to here one dof); any number of screws; the rest have quaternions.
REVOLUTE, SLIDE, SCREWS, BALL, POSE = 0, 1, 2, 3, 4

#: What codes branch on: the two kinds of one dof, and all the others.
KINDS = (REVOLUTE, SLIDE, SCREWS)

#: Indices of a body. Bodies are counted from 1, each followed by all that is outboard of it, up to ``end``; 0 is the
#: world. Dofs are counted in the same order: those of the body are column … own_end, with what is outboard …
#: column_end; ``robot.entry`` says which entry of v each is. Slots hold what a gather sums up: a body's sum so far is
#: at ``arrives``; with its own part it is added to what is at ``base`` and put at ``leaves``. Slot 0 is always zero.
#: loose: 1 if something outboard slides, 2 if very many bodies are outboard. snap: where the inverse keeps the columns
#: outboard of a body that branches, or −1. body: its number in the system.
INDEX = Record(
    parent=int, kind=int, twisted=int, q=int, v=int, v_end=int, body=int, arrives=int, base=int, leaves=int, loose=int,
    end=int, column=int, own_end=int, column_end=int, snap=int,
)  # fmt: skip


class _Pair:
    """A cosine and a sine."""

    SIZE = 2

    @staticmethod
    def of(numbers):
        return tuple(numbers)


#: Floats of a body: rotation from the parent; cosine and sine of a, and of alpha; b; position of the hinge in the
#: parent's frame; moment of inertia about the hinge point, m p, m; the moment as j + sym(x g) + sym(y h), see
#: :func:`~.outward.inertia_of`; the armature of the first dof; mass of all outboard, and a bound of their moment of
#: inertia where that is constant; the frame in the system's.
LINK = Record(
    rotation=Mat3, twist=_Pair, tilt=_Pair, offset=float, position=Vec3, moment=Sym3, first=Vec3, mass=float,
    split=Sym3, armature=float, all_mass=float, all_moment=float, frame=Mat3,
)  # fmt: skip

#: Those of them in which robots of one topology may differ (see :mod:`kfdyn.multibody.recursions.variants.varied`).
OWN = Record(
    position=Vec3, moment=Sym3, first=Vec3, mass=float, split=Sym3, armature=float, all_mass=float, all_moment=float,
)  # fmt: skip

SCREW = Record(h=Spatial)

ROBOT = Table(
    n=int, nq=int, nv=int, slots=int, snaps=int, index=(int,), real=(float,), screws=(float,), armature=(float,),
    entries=(int,), busy=(int,), workspace=int, floats=int, gravity=(float,),
)  # fmt: skip


class Body:
    """Body t: its indices and floats by name."""

    def __init__(self, robot, t):
        self.t, self._real = t, LINK.rows(robot.real)[t]
        own = getattr(robot, "own", None)
        self._own = self._real if own is None else OWN.rows(own)[t]
        row = INDEX.rows(robot.index)[t]
        for name in INDEX.fields:  # read here, before any branch, so that all branches may use them
            setattr(self, name, getattr(row, name))

    def __getattr__(self, name):
        return getattr(self._own if name in OWN.fields else self._real, name)


def outward(robot):
    """Over all bodies, parents first."""
    for t in loop(robot.n + 1, 1) if not known(robot) else range(1, robot.n + 1):
        yield Body(robot, t)


def inward(robot):
    """Over all bodies, children first."""
    for t in down(robot.n + 1, 1) if not known(robot) else range(robot.n, 0, -1):
        yield Body(robot, t)


def inboard(robot, t):
    """Over body t and all between it and the world."""
    at = local(t)
    for _ in while_(lambda: at != 0):
        body = Body(robot, now(at))
        yield body
        at.set(body.parent)


def children(robot, body):
    """Over the bodies whose parent it is."""
    at = local(body.t + 1)
    for _ in while_(lambda: at < body.end):
        child = Body(robot, now(at))
        yield child
        at.set(child.end)


def known(robot):
    """True if the robot's numbers are Python's own while code is written: then its loops are, too."""
    return tracing.builder is not None and isinstance(robot.n, int)


def dofs(robot, body, backwards=False):
    """Over the dofs of a body."""
    first, last = body.v, body.v_end
    if isinstance(first, int) and isinstance(last, int):
        yield from (range(last - 1, first - 1, -1) if backwards else range(first, last))
    else:
        yield from (down(last, first) if backwards else loop(last, first))


def screw_of(robot, i):
    """The screw of dof i."""
    return SCREW.rows(robot.screws)[i].h


def quaternion_of(body):
    """Return where the quaternion of a ball or of a pose is in q: the position comes first."""
    return body.q + where(body.kind == POSE, 3, 0)


def soundness(own=lambda robot, i: i):
    """Return the check of rows first … last of q: finite, and quaternions of unit length; q_i is at ``own(i)``."""

    def is_sound(robot, row, q, first, last, width):
        fine = local(finite(q, first * width, last * width))
        for _ in if_(fine & (robot.nq != robot.nv)):  # each quaternion is one number longer than its velocity
            for body in outward(robot):
                for _ in if_(body.kind >= BALL):
                    place = own(robot, quaternion_of(body))
                    for b in loop(last, first):
                        at = b * width + place
                        x, y, z, w = (q[at + i] for i in range(4))
                        length = sqrt(x * x + y * y + z * z + w * w)
                        fine.set(fine & (abs(length - 1.0) <= QUATERNION_TOLERANCE))
        return unboxed(fine)

    return is_sound
