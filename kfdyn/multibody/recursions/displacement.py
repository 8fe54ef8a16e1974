"""Configurations: q moved by dv, the dv between two q, and the positions of coupled hinges."""

from kfdyn.multibody.recursions.given import Q
from kfdyn.multibody.recursions.hinges import zeros
from kfdyn.multibody.recursions.robot import POSE, SCREWS, dofs, outward, quaternion_of, screw_of
from kfdyn.multibody.recursions.robot_entry import entry, put, six, vector
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.multibody.recursions.variants.geared import GEARED, Expansion, own
from kfdyn.multibody.recursions.workspace import Workspace
from kfdyn.sweeps.algebra import Vec3
from kfdyn.sweeps.control_flow import if_, if_else, loop_vars
from kfdyn.sweeps.entry import Given, Parameter
from kfdyn.sweeps.functions import atan2, minimum, sincos, sqrt
from kfdyn.sweeps.values import where


class Quaternion:
    """A unit quaternion (n, w)."""

    def __init__(self, n, w):
        self.n, self.w = n, w

    @classmethod
    def read(cls, column, place):
        """The one at a place of q, divided by its length."""
        x, y, z, w = (column[place + i] for i in range(4))
        r = 1.0 / sqrt(x * x + y * y + z * z + w * w)
        return cls(Vec3(x * r, y * r, z * r), w * r)

    @classmethod
    def exp(cls, w):
        """The rotation by a rotation vector."""
        half = 0.5 * sqrt(w.dot(w))
        s, c = sincos(half)
        near = half < 1e-4
        return cls(w * where(near, 0.5 * (1.0 - half * half / 6.0), 0.5 * s / where(near, 1.0, half)), c)

    def log(self):
        """Rotation vector of length at most π; e and −e are the same rotation."""
        sign = where(self.w < 0.0, -1.0, 1.0)
        n, w = self.n * sign, sign * self.w
        size = sqrt(n.dot(n))
        near = size < 1e-12  # 2 atan2(size, w) / size → 2 / w as size → 0
        return n * where(near, 2.0 / where(near, w, 1.0), 2.0 * atan2(size, w) / where(near, 1.0, size))

    def __mul__(self, other):
        a, b = self, other
        return Quaternion((a.w * b.n + b.w * a.n).plus_cross(a.n, b.n), a.w * b.w - a.n.dot(b.n))

    def inverse(self):
        """The rotation back."""
        return Quaternion(-self.n, self.w)

    def rotate(self, x):
        """Turn a vector."""
        t = 2.0 * self.n.cross(x)
        return x + (self.w * t).plus_cross(self.n, t)


def exp_coefficients(t):
    """(1 − cos t)/t² and (t − sin t)/t³, by series where the quotients cancel."""
    near = t < 0.1
    s, far = t * t, where(near, 1.0, t)
    half, whole = sincos(0.5 * t)[0] / far, sincos(t)[0]
    return (
        where(near, 0.5 - s * (1 / 24 - s * (1 / 720 - s * (1 / 40320 - s / 3628800))), 2.0 * (half * half)),
        where(
            near,
            1 / 6 - s * (1 / 120 - s * (1 / 5040 - s * (1 / 362880 - s / 39916800))),
            (t - whole) / (far * far * far),
        ),
    )


def moved(robot, q, dv, out):
    """Q moved by ``dv(i)`` into ``out``: screws add, quaternions and poses by the exponential of H* dv."""
    for body in outward(robot):
        for screws in if_else(body.kind <= SCREWS):
            if screws:
                for i, place in _screws(robot, body):
                    out[place] = q[place] + dv(i)
            else:
                _move_pose(robot, body, q, dv, out)


def _screws(robot, body):
    """Over the dofs of a hinge of screws, and the places of their coordinates in q."""
    for i in dofs(robot, body):
        yield i, body.q + i - body.v


def _twist(robot, body, dv):
    """H* dv of a hinge whose rows are fixed in the child."""
    twist = loop_vars(Spatial(zeros(robot), zeros(robot)))
    for i in dofs(robot, body):
        twist.set(twist.get() + dv(i) * screw_of(robot, i))
    return twist.get()


def _move_pose(robot, body, q, dv, out):
    twist = _twist(robot, body, dv)
    w, u = twist.w, twist.v
    place = quaternion_of(body)
    e = Quaternion.read(q, place)
    for _ in if_(body.kind == POSE):
        f, g = exp_coefficients(sqrt(w.dot(w)))
        wu = w.cross(u)
        put(out, body.q, vector(q, body.q) + e.rotate(u + (f * wu + g * w.cross(wu))))
    e = e * Quaternion.exp(w)
    r = 1.0 / sqrt(e.n.dot(e.n) + e.w * e.w)
    put(out, place, r * e.n, r * e.w)


def integrate(sweep):
    """Q moved by dv."""
    row = sweep.row
    moved(sweep.robot, row.q, lambda i: row.dv[i], row.moved)


def difference(sweep):
    """The dv that integrate turns q into q2 by; no answer where a hinge cannot do it: then ``reach`` < 0 there.

    ``left_inverse`` (nv, 6) are rows of H^-*: what H* dv does not reach, no β of this hinge does.
    """
    robot, row = sweep.robot, sweep.row
    margin = loop_vars(zeros(robot).x + 1.0)
    for body in outward(robot):
        for screws in if_else(body.kind <= SCREWS):
            if screws:
                for i, place in _screws(robot, body):
                    row.dv[i] = row.q2[place] - row.q[place]
            else:
                margin.set(minimum(margin.get(), _between(robot, row, body)))
    return margin.get()


def _between(robot, row, body):
    """Dv of a quaternion or a pose; how far within the tolerance its hinge reaches."""
    place = quaternion_of(body)
    back = Quaternion.read(row.q, place).inverse()
    w, lin = (back * Quaternion.read(row.q2, place)).log(), loop_vars(zeros(robot))
    for _ in if_(body.kind == POSE):
        t = back.rotate(vector(row.q2, body.q) - vector(row.q, body.q))
        angle = sqrt(w.dot(w))
        near, s = angle < 0.1, angle * angle
        far = where(near, 1.0, angle)
        sine, cosine = sincos(0.5 * angle)
        g = where(
            near,
            1 / 12 + s * (1 / 720 + s * (1 / 30240 + s * (1 / 1209600 + s / 47900160))),
            (1.0 - 0.5 * angle * cosine / where(near, 1.0, sine)) / (far * far),
        )
        wt = w.cross(t)
        lin.set(t + ((-0.5) * wt + g * w.cross(wt)))
    twist = Spatial(w, lin.get())
    left = loop_vars(twist)
    for i in dofs(robot, body):
        d = six(row.left_inverse, 6 * i).dot(twist)
        row.dv[i] = d
        left.set(left.get() - d * screw_of(robot, i))
    rest = left.get()
    return row.tolerance[0] * (1.0 + sqrt(twist.dot(twist))) - sqrt(rest.dot(rest))


#: What :func:`difference` wants to know of all hinges.
REACH = [Parameter("left_inverse", "f"), Parameter("tolerance", "f")]

INTEGRATE = entry(integrate, Workspace, [Q, Given("dv", ("nv",))], [Given("moved", ("nq",))])
DIFFERENCE = entry(difference, Workspace, [Q, Q._replace(name="q2")], [Given("dv", ("nv",))], REACH)


def expand(sweep):
    """X q + offset."""
    return Expansion(sweep.robot).positions(sweep.row.q, sweep.row.positions)


GEARED_EXPAND = entry(expand, Workspace, [own(Q)], [Given("positions", ("nq",))], table=GEARED)
