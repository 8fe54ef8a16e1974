"""Vectors and 3 × 3 matrices over any kind of number; they exist only while code is written, and cost nothing later.

Sums run from left to right, each product added as it is made: one fused multiply-add and no other instruction.
"""


class Numbers:
    """Base of the structures below: a fixed count of numbers."""

    __slots__ = ()

    @classmethod
    def of(cls, numbers):
        """Make one from its numbers."""
        return cls(*numbers)

    like = of


class Vec3(Numbers):
    """A vector (x, y, z)."""

    SIZE = 3
    __slots__ = ("x", "y", "z")

    def __init__(self, x, y, z):
        self.x, self.y, self.z = x, y, z

    @classmethod
    def zero(cls):
        """Make (0, 0, 0), which sums and products leave out."""
        return cls(0.0, 0.0, 0.0)

    def numbers(self):
        """Return the three numbers."""
        return (self.x, self.y, self.z)

    def __iter__(self):
        return iter((self.x, self.y, self.z))

    def __add__(self, other):
        return Vec3(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other):
        return Vec3(self.x - other.x, self.y - other.y, self.z - other.z)

    def __neg__(self):
        return Vec3(-self.x, -self.y, -self.z)

    def __mul__(self, k):
        return Vec3(k * self.x, k * self.y, k * self.z)

    __rmul__ = __mul__

    def dot(self, other):
        """Return x·y."""
        return self.x * other.x + self.y * other.y + self.z * other.z

    def cross(self, other):
        """Return x × y."""
        a, b = self, other
        return Vec3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)

    def plus_cross(self, a, b):
        """Return self + a × b."""
        return Vec3(
            self.x + a.y * b.z - a.z * b.y, self.y + a.z * b.x - a.x * b.z, self.z + a.x * b.y - a.y * b.x
        )  # fmt: skip


class Mat3(Numbers):
    """A 3 × 3 matrix, row by row."""

    SIZE = 9
    __slots__ = ("m",)

    def __init__(self, *m):
        self.m = m

    @classmethod
    def identity(cls):
        """Make the identity."""
        return cls(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)

    @classmethod
    def columns(cls, x, y, z):
        """Make the matrix with these columns."""
        return cls(x.x, y.x, z.x, x.y, y.y, z.y, x.z, y.z, z.z)

    def numbers(self):
        """Return the nine numbers."""
        return self.m

    def row(self, i):
        """Return row i."""
        return Vec3(*self.m[3 * i : 3 * i + 3])

    def column(self, j):
        """Return column j."""
        return Vec3(*self.m[j::3])

    def __add__(self, other):
        return Mat3(*(a + b for a, b in zip(self.m, other.m)))

    def __matmul__(self, other):
        if isinstance(other, Vec3):
            return Vec3(*(self.row(i).dot(other) for i in range(3)))
        return Mat3(*(self.row(i).dot(other.column(j)) for i in range(3) for j in range(3)))

    def turned_back(self, x):
        """Return A* x."""
        return Vec3(*(self.column(j).dot(x) for j in range(3)))

    def plus_applied(self, start, x):
        """Return start + A x."""
        a, (u, v, w) = self.m, x
        return Vec3(
            start.x + a[0] * u + a[1] * v + a[2] * w,
            start.y + a[3] * u + a[4] * v + a[5] * w,
            start.z + a[6] * u + a[7] * v + a[8] * w,
        )

    @property
    def T(self):
        """The transpose A*."""
        m = self.m
        return Mat3(m[0], m[3], m[6], m[1], m[4], m[7], m[2], m[5], m[8])


class Sym3(Numbers):
    """A symmetric 3 × 3 matrix: xx, xy, xz, yy, yz, zz."""

    SIZE = 6
    __slots__ = ("s",)

    def __init__(self, *s):
        self.s = s

    def numbers(self):
        """Return the six numbers."""
        return self.s

    def __add__(self, other):
        return Sym3(*(a + b for a, b in zip(self.s, other.s)))

    def __matmul__(self, v):
        s, (x, y, z) = self.s, v
        return Vec3(s[0] * x + s[1] * y + s[2] * z, s[1] * x + s[3] * y + s[4] * z, s[2] * x + s[4] * y + s[5] * z)

    def plus_applied(self, start, v):
        """Return start + S v."""
        s, (x, y, z) = self.s, v
        return Vec3(
            start.x + s[0] * x + s[1] * y + s[2] * z,
            start.y + s[1] * x + s[3] * y + s[4] * z,
            start.z + s[2] * x + s[4] * y + s[5] * z,
        )

    def minus_outer(self, a, b):
        """Return S − a b*, known to be symmetric."""
        s = self.s
        return Sym3(
            s[0] - a.x * b.x, s[1] - a.x * b.y, s[2] - a.x * b.z, s[3] - a.y * b.y, s[4] - a.y * b.z, s[5] - a.z * b.z
        )  # fmt: skip
