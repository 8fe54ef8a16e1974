"""A hinge of any kind, seen in one fixed orientation: where it leads, its rows of H, its bias acceleration."""

from kfdyn.multibody.recursions.robot import POSE, SCREW, SCREWS, dofs, quaternion_of, screw_of
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.algebra import Mat3, Vec3
from kfdyn.sweeps.control_flow import if_, if_else, loop, loop_vars
from kfdyn.sweeps.functions import sincos
from kfdyn.sweeps.trace_context import tracing
from kfdyn.sweeps.values import broadcast


def across(omega, eta, l, h):
    """Move from one frame to the next, l away, moving against it at H*β = h (R86 5.1–5.6).

    ``eta`` carries the acceleration left when the parent's acceleration and β̇ are 0: THEORY section 6's η, in steps.
    """
    a = eta.v + (eta.w.cross(l) + omega.cross(omega.cross(l) + h.v))
    alpha = eta.w + omega.cross(h.w)
    omega = omega + h.w
    return omega, Spatial(alpha, a + omega.cross(h.v))


def turned(R, axis, s, c):
    """R exp(a~ angle) for a unit vector a in the moving frame: c x + s x × a + (1 − c)(a·x) a for its rows."""
    h = 1.0 - c
    rows = []
    for i in range(3):
        x = R.row(i)
        y, d = x.cross(axis), h * x.dot(axis)
        rows += [c * x.x + s * y.x + d * axis.x, c * x.y + s * y.y + d * axis.y, c * x.z + s * y.z + d * axis.z]
    return Mat3(*rows)


def from_quaternion(x, y, z, w):
    """Rotation matrix of a quaternion of any length but 0."""
    r = 2.0 / (x * x + y * y + z * z + w * w)
    xx, yy, zz = r * x * x, r * y * y, r * z * z
    xy, xz, yz = r * x * y, r * x * z, r * y * z
    wx, wy, wz = r * w * x, r * w * y, r * w * z
    return Mat3(1.0 - (yy + zz), xy - wz, xz + wy, xy + wz, 1.0 - (xx + zz), yz - wx, xz - wy, yz + wx, 1.0 - (xx + yy))


def zeros(robot):
    """A vector of numbers of the robot's kind that are 0 and may change."""
    o = broadcast(0.0, robot.lanes)
    return Vec3(o, o, o)


class Hinges:
    """A robot's hinges, as a sweep crosses them: rows of H go to ``H``; unless it is moving, ω and η are no matter."""

    def __init__(self, robot, row, H, moving):
        self.robot, self.row, self.rows_of_H, self.moving = robot, row, SCREW.rows(H), moving

    def cross(self, body, R, l, omega):
        """From the hinge frame R, l away from the parent's origin, to the body's: R, l, ω, and η."""
        none = zeros(self.robot)
        still = Spatial(none, none)
        eta = across(omega, still, l, Spatial.zero())[1] if self.moving else still
        state = loop_vars(R + Mat3(*([none.x] * 9)), l + none, omega + none, eta)
        for screws in if_else(body.kind <= SCREWS):
            if screws:
                for i in dofs(self.robot, body):
                    self._cross_screw(body, i, state)
            else:
                self._cross_quaternion(body, state)
        return state.get()

    def _cross_screw(self, body, i, state):
        """One screw after the other, as through mass-less bodies."""
        R, total, omega, eta = state.get()
        axis, slide = screw_of(self.robot, i).numbers()
        angle, h = self.row.q[body.q + i - body.v], self.rows_of_H
        h[i].h = Spatial(R @ axis, R @ slide)
        turns = (axis.x != 0.0) | (axis.y != 0.0) | (axis.z != 0.0)
        slides = (slide.x != 0.0) | (slide.y != 0.0) | (slide.z != 0.0)
        lever = loop_vars(zeros(self.robot))
        s, c = sincos(angle)
        for _ in if_(slides):
            # exp of a screw: l = (angle + (1 − cos) a~ + (angle − sin) a~a~) slide; where nothing turns, a is 0
            n = axis.cross(slide)
            lever.set(R @ (slide * angle + (n * (1.0 - c) + axis.cross(n) * (angle - s))))
        back = loop_vars(R)
        for _ in if_(turns):
            back.set(turned(R, axis, s, c))
        l = lever.get()
        for _ in if_(slides):  # the origin moves on by l: this row and the earlier ones of the hinge are shifted, φ*
            for j in loop(i + 1, body.v) if tracing.builder is None or not isinstance(i, int) else range(body.v, i + 1):
                h[j].h = h[j].h.motion_shifted(l)
        if self.moving:
            omega, eta = across(omega, eta, l, self.row.v[i] * h[i].h)
        state.set(back.get(), total + l, omega, eta)

    def _cross_quaternion(self, body, state):
        R, total, omega, eta = state.get()
        q, none = self.row.q, zeros(self.robot)
        lever, h = loop_vars(none), self.rows_of_H
        for _ in if_(body.kind == POSE):
            lever.set(R @ Vec3(*(q[body.q + i] for i in range(3))))
        l = lever.get()
        place = quaternion_of(body)
        R = R @ from_quaternion(*(q[place + i] for i in range(4)))
        motion = loop_vars(Spatial(none, none))
        for i in dofs(self.robot, body):
            screw = screw_of(self.robot, i)
            h[i].h = Spatial(R @ screw.w, R @ screw.v)
            if self.moving:
                motion.set(motion.get() + self.row.v[i] * h[i].h)
        if self.moving:
            omega, eta = across(omega, eta, l, motion.get())
        state.set(R, total + l, omega, eta)
