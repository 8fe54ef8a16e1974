"""The message of a subtree in memory: J, A, C and γ; how it is begun at a body, and how it passes to the parent.

90 numbers: J (21), A (36), C (21), γ_α = −h (6), γ_λ = b (6); see ``sensors.gather`` and THEORY section 11. Without
readings, for covariances alone, γ is left out.
"""

from kfdyn.multibody.recursions.outward import inertia_of
from kfdyn.multibody.recursions.spatial import Articulated, Spatial
from kfdyn.sweeps.algebra import Mat3, Sym3, Vec3
from kfdyn.sweeps.control import either, when

MESSAGE = 90
J_AT, A_AT, C_AT, ALPHA_AT, LAMBDA_AT = 0, 21, 57, 78, 84
SIX = range(6)
#: The upper triangle, row by row: how J and C are stored.
UPPER = [(a, b) for a in SIX for b in range(a, 6)]


def upper(a, b):
    """Place of an entry in the upper triangle of six."""
    a, b = min(a, b), max(a, b)
    return a * 6 - a * (a - 1) // 2 + b - a


class Message:
    """A message in memory, as matrices."""

    def __init__(self, memory):
        self.memory = memory

    def J(self, a, b):
        """J_ab."""
        return self.memory[J_AT + upper(a, b)]

    def A(self, a, b):
        """A_ab, row of λ and column of α."""
        return self.memory[A_AT + 6 * a + b]

    def half_A(self, a, b):
        """A_ab of a symmetric A, of which one triangle is there."""
        return self.A(min(a, b), max(a, b))

    def C(self, a, b):
        """C_ab."""
        return self.memory[C_AT + upper(a, b)]


def total(terms):
    """A sum from left to right."""
    out = 0.0
    for term in terms:
        out = out + term
    return out


def dot(x, y):
    """x·y of lists; Python's zeros cost nothing."""
    return total(a * b for a, b in zip(x, y))


def arrive(s, body, informed):
    """The message of what is outboard with the body's own inertia and bias force; J and γ_α if ``informed``."""
    here, slot = s.here, s.slots.part(MESSAGE * body.arrives)
    moment, p = inertia_of(body, s.work)
    m, J = body.mass, moment.s
    inertia = [
        [J[0], J[1], J[2], 0.0, -p.z, p.y], [J[1], J[3], J[4], p.z, 0.0, -p.x], [J[2], J[4], J[5], -p.y, p.x, 0.0],
        [0.0, p.z, -p.y, m, 0.0, 0.0], [-p.z, 0.0, p.x, 0.0, m, 0.0], [p.y, -p.x, 0.0, 0.0, 0.0, m],
    ]  # fmt: skip
    for a in SIX:
        for b in SIX if informed else range(a, 6):
            here[A_AT + 6 * a + b] = slot[A_AT + 6 * a + b] + inertia[a][b]
    for i in range(C_AT, C_AT + 21):
        here[i] = slot[i]
    if informed:
        for i in range(J_AT, J_AT + 21):
            here[i] = slot[i]
    if s.means:
        omega = s.bodies[body.t].omega
        xi = (*omega.cross(moment @ omega), *omega.cross(omega.cross(p)))
        for i in SIX:
            here[LAMBDA_AT + i] = slot[LAMBDA_AT + i] + xi[i]
            if informed:
                here[ALPHA_AT + i] = slot[ALPHA_AT + i]


def leave(s, body, informed):
    """γ += Γ[:, α]η, and the message shifted into the parent's sum; J and γ_α if ``informed``, else A is symmetric."""
    l, M = s.bodies[body.t].l, Message(s.here)
    base, out = s.slots.part(MESSAGE * body.base), s.slots.part(MESSAGE * body.leaves)
    moved = [(C_AT, symmetric_shifted(M.C, l))]
    if informed:
        moved += [(J_AT, symmetric_shifted(M.J, l)), (A_AT, shifted(M.A, l))]
    else:
        half = symmetric_shifted(M.A, l)
        moved += [(A_AT, [half[upper(a, b)] for a in SIX for b in SIX])]
    if s.means:
        eta = s.bodies[body.t].eta
        eta = [*eta.w, *eta.v]
        for at, block in ((LAMBDA_AT, M.A), (ALPHA_AT, M.J)) if informed else ((LAMBDA_AT, M.half_A),):
            force = [s.here[at + a] + dot([block(a, b) for b in SIX], eta) for a in SIX]
            force = Spatial.of(force).force_shifted(l)
            moved.append((at, [*force.w, *force.v]))
    for first in either(body.base == 0):  # nothing yet: what a chain always does
        for at, numbers in moved:
            for i, x in enumerate(numbers):
                out[at + i] = x if first else base[at + i] + x


def pass_unknown(s, body):
    """The parent's J and γ_α stay as they are: nothing outboard of here tells of accelerations."""
    base, out = s.slots.part(MESSAGE * body.base), s.slots.part(MESSAGE * body.leaves)
    for _ in when(body.base != body.leaves):
        for i in range(21):
            out[J_AT + i] = base[J_AT + i]
        if s.means:
            for i in SIX:
                out[ALPHA_AT + i] = base[ALPHA_AT + i]


def symmetric_shifted(entry, l):
    """φ B φ*, φ = [[1, l~], [0, 1]], of a symmetric B: its upper triangle."""
    B = Articulated(
        Sym3(*(entry(a, b) for a, b in UPPER if b < 3)),
        Mat3(*(entry(a, 3 + b) for a in range(3) for b in range(3))),
        Sym3(*(entry(a, b) for a, b in UPPER if a >= 3)),
    ).shifted(l)
    out = {}
    for (a, b), x in zip([(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)], zip(B.J.s, B.C.s)):
        out[a, b], out[3 + a, 3 + b] = x
    for i, x in enumerate(B.B.m):
        out[i // 3, 3 + i % 3] = x
    return [out[pair] for pair in UPPER]


def shifted(entry, l):
    """φ B φ* of any B, row by row."""
    rows = [[entry(a, b) for b in SIX] for a in SIX]
    for b in SIX:
        x = Vec3(*(rows[a][b] for a in range(3))).plus_cross(l, Vec3(*(rows[3 + a][b] for a in range(3))))
        for a, value in enumerate(x):
            rows[a][b] = value
    return [x for row in rows for x in (*Vec3(*row[:3]).plus_cross(l, Vec3(*row[3:])), *row[3:])]
