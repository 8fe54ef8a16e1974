"""Marginal standard deviations in compiled lanes: the gather without readings, and one scatter of covariances.

Z is the block of the inverse KKT matrix for (α, λ) of a body, 78 numbers: Z_αα (21), cov(α, λ) (36), Z_λλ (21); 0 at
the world. With Y = XZ', W = 𝒦⁻¹ + YX* the covariance of w = (q̈, m), and E_i the column of unknown i, H* or S*,

    Z = Z' + Σ_i (E_i D_i* + D_i E_i*),   D_i = −Y_i + ½ Σ_j W_ij E_j,   Z' = diag(φ*, φ*) Z(p) diag(φ, φ)
    var f = diag(C + [A, −C] Z [A, −C]*)                                                          THEORY section 11
"""

from kfdyn.dynamics.recursions.sensing.gather import Sensing
from kfdyn.dynamics.recursions.sensing.message import EVERY, SIX, UPPER, Block, Message, dot, total
from kfdyn.dynamics.recursions.sensing.tables import ANSWERS, PROGRAM
from kfdyn.dynamics.recursions.sensing.unknowns import Unknowns
from kfdyn.multibody.recursions.given import Q
from kfdyn.multibody.recursions.robot import outward
from kfdyn.multibody.recursions.swept import entry
from kfdyn.sweeps.control_flow import flattened, if_, if_else, loop
from kfdyn.sweeps.entry import Parameter
from kfdyn.sweeps.functions import maximum, sqrt
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.values import now
from kfdyn.sweeps.variables import local

#: Kept of a body for the way back: A (36), and C (36), row by row; Z.
KEPT, COVARIANCE = 72, 78


class Deviations(Sensing):
    """The workspace with what the way back needs: A and C of every body, 𝒦⁻¹ and Z."""

    means = False

    @staticmethod
    def layout(robot, row):
        """That of all sweeps, what is kept, and Y of one node."""
        n = robot.n + 1
        kept = {"kept": n * KEPT, "Z": n * COVARIANCE, "inverse": row.n_inverse, "Y": 12 * row.most}
        return {**Sensing.layout(robot, row), **kept}

    def begin(self):
        """Beside slot 0, nothing is uncertain of the world."""
        super().begin()
        clear(self.Z, COVARIANCE)

    def keep_message(self, body, M):
        """A and C of a body as they still are, every entry."""
        for block, kept in zip((M.A, M.C), self._kept(body)):
            for a, b in EVERY:
                kept[a, b] = block[a, b]

    def _kept(self, body):
        kept = self.kept.part(KEPT * body.t)
        return Block(kept, 0, symmetric=False, packed=False), Block(kept, 36, symmetric=False, packed=False)

    def scatter(self, of):
        """Z of a body with these unknowns from that of its parent, and the variances of what belongs to it."""
        body, node, m, count = of.body, of.node, of.m, of.count
        Z, up = (Covariance(self.Z.part(COVARIANCE * t)) for t in (body.t, body.parent))
        Z.move(up, self.bodies[body.t].l)
        W = self.inverse.part(node.inverse)
        for i in loop(count):
            Y = Z @ self._solved(node, i)
            for c, y in enumerate(Y):
                self.Y[12 * i + c] = y
            for j in loop(count):
                W[count * i + j] += dot(Y, self._solved(node, j))
        for i in loop(count):
            D = self._column(of, i, 0.5)
            for of_dof in if_else(i < m):
                E = self.rows_of_H[body.v + i].h if of_dof else self.S[node.rows + i - m].h
                Z.add_product(flattened(E), D, of_dof)
        for i in loop(m):
            self._of_dof(of, i, Z)
        self._of_body(body, node, Z)

    def _solved(self, node, i):
        X = self.X[node.unknowns + i]
        return flattened((X.alpha, X.lam))

    def _column(self, of, i, share):
        """−Y_i + share Σ_j W_ij E_j."""
        body, node, m, count = of.body, of.node, of.m, of.count
        W, out = self.inverse.part(node.inverse + count * i), [local(-self.Y[12 * i + c]) for c in range(12)]
        for j in loop(m):
            for c, x in enumerate(flattened(self.rows_of_H[body.v + j].h)):
                out[c] += (share * W[j]) * x
        for j in loop(count - m):
            for c, x in enumerate(flattened(self.S[node.rows + j].h)):
                out[6 + c] += (share * W[m + j]) * x
        return [now(x) for x in out]

    def _of_dof(self, of, i, Z):
        """Of q̈_i, and of tau_i = H f + R q̈."""
        k, across = of.body.v + i, self._column(of, i, 1.0)  # cov((α, λ), q̈_i)
        variance, h = self.inverse[of.node.inverse + of.count * i + i], flattened(self.rows_of_H[k].h)
        (A, C), e = self._kept(of.body), self.robot.armature[k]
        self.a[k] = deviation(variance)
        Ch = C @ h
        t = A.back(h) + [-x for x in Ch]
        self.tau[k] = deviation(dot(h, Ch) + Z.quadratic(t) + e * (2.0 * dot(t, across) + e * variance))

    def _of_body(self, body, node, Z):
        """Of α, f and the external force."""
        kept, k = self.kept.part(KEPT * body.t), body.body
        self.alpha[k].h = [deviation(Z.AA[c, c]) for c in SIX]
        for c in loop(6):
            t = [kept[6 * c + b] for b in SIX] + [-kept[36 + 6 * c + b] for b in SIX]
            self.f.memory[6 * k + c] = deviation(kept[36 + 7 * c] + Z.quadratic(t))
        for _ in if_(self.row.n_x != 0):
            C = Message(self).C
            for a, b in UPPER:
                C[a, b] = 0.0
            self.spread(body, node)
            self.x[k].h = [deviation(C[c, c] + Z.quadratic([0.0] * 6 + [C[c, b] for b in SIX])) for c in SIX]


