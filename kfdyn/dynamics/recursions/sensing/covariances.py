"""Posterior covariances in compiled lanes: the gather without readings, and one scatter of covariances.

Z is the block of the inverse KKT matrix for (α, λ) of a body, 78 numbers: Z_αα (21), cov(α, λ) (36), Z_λλ (21); 0 at
the world. With U' and V' the covariances of what a node carried inward with (α', g) and with itself, w₁ the unknowns
that it eliminates, Y = XZ' and E_i the column of unknown i, H* or S* (0 of what was carried),

    cov(w₁, (α', g, u')) = −Y,   cov w₁ = 𝒦⁻¹ + YX*,   U = cov(w, (α', g)),   V = cov w
    Z = Z' + Σ_i (E_i D_i* + D_i E_i*),   D_i = U_i + ½ Σ_j V_ij E_j,   Z' = diag(φ*, φ*) Z(p) diag(φ, φ)
    var f = diag(C + [A, −C, N*] Z [A, −C, N*]*),   N the columns of what was carried      THEORY section 11
"""

from kfdyn.dynamics.recursions.articulated import everything
from kfdyn.dynamics.recursions.sensing.gather import Sensing
from kfdyn.dynamics.recursions.sensing.general import General
from kfdyn.dynamics.recursions.sensing.message import EVERY, SIX, UPPER, Block, Message, dot, total
from kfdyn.dynamics.recursions.sensing.tables import ANSWERS, GENERAL, LOOPS, PROGRAM
from kfdyn.dynamics.recursions.sensing.unknowns import Unknowns
from kfdyn.multibody.recursions.given import Q
from kfdyn.multibody.recursions.robot import Body, outward
from kfdyn.multibody.recursions.robot_entry import entry
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.control_flow import flattened, if_, if_else, loop
from kfdyn.sweeps.entry import Given, Parameter
from kfdyn.sweeps.functions import maximum, sqrt
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.values import now
from kfdyn.sweeps.variables import local

#: Kept of a body for the way back: A (36), and C (36), row by row; Z.
KEPT, COVARIANCE = 72, 78


