"""Spatial algebra over any number: vectors [angular; linear], rigid shifts, articulated inertias."""

from kfdyn.sweeps.algebra import Mat3, Sym3, Vec3


class Spatial:
    """A spatial vector [w; v]: a force [moment; force], a motion [angular; linear] or a row of H."""

    SIZE = 6
    __slots__ = ("v", "w")

    def __init__(self, w, v):
        self.w, self.v = w, v

    @classmethod
    def of(cls, numbers):
        """The vector of six numbers."""
        return cls(Vec3(*numbers[:3]), Vec3(*numbers[3:]))

    @classmethod
    def zero(cls):
        """0."""
        return cls(Vec3.zero(), Vec3.zero())

    def numbers(self):
        """The two vectors."""
        return (self.w, self.v)

    def like(self, numbers):
        """A vector of other numbers."""
        return Spatial(*numbers)

    def __add__(self, other):
        return Spatial(self.w + other.w, self.v + other.v)

    def __sub__(self, other):
        return Spatial(self.w - other.w, self.v - other.v)

    def __mul__(self, k):
        return Spatial(k * self.w, k * self.v)

    __rmul__ = __mul__

    def __neg__(self):
        return Spatial(-self.w, -self.v)

    def dot(self, other):
        """x*y, one sum."""
        a, b, x, y = self.w, self.v, other.w, other.v
        return a.x * x.x + a.y * x.y + a.z * x.z + b.x * y.x + b.y * y.y + b.z * y.z

    def added_to(self, motion, rate):
        """Motion + H* rate, of a row of H."""
        return motion + rate * self

    def plus(self, g, k):
        """x + k g."""
        return self + k * g

    def cross(self, u):
        """v × u of motions."""
        return Spatial(self.w.cross(u.w), self.w.cross(u.v).plus_cross(self.v, u.w))

    def cross_force(self, f):
        """v ×* f, of a motion and a force."""
        return Spatial(self.w.cross(f.w).plus_cross(self.v, f.v), self.w.cross(f.v))

    def force_shifted(self, l):
        """φ f = [n + l × f; f]: a force seen l inboard."""
        return Spatial(self.w.plus_cross(l, self.v), self.v)

    def motion_shifted(self, l):
        """φ* λ = [α; a + α × l]: a motion seen l outboard."""
        return Spatial(self.w, self.v.plus_cross(self.w, l))


class Rigid:
    """A rigid inertia about a point: moment, first moment, mass."""

    def __init__(self, J, p, m):
        self.J, self.p, self.m = J, p, m

    def __matmul__(self, h):
        """M h*, of a row of H or of a motion."""
        return Spatial((self.J @ h.w).plus_cross(self.p, h.v), (self.m * h.v).plus_cross(h.w, self.p))

    def rows(self):
        """M = [[J, m p~], [−m p~, m 1]], row by row, symmetric to the bit  (R86 3.1)."""
        J, p, m = self.J.s, self.p, self.m
        return [
            [J[0], J[1], J[2], 0.0, -p.z, p.y],
            [J[1], J[3], J[4], p.z, 0.0, -p.x],
            [J[2], J[4], J[5], -p.y, p.x, 0.0],
            [0.0, p.z, -p.y, m, 0.0, 0.0],
            [-p.z, 0.0, p.x, 0.0, m, 0.0],
            [p.y, -p.x, 0.0, 0.0, 0.0, m],
        ]

    def bias(self, omega):
        """ξ at angular velocity ω, without external forces (R86 4.4)."""
        return Spatial(omega.cross(self.J @ omega), omega.cross(omega.cross(self.p)))

    def shifted(self, l):
        """φ M φ*, by the parallel axis theorem: J + 2 r·l 1 − r l* − l r* with r = p + m l / 2."""
        r, s = self.p + (0.5 * self.m) * l, self.J.s
        x, y, z = r.x * l.x, r.y * l.y, r.z * l.z
        moment = Sym3(
            s[0] + 2.0 * (y + z), s[1] - r.x * l.y - l.x * r.y, s[2] - r.x * l.z - l.x * r.z,
            s[3] + 2.0 * (x + z), s[4] - r.y * l.z - l.y * r.z, s[5] + 2.0 * (x + y),
        )  # fmt: skip
        return Rigid(moment, self.p + self.m * l, self.m)