class Covariance:
    """Z in memory."""

    def __init__(self, memory):
        self.AA, self.AL, self.LL = (
            Block(memory, 0),
            Block(memory, 21, symmetric=False, packed=False),
            Block(memory, 57),
        )

    def move(self, up, l):
        """Z' = diag(φ*, φ*) Z(p) diag(φ, φ)."""
        for block, above in ((self.AA, up.AA), (self.LL, up.LL), (self.AL, up.AL)):
            rows = above.moved(lambda x: x.motion_shifted(l))
            for a, b in block.pairs:
                block[a, b] = rows[a][b]

    def __matmul__(self, x):
        top, low = self.AA @ x[:6], self.LL @ x[6:]
        return [a + b for a, b in zip([*top, *self.AL.back(x[:6])], [*(self.AL @ x[6:]), *low])]

    def quadratic(self, t):
        """t*Zt; Python's zeros cost nothing."""
        out = 0.0
        for block, x in ((self.AA, t[:6]), (self.LL, t[6:])):
            for a in SIX:
                half = 0.5 * x[a] * block[a, a] + dot([block[a, b] for b in range(a + 1, 6)], x[a + 1 :])
                out = out + x[a] * half
        return 2.0 * total([out, *(a * b for a, b in zip(t, self.AL @ t[6:]))])

    def add_product(self, E, D, of_dof):
        """Z += E D* + D E*, E being in the rows of α for a dof, of λ for a row."""
        block, own = (self.AA, D[:6]) if of_dof else (self.LL, D[6:])
        for a, b in block.pairs:
            block[a, b] += E[a] * own[b] + own[a] * E[b]
        for a, b in EVERY:
            self.AL[a, b] += E[a] * D[6 + b] if of_dof else D[a] * E[b]


def deviation(variance):
    """√variance; what rounding leaves below zero is zero."""
    return sqrt(maximum(0.0, variance))


def deviate(s):
    """Standard deviations of all quantities. About 2500 flops for a body on one dof with one reading."""
    least = s.gather()
    for body in outward(s.robot):
        s.scatter(Unknowns(s, body))
    s.answer()
    return least


DEVIATE = entry(deviate, Deviations, [Q], ANSWERS, [*PROGRAM, Parameter("n_x", "n")])
