"""Workspace of recursions over a robot: bodies and rows of H as the outward sweep leaves them, and what else they keep.

Also what most of them are given, and how an entry is made of one.
"""

from kfdyn.multibody.recursions.outward import WORK, Outward, axis_of, inertia_of, place_world
from kfdyn.multibody.recursions.robot import REVOLUTE, ROBOT, SCREW, dofs
from kfdyn.multibody.recursions.spatial import Rigid, Spatial
from kfdyn.multibody.recursions.variants.geared import for_couplings
from kfdyn.multibody.recursions.variants.varied import varied
from kfdyn.multibody.recursions.workspace import Workspace
from kfdyn.sweeps.algebra import Vec3
from kfdyn.sweeps.control_flow import flattened, if_, if_else, loop_vars
from kfdyn.sweeps.entry import Entry, Options


class RobotEntry(Entry):
    """An entry over the tables of a robot, of which those for couplings follow."""

    def coupled(self, kind):
        """The same for a robot with couplings: "geared" where X is constant, "curved" where hinges follow polynomials.

        What a robot's tables are made of says which it is for; one that is written for constant X serves polynomials.
        """
        return for_couplings(self, kind)

    def varied(self):
        """The same for robots of one topology that differ in numbers."""
        return varied(self)


class Reached:
    """Results of an outward sweep: ``bodies`` of a robot, and ``rows_of_H``."""

    def one_row(self, body, kind):
        """The row of H of a hinge of one dof; what is 0 in it is known to be, and no sum or product has it."""
        none = Vec3.zero()
        if kind == REVOLUTE:
            return Spatial(axis_of(body.t, self.bodies.memory), none)
        return Spatial(none, self.rows_of_H[body.v].h.v)

    def rows(self, body):
        """Over the dofs of a body, and their rows of H."""
        for revolute in if_else(body.kind == REVOLUTE):
            if revolute:
                yield body.v, self.one_row(body, REVOLUTE)
            else:
                for i in dofs(self.robot, body):
                    yield i, self.rows_of_H[i].h

    def inertia(self, body):
        """M of a body about its hinge point, world orientation."""
        return Rigid(*inertia_of(body, self.bodies.memory), body.mass)


class Swept(Reached, Workspace):
    """Bodies and rows of H, as the outward sweep fills them."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.work, self.H = self.take((robot.n + 1) * WORK.width), self.take(robot.nv * SCREW.width)
        self.bodies, self.rows_of_H = WORK.rows(self.work), SCREW.rows(self.H)

    def begin(self):
        """The world."""
        place_world(self.work)

    def sweep_outward(self, moving=True):
        """R and l of every body, and if it is moving ω and η."""
        self.moving = moving
        Outward(self.robot, self.row, self.work, self.H, moving).run()


def sped(swept, body, speed, v):
    """Velocity of a body's origin, given that of its parent's: V(k) = φ*V(p) + H*β (R86 5.3)."""
    state = loop_vars(speed.plus_cross(swept.bodies[body.parent].omega, swept.bodies[body.t].l))
    for _ in if_(body.kind != REVOLUTE):
        for i in dofs(swept.robot, body):
            state.set(state.get() + v[i] * swept.rows_of_H[i].h.v)
    return state.get()


def vector(numbers, at=0):
    """Three numbers of a column as a vector."""
    return Vec3(*(numbers[at + i] for i in range(3)))


def six(numbers, at=0):
    """Six numbers of a column as a spatial vector."""
    return Spatial.of([numbers[at + i] for i in range(6)])


def push_on(row, body):
    """The external force on a body."""
    return six(row.external_forces.part(6 * body.body))


def put(column, at, *values):
    """Numbers, vectors or matrices one after the other."""
    for i, x in enumerate(flattened(values)):
        column[at + i] = x


def put_both(matrix, n, i, j, value):
    """Entries (i, j) and (j, i) of a symmetric matrix of n rows."""
    matrix[i * n + j] = value
    matrix[j * n + i] = value


def entry(recursion, workspace, given, results, parameters=(), table=ROBOT, **options):
    """The entry of ``recursion(sweep)``, ``sweep`` being a workspace of this class; the rest as in :class:`Entry`."""

    def run(robot, row, work):
        return recursion(workspace(robot, row, work))

    run.__name__, run.__module__ = recursion.__name__, recursion.__module__
    return RobotEntry(run, table, [*parameters, *given], results, workspace, Options(**options))
