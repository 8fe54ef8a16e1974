"""What is read off an outward sweep along a frame's path from the root: its Jacobian, its pose, its motion.

``path`` holds the bodies of the path, ``arm`` (3,) is where the frame is in the last of them, ``turn`` (9,) how it is
turned there.
"""

from kfdyn.multibody.recursions.energy import Q, V
from kfdyn.multibody.recursions.hinges import zeros
from kfdyn.multibody.recursions.outward import WORK, along, axis_of, outward_body, place_world, prepare_sines
from kfdyn.multibody.recursions.robot import REVOLUTE, ROBOT, SCREW, Body, dofs
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.algebra import Mat3, Vec3
from kfdyn.sweeps.control import carried, down, either, when
from kfdyn.sweeps.entry import Entry, Given, Parameter
from kfdyn.sweeps.memory import clear


class Path:
    """The workspace: bodies, rows of H, entries of the Jacobian."""

    def __init__(self, robot, row, work):
        self.robot, self.row, self.work, self.bodies = robot, row, work, WORK.rows(work)
        at = (robot.n + 1) * WORK.width
        self.H, self.rows_of_H = work.part(at), SCREW.rows(work.part(at))
        self.entries = row.J if robot.alone and hasattr(row, "J") else work.part(at + robot.nv * SCREW.width)

    @staticmethod
    def size(robot, row):
        """How many numbers it works in."""
        return (robot.n + 1) * WORK.width + robot.nv * (SCREW.width + 6)

    def sweep(self, moving):
        """Outward along the path."""
        prepare_sines(self.robot, self.row, self.work, self.row.path)
        for body in self.along():
            outward_body(self.robot, body, self.row, self.work, self.H, moving)

    def along(self):
        """Over the bodies of the path, outward."""
        yield from along(self.robot, self.row.path, self.row.length)

    def back(self):
        """Over the bodies of the path, inward."""
        for i in down(self.row.length):
            yield Body(self.robot, self.row.path[i])

    def lever(self):
        """From the last body's origin to the frame's, and how that body is turned."""
        R = self.bodies[self.row.path[self.row.length - 1]].R
        return R @ Vec3(*(self.row.arm[i] for i in range(3))), R


def begin(robot, row, work):
    """The world."""
    place_world(work)


def begin_jacobian(robot, row, work):
    """The world, and columns of dofs beside the path, which stay 0."""
    place_world(work)
    clear(Path(robot, row, work).entries, 6 * robot.nv)


def jacobian(robot, row, work):
    """J: columns φ*(k, frame) H*(k) of the bodies on the path, else 0."""
    path, nv = Path(robot, row, work), robot.nv
    path.sweep(moving=False)
    lever = carried(path.lever()[0])

    def put(i, h):
        for j, x in enumerate([*h.w, *h.v]):
            path.entries[j * nv + i] = x

    for body in path.back():
        l = lever.get()  # from the body to the frame
        for revolute in either(body.kind == REVOLUTE):
            if revolute:
                axis = axis_of(body.t, work)
                put(body.v, Spatial(axis, axis.cross(l)))
            else:
                for i in dofs(robot, body):
                    put(i, path.rows_of_H[i].h.motion_shifted(l))
        lever.set(l + path.bodies[body.t].l)
    row.J.copy(path.entries, 6 * nv)


def frame_pose(robot, row, work):
    """Orientation and position of the frame, nine numbers and three."""
    path = Path(robot, row, work)
    path.sweep(moving=False)
    lever, R = path.lever()
    x = carried(lever)
    for body in path.along():
        x.set(x.get() + path.bodies[body.t].l)
    turned = R @ Mat3(*(row.turn[i] for i in range(9)))
    for i, entry in enumerate(turned.m):
        row.rotation[i] = entry
    for i, entry in enumerate(x.get()):
        row.position[i] = entry


def frame_velocity(robot, row, work):
    """Velocity of the frame, V(k) = φ*V(p) + H*β (R86 5.1–5.3)."""
    path = Path(robot, row, work)
    path.sweep(moving=True)
    speed = carried(zeros(robot))
    for body in path.along():
        here, up = path.bodies[body.t], path.bodies[body.parent]
        speed.set(speed.get().plus_cross(up.omega, here.l))
        for _ in when(body.kind != REVOLUTE):
            for i in dofs(robot, body):
                speed.set(speed.get() + row.v[i] * path.rows_of_H[i].h.v)
    omega = path.bodies[row.path[row.length - 1]].omega
    for i, x in enumerate([*omega, *speed.get().plus_cross(omega, path.lever()[0])]):
        row.velocity[i] = x


def frame_acceleration(robot, row, work):
    """Classical acceleration of the frame: α(k) = φ*α(p) + H*β̇ + η (R86 5.4–5.5); β̇ may be missing."""
    path = Path(robot, row, work)
    path.sweep(moving=True)
    motion = carried(Spatial(zeros(robot), zeros(robot)))
    for body in path.along():
        here = path.bodies[body.t]
        motion.set(motion.get().motion_shifted(here.l) + here.eta)
        for _ in when(row.a.given):
            for revolute in either(body.kind == REVOLUTE):
                if revolute:
                    motion.set(motion.get() + row.a[body.v] * Spatial(axis_of(body.t, work), Vec3.zero()))
                else:
                    for i in dofs(robot, body):
                        motion.set(motion.get() + row.a[i] * path.rows_of_H[i].h)
    omega, arm, last = path.bodies[row.path[row.length - 1]].omega, path.lever()[0], motion.get()
    for i, x in enumerate([*last.w, *((last.v + last.w.cross(arm)) + omega.cross(omega.cross(arm)))]):
        row.acceleration[i] = x


_PATH = [Parameter("length", "n"), Parameter("path", "i"), Parameter("arm", "f")]

JACOBIAN = Entry(jacobian, ROBOT, [Q], [Given("J", (6, "nv"))], Path.size, begin_jacobian, _PATH, may_overflow=False)
POSE = Entry(
    frame_pose,
    ROBOT,
    [Q],
    [Given("rotation", (3, 3)), Given("position", (3,))],
    Path.size,
    begin,
    [*_PATH, Parameter("turn", "f")],
)
VELOCITY = Entry(frame_velocity, ROBOT, [Q, V], [Given("velocity", (6,))], Path.size, begin, _PATH)
ACCELERATION = Entry(
    frame_acceleration,
    ROBOT,
    [Q, V, Given("a", ("nv",), optional=True)],
    [Given("acceleration", (6,))],
    Path.size,
    begin,
    _PATH,
)