class Covariances(Sensing):
    """The workspace with what the way back needs: A, C and N of every body, 𝒦⁻¹ and Z; U, V and Y of one node."""

    means = False

    @staticmethod
    def layout(robot, row):
        """Lay out the memory of all sweeps, and of what is kept."""
        n, most = robot.n + 1, row.most
        kept = {
            "kept": n * KEPT, "Z": n * COVARIANCE, "inverse": row.n_inverse, "N": 6 * row.n_values,
            "U": 12 * most, "V": most * most, "Y": most, "along": most, "both": 2 * most * most,
        }  # fmt: skip
        return {**Sensing.layout(robot, row), **kept}

    @property
    def nothing(self):
        """0 in every lane."""
        return everything(self.robot, 0.0)

    def begin(self):
        """Beside slot 0, nothing is uncertain of the world."""
        super().begin()
        clear(self.Z, COVARIANCE)

    def keep_message(self, body, M):
        """A and C of a body as they still are, every entry."""
        for block, kept in zip((M.A, M.C), self._kept(body)):
            for a, b in EVERY:
                kept[a, b] = block[a, b]

    def keep_general(self, of):
        """Keep N, too, of a node in general."""
        for x in loop(of.left):
            for c in SIX:
                self.N[6 * (of.wide.values + x) + c] = of.column_of(x)[6 + c]
        for _ in if_(of.body.t != 0):
            self.keep_message(of.body, of.message)

    def _kept(self, body):
        kept = self.kept.part(KEPT * body.t)
        return Block(kept, 0, symmetric=False, packed=False), Block(kept, 36, symmetric=False, packed=False)

    def scatter(self, body, node):
        """Z of a body from that of its parent, and the variances of what belongs to it."""
        Z, up = (Covariance(self.Z.part(COVARIANCE * t)) for t in (body.t, body.parent))
        Z.move(up, self.bodies[body.t].l)
        for pair in if_else(node.way != GENERAL):
            of = Pair(self, body) if pair else General(self, body)
            self.joint(of, Z)
            for i in loop(of.count):
                D = self._column(of, i, 0.5)
                for of_dof in if_else(i < of.m):
                    E = self.rows_of_H[body.v + i].h if of_dof else self.S[node.rows + i - of.m].h
                    Z.add_product(flattened(E), D, of_dof)
            if not pair:
                for x in loop(of.left):
                    for c, value in enumerate(self._column(of, x - of.left, 1.0)):
                        self.U[12 * x + c] = value
            for i in loop(of.m):
                self._of_dof(of, i, Z)
            self._of_body(of, Z)
            if not pair:
                self.hand_out(of)

    def joint(self, of, Z):
        """U and V of the unknowns of a node, from Z' and what it carried inward."""
        U, V, size = self.U, self.V, of.size
        carries = not isinstance(of, Pair)
        if carries:
            self._of_carried(of)
        W = self.inverse.part(of.node.inverse)
        for p in loop(of.gone):
            X, at = self._solved(of, p), of.place(p)
            Y = [local(y) for y in Z @ X]
            if carries:
                for c in loop(of.kept):
                    x, u = self.beside[of.wide.beside + p * of.kept + c], U.part(12 * of.carried(c))
                    for d in range(12):
                        Y[d].set(Y[d] + x * u[d])
                for c in loop(of.kept):
                    y = local(dot(X, [U[12 * of.carried(c) + d] for d in range(12)]))
                    for d in loop(of.kept):
                        one = self.beside[of.wide.beside + p * of.kept + d]
                        y.set(y + one * V[size * of.carried(d) + of.carried(c)])
                    self.Y[c] = now(y)
            Y = [now(y) for y in Y]
            for d in range(12):  # nothing reads U of what is eliminated
                U[12 * at + d] = -Y[d]
            for q in loop(of.gone):
                v = local(W[of.gone * p + q] + dot(Y, self._solved(of, q)))
                if carries:
                    for c in loop(of.kept):
                        v.set(v + self.Y[c] * self.beside[of.wide.beside + q * of.kept + c])
                V[size * at + of.place(q)] = now(v)
            if carries:
                for c in loop(of.kept):
                    V[size * at + of.carried(c)] = -self.Y[c]
                    V[size * of.carried(c) + at] = -self.Y[c]

    def _of_carried(self, of):
        """U' and V' of what was carried inward, which the parent has left in the store: shifted here."""
        l, kept = self.bodies[of.body.t].l, of.kept
        for c in loop(kept):
            numbers, at = self.store.part(of.wide.store + 12 * c), of.carried(c)
            parts = (Spatial.of([numbers[d + i] for d in SIX]).motion_shifted(l) for i in (0, 6))
            for d, x in enumerate(flattened(tuple(parts))):
                self.U[12 * at + d] = x
            for d in loop(kept):
                self.V[of.size * at + of.carried(d)] = self.store[of.wide.store + 12 * kept + kept * c + d]

    def hand_out(self, of):
        """To every child U and V of what it carried inward."""
        row, left = self.row, of.left
        for j in loop(of.wide.child_end, of.wide.child):
            one = self.inner_nodes[j]
            child, T = self.wides[one.wide], row.numbers.part(one.T)
            kept, store = child.kept, self.store.part(child.store)
            for a in loop(kept):
                U = [local(self.nothing) for d in range(12)]
                for x in loop(left):
                    for d in range(12):
                        U[d].set(U[d] + T[a * left + x] * self.U[12 * x + d])
                for d in range(12):
                    store[12 * a + d] = now(U[d])
                for x in loop(left):
                    v = local(self.nothing)
                    for y in loop(left):
                        v.set(v + T[a * left + y] * self.V[of.size * y + x])
                    self.Y[x] = now(v)
                for b in loop(kept):
                    v = local(self.nothing)
                    for x in loop(left):
                        v.set(v + self.Y[x] * T[b * left + x])
                    store[12 * kept + kept * a + b] = now(v)

    def _solved(self, of, p):
        X = self.X[of.node.unknowns + p]
        return flattened((X.alpha, X.lam))

    def _column(self, of, i, share):
        """U_i + share Σ_j V_ij E_j, i being counted from q̈ on."""
        body, node, m, at = of.body, of.node, of.m, of.left + i
        V, out = self.V.part(of.size * at), [local(self.U[12 * at + c]) for c in range(12)]
        for j in loop(m):
            for c, x in enumerate(flattened(self.rows_of_H[body.v + j].h)):
                out[c] += (share * V[of.left + j]) * x
        for j in loop(of.n_rows):
            for c, x in enumerate(flattened(self.S[node.rows + j].h)):
                out[6 + c] += (share * V[of.left + m + j]) * x
        return [now(x) for x in out]

    def _of_dof(self, of, i, Z):
        """Write the covariances of q̈_i, and of tau_i = H f + R q̈."""
        k, across = of.body.v + i, self._column(of, i, 1.0)  # cov((α, λ), q̈_i)
        at = of.left + i
        variance, h = self.V[of.size * at + at], flattened(self.rows_of_H[k].h)
        (A, C), e = self._kept(of.body), self.robot.armature[k]
        self.a[k] = deviation(variance)
        Ch = C @ h
        t, moved = A.back(h) + [-x for x in Ch], local(self.nothing)
        if not isinstance(of, Pair):
            for x in loop(of.left):
                N = self.N.part(6 * (of.wide.values + x))
                self.along[x] = dot(h, [N[c] for c in SIX])
                moved.set(moved + self.along[x] * self.V[of.size * x + at])
        moved = now(moved) + dot(t, across)
        self.tau[k] = deviation(dot(h, Ch) + self._quadratic(of, Z, t) + e * (2.0 * moved + e * variance))

    def _quadratic(self, of, Z, t):
        """Return the quadratic form of t on (α, λ) and what is along each carried unknown."""
        if isinstance(of, Pair):
            return Z.quadratic(t)
        out = local(Z.quadratic(t))
        for x in loop(of.left):
            U, inner = self.U.part(12 * x), local(self.nothing)
            for y in loop(of.left):
                inner.set(inner + self.V[of.size * x + y] * self.along[y])
            out.set(out + self.along[x] * (2.0 * dot(t, [U[d] for d in range(12)]) + inner))
        return now(out)

    def _of_body(self, of, Z):
        """Write the covariances of α, f and the external force; and Z and V themselves where they are asked for."""
        body, node, row = of.body, of.node, self.row
        kept, k = self.kept.part(KEPT * body.t), body.body
        general = not isinstance(of, Pair)
        self.alpha[k].h = [deviation(Z.AA[c, c]) for c in SIX]
        for c in loop(6):
            t = [kept[6 * c + b] for b in SIX] + [-kept[36 + 6 * c + b] for b in SIX]
            if general:
                for x in loop(of.left):
                    self.along[x] = self.N[6 * (of.wide.values + x) + c]
            self.f.memory[6 * k + c] = deviation(kept[36 + 7 * c] + self._quadratic(of, Z, t))
        for _ in if_(row.n_x != 0):
            C = Message(self).C
            for a, b in UPPER:
                C[a, b] = 0.0
            self.spread(body, node)
            for c in SIX:
                if general:
                    for x in loop(of.left):
                        self.along[x] = 0.0
                    for j in loop(of.wide.loose_end, of.wide.loose):
                        one = self.loose[j]
                        self.along[one.to] = flattened(self.push_column(body, self.pushes[one.push]))[c]
                t = [0.0] * 6 + [C[c, b] for b in SIX]
                self.x.memory[6 * k + c] = deviation(C[c, c] + self._quadratic(of, Z, t))
        for _ in if_(row.n_Z != 0):
            for c in range(COVARIANCE):
                row.Z[COVARIANCE * k + c] = Z.AA.memory[c]
        self.tell(of)

    def tell(self, of):
        """V where it is asked for."""
        row = self.row
        for _ in if_(row.n_V != 0):
            for i in loop(of.size * of.size):
                row.V[of.node.joint + i] = self.V[i]


class Pair(Unknowns):
    """The two unknowns of a node as those of any other."""

    left, gone, kept, size = 0, 2, 0, 2

    @staticmethod
    def place(p):
        """Both are eliminated, in their order."""
        return p


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
    for _ in if_(s.nodes[0].way == GENERAL):
        world = General(s, Body(s.robot, 0))
        s.joint(world, Covariance(s.Z))
        s.tell(world)
        s.hand_out(world)
    for body in outward(s.robot):
        s.scatter(body, s.nodes[body.t])
    s.answer()
    return least


#: Z of every body and V of every node are told or not as external forces are.
DEVIATE = entry(
    deviate,
    Covariances,
    [Q, LOOPS[0]],
    [*ANSWERS, Given("Z", ("n_Z", 78)), Given("V", ("n_V",))],
    [*PROGRAM, *(Parameter(name, "n") for name in ("n_x", "n_Z", "n_V"))],
)
