"""Readings of an outward sweep along a frame's path from the root: its Jacobian, its pose, its motion.

``path`` holds the bodies of the path, ``arm`` (3,) is where the frame is in the last of them, ``turn`` (9,) how it is
turned there.
"""

from kfdyn.multibody.recursions.given import Q, V
from kfdyn.multibody.recursions.hinges import zeros
from kfdyn.multibody.recursions.outward import Outward, along
from kfdyn.multibody.recursions.robot import inboard
from kfdyn.multibody.recursions.robot_entry import Swept, entry, put, sped, vector
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.algebra import Mat3
from kfdyn.sweeps.control_flow import flattened, if_, loop_vars
from kfdyn.sweeps.entry import Given, Parameter
from kfdyn.sweeps.memory import clear


class Path(Swept):
    """The workspace: bodies and rows of H, of which those on the path are filled."""

    def sweep_outward(self, moving):
        """Outward along the path."""
        sweep = Outward(self.robot, self.row, self.work, self.H, moving)
        sweep.prepare_sines(self.row.path)
        for body in self.along():
            sweep.reach(body)
        self.last = self.bodies[self.row.path[self.row.length - 1]]
        self.lever = self.last.R @ vector(self.row.arm)  # from the last body's origin to the frame's

    def along(self):
        """Over the bodies of the path, outward."""
        yield from along(self.robot, self.row.path, self.row.length)


class Columns(Path):
    """The same, and the entries of the Jacobian."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.entries = row.J if robot.alone and hasattr(row, "J") else self.take(6 * robot.nv)

    def begin(self):
        """The world, and columns of dofs beside the path, which stay 0."""
        super().begin()
        clear(self.entries, 6 * self.robot.nv)


def jacobian(path):
    """J: columns φ*(k, frame) H*(k) of the bodies on the path, else 0."""
    row, nv = path.row, path.robot.nv
    path.sweep_outward(moving=False)
    lever = loop_vars(path.lever)
    for body in inboard(path.robot, row.path[row.length - 1]):
        l = lever.get()  # from the body to the frame
        for i, h in path.rows(body):
            column = h.motion_shifted(l)
            for j, x in enumerate(flattened(column)):
                path.entries[j * nv + i] = x
        lever.set(l + path.bodies[body.t].l)
    row.J.copy(path.entries, 6 * nv)


def frame_pose(path):
    """Orientation and position of the frame, nine numbers and three."""
    row = path.row
    path.sweep_outward(moving=False)
    x = loop_vars(path.lever)
    for body in path.along():
        x.set(x.get() + path.bodies[body.t].l)
    put(row.rotation, 0, path.last.R @ Mat3(*(row.turn[i] for i in range(9))))
    put(row.position, 0, x.get())


def frame_velocity(path):
    """Velocity of the frame, V(k) = φ*V(p) + H*β (R86 5.1–5.3)."""
    row, speed = path.row, loop_vars(zeros(path.robot))
    path.sweep_outward(moving=True)
    for body in path.along():
        speed.set(sped(path, body, speed.get(), row.v))
    put(row.velocity, 0, Spatial(path.last.omega, speed.get()).motion_shifted(path.lever))


def frame_acceleration(path):
    """Classical acceleration of the frame: α(k) = φ*α(p) + H*β̇ + η (R86 5.4–5.5); β̇ may be missing."""
    row, motion = path.row, loop_vars(Spatial(zeros(path.robot), zeros(path.robot)))
    path.sweep_outward(moving=True)
    for body in path.along():
        here = path.bodies[body.t]
        motion.set(motion.get().motion_shifted(here.l) + here.eta)
        for _ in if_(row.a.given):
            for i, h in path.rows(body):
                motion.set(motion.get() + row.a[i] * h)
    omega, arm, last = path.last.omega, path.lever, motion.get()
    put(row.acceleration, 0, last.w, (last.v + last.w.cross(arm)) + omega.cross(omega.cross(arm)))


_PATH = [Parameter("length", "n"), Parameter("path", "i"), Parameter("arm", "f")]

JACOBIAN = entry(jacobian, Columns, [Q], [Given("J", (6, "nv"))], _PATH, may_overflow=False)
POSE = entry(
    frame_pose,
    Path,
    [Q],
    [Given("rotation", (3, 3)), Given("position", (3,))],
    [*_PATH, Parameter("turn", "f")],
)
VELOCITY = entry(frame_velocity, Path, [Q, V], [Given("velocity", (6,))], _PATH)
ACCELERATION = entry(
    frame_acceleration, Path, [Q, V, Given("a", ("nv",), optional=True)], [Given("acceleration", (6,))], _PATH
)