class Articulated:
    """P = [[J, B], [B*, C]] about a point: what a filter knows of the force, or an inertia. 21 numbers."""

    SIZE = 21
    __slots__ = ("B", "C", "J")

    def __init__(self, J, B, C):
        self.J, self.B, self.C = J, B, C

    @classmethod
    def of(cls, numbers):
        """The inertia of 21 numbers."""
        return cls(Sym3(*numbers[:6]), Mat3(*numbers[6:15]), Sym3(*numbers[15:]))

    def numbers(self):
        """J, B and C."""
        return (self.J, self.B, self.C)

    def like(self, numbers):
        """An inertia of other numbers."""
        return Articulated(*numbers)

    def __add__(self, other):
        return Articulated(self.J + other.J, self.B + other.B, self.C + other.C)

    def plus_body(self, J, p, m):
        """P + M for a rigid body: moment of inertia J, first moment p, mass m."""
        B, C, p = self.B.m, self.C.s, p
        return Articulated(
            self.J + J,
            Mat3(B[0], B[1] - p.z, B[2] + p.y, B[3] + p.z, B[4], B[5] - p.x, B[6] - p.y, B[7] + p.x, B[8]),
            Sym3(C[0] + m, C[1], C[2], C[3] + m, C[4], C[5] + m),
        )

    def applied(self, h):
        """P h*, of a row of H or of a motion."""
        return Spatial(
            self.B.plus_applied(self.J @ h.w, h.v), self.C.plus_applied(self.B.turned_back(h.w), h.v)
        )  # fmt: skip

    def less(self, g, u):
        """P − g u*, known to be symmetric; done when it is looked at, or where it is shifted to."""
        return Reduced(self, g, u)

    def shifted(self, l):
        """φ P φ*, φ = [[1, l~], [0, 1]]: J + l~ B* + D l~*, D = B + l~ C, and C."""
        x, y, z = l
        B, C, J = self.B.m, self.C.s, self.J.s
        D = (
            B[0] + y * C[2] - z * C[1], B[1] + y * C[4] - z * C[3], B[2] + y * C[5] - z * C[4],
            B[3] + z * C[0] - x * C[2], B[4] + z * C[1] - x * C[4], B[5] + z * C[2] - x * C[5],
            B[6] + x * C[1] - y * C[0], B[7] + x * C[3] - y * C[1], B[8] + x * C[4] - y * C[2],
        )  # fmt: skip
        J = (
            J[0] + y * B[2] - z * B[1] + y * D[2] - z * D[1],
            J[1] + y * B[5] - z * B[4] + z * D[0] - x * D[2],
            J[2] + y * B[8] - z * B[7] + x * D[1] - y * D[0],
            J[3] + z * B[3] - x * B[5] + z * D[3] - x * D[5],
            J[4] + z * B[6] - x * B[8] + x * D[4] - y * D[3],
            J[5] + x * B[7] - y * B[6] + x * D[7] - y * D[6],
        )
        return Articulated(Sym3(*J), Mat3(*D), self.C)


class Reduced:
    """P − g u*, not yet computed: φ P⁺ φ* = φ P φ* − φg (φu)*, so that the shift need not wait for the measurement."""

    def __init__(self, P, g, u):
        self.P, self.g, self.u = P, g, u

    def now(self):
        """The inertia itself."""
        P, (a, b), (u, s) = self.P, (self.g.w, self.g.v), (self.u.w, self.u.v)
        B = P.B.m
        return Articulated(
            P.J.minus_outer(a, u),
            Mat3(
                B[0] - a.x * s.x, B[1] - a.x * s.y, B[2] - a.x * s.z,
                B[3] - a.y * s.x, B[4] - a.y * s.y, B[5] - a.y * s.z,
                B[6] - a.z * s.x, B[7] - a.z * s.y, B[8] - a.z * s.z,
            ),
            P.C.minus_outer(b, s),
        )  # fmt: skip

    def numbers(self):
        """J, B and C."""
        return self.now().numbers()

    def like(self, numbers):
        """An inertia of other numbers."""
        return Articulated(*numbers)

    def applied(self, h):
        """P⁺ h*."""
        return self.now().applied(h)

    def shifted(self, l):
        """φ P⁺ φ*."""
        return Reduced(self.P.shifted(l), self.g.force_shifted(l), self.u.force_shifted(l)).now()
