"""Any number of unknowns at a node, those that it decides and those that it carries inward.

What a node cannot decide stays in its message: a column of twelve for each such unknown, its γ, and Y among them. The
parent takes them as T times its own unknowns u, T being 1 unless a coupling or a loop joins some of them. Which of
w = (u, q̈, m) are eliminated, and in which order of rows, is fixed beforehand; a pivot that has shrunk says that the
order is wrong.
"""

from kfdyn.dynamics.recursions.articulated import everything
from kfdyn.dynamics.recursions.sensing import tables
from kfdyn.dynamics.recursions.sensing.message import ALPHA, LAMBDA, SIX, dot, total
from kfdyn.dynamics.recursions.sensing.unknowns import Unknowns
from kfdyn.multibody.recursions.robot import dofs
from kfdyn.multibody.recursions.robot_entry import six
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.control_flow import flattened, if_, loop
from kfdyn.sweeps.functions import maximum, minimum
from kfdyn.sweeps.values import any_lanes, now, where
from kfdyn.sweeps.variables import local


class General(Unknowns):
    """The unknowns w = (u, q̈, m) of a body: u that arrive from outboard or are joined there, q̈, multipliers m.

    Each has a ``column`` of twelve numbers, Γ[:, α]H*, Γ[:, λ]S* or what was carried, and γ where there are readings.
    """

    def __init__(self, s, body):
        super().__init__(s, body)
        self.wide = s.wides[self.node.wide]
        self.left, self.gone, self.kept = self.wide.left, self.wide.gone, self.wide.kept
        self.size, self.column = self.left + self.count, 13 if s.means else 12
        self.scale = s.row.numbers.part(self.wide.scale)  # natural scales of w, and of (α, λ)
        self.unit = [s.row.numbers[tables.UNITS + i] for i in range(12)]
        self.pulled = s.means and not (isinstance(body.t, int) and body.t == 0)  # the world has no sources

    def place(self, p):
        """Return the unknown that is eliminated as number p."""
        return self.s.row.places[self.wide.order + self.gone + p]

    def carried(self, c):
        """Return the unknown that is carried on as number c."""
        return self.s.row.places[self.wide.order + 2 * self.gone + c]

    def first_row(self, p):
        """Return the owner of the row with pivot p."""
        return self.s.row.places[self.wide.order + p]

    def column_of(self, x):
        """The column of an unknown, in memory."""
        return self.s.columns.part(self.column * x)

    def eliminate(self):
        """Those that are eliminated here; the others are stored for the parent."""
        if self.pulled:
            for _ in if_(self.s.row.n_source != 0):
                self._pull()
        self._begin()
        for j in loop(self.wide.child_end, self.wide.child):
            self._take(self.s.inner_nodes[j])
        self._own_columns()
        self._matrix()
        s, gone, kept, column = self.s, self.gone, self.kept, self.column
        wide = gone + column + kept
        for p in loop(gone):
            self._line(p, wide)
        if s.means:
            self._solve(wide, gone)
            for p in loop(gone):
                X, own = s.matrix.part(wide * p + gone), self.scale[self.place(p)]
                for c in loop(column + kept):
                    X[c] = own * X[c]
        else:
            self._invert(wide)
        for p in loop(gone):
            X = s.matrix.part(wide * p + gone)
            s.keep_solved(self.node.unknowns + p, [X[c] for c in range(column)])
            for c in loop(kept):
                s.beside[self.wide.beside + p * kept + c] = X[column + c]
        if not s.means:
            s.keep_general(self)
        for _ in if_(self.wide.watched != 0):
            self._keep_sizes()
        for c in loop(kept):
            self._store(c, wide)
        for _ in if_(self.body.parent != 0):
            for p in loop(gone):
                column_of, X = self.column_of(self.place(p)), s.matrix.part(wide * p + gone)
                self._reduce(([column_of[c] for c in range(12)], [X[c] for c in range(column)]))
            for _ in if_(self.wide.watched != 0):
                self._watch_head()

    def _keep_sizes(self):
        """Keep the sizes of entries of Γ, block by block, at least 1, and those of the message as they are.

        Blocks are (α, α), (α, λ), (λ, λ), (α, w), (λ, w), (w, w).
        """
        s, unit, scale, one = self.s, self.unit, self.scale, everything(self.s.robot, 1.0)
        head = []
        for block, a, b in self._blocks():
            x = one
            for i, j in block.pairs:
                x = maximum(x, abs(block[i, j]) * (unit[a + i] * unit[b + j]))
            head.append(x)
        moved, pulled, inner = (local(one) for _ in range(3))
        for x in loop(self.size):
            column = self.column_of(x)
            for whole, first in ((moved, 0), (pulled, 6)):
                for c in SIX:
                    whole.set(maximum(whole, abs(column[first + c]) * (unit[first + c] * scale[x])))
            for y in loop(self.size):
                inner.set(maximum(inner, abs(s.whole[x * self.size + y]) * (scale[x] * scale[y])))
        for i, x in enumerate((*head, now(moved), now(pulled), now(inner))):
            s.sizes[i] = x
        for i in range(ALPHA):
            s.before[i] = s.here[i]

    def _blocks(self):
        M = self.message
        return (M.J, 0, 0), (M.A, 6, 0), (M.C, 6, 6)

    def _watch_head(self):
        """Remember by how much entries of the message have grown."""
        for k, (block, a, b) in enumerate(self._blocks()):
            for i, j in block.pairs:
                change = block[i, j] - self.s.before[block.at(i, j)]
                self._watch_growth(change, self.unit[a + i] * self.unit[b + j], self.s.sizes[k])

    def _watch_growth(self, change, scale, size):
        """Return how far a change is below the largest growth of entries."""
        self.s.least.set(minimum(self.s.least, self.s.row.numbers[tables.GROWTH] * size - abs(change) * scale))

    def _line(self, p, wide):
        """Row of 𝒦 in natural scales, with its column and what it has beside of the unknowns that are carried on."""
        s, gone, column, which = self.s, self.gone, self.column, self.first_row(p)
        scale, line = self.scale, s.matrix.part(wide * p)
        row = s.whole.part(which * self.size)
        for c in loop(gone):
            line[c] = (scale[which] * scale[self.place(c)]) * row[self.place(c)]
        for c in range(column):
            line[gone + c] = scale[which] * self.column_of(which)[c]
        for c in loop(self.kept):
            line[gone + column + c] = scale[which] * row[self.carried(c)]

    def _invert(self, wide):
        """𝒦⁻¹, symmetric, and X by it: so that both belong to the same matrix, however its digits are rounded."""
        s, gone, scale = self.s, self.gone, self.scale
        broad, inverse, nothing = 2 * gone, s.inverse.part(self.node.inverse), everything(s.robot, 0.0)
        for p in loop(gone):
            for c in loop(gone):
                s.both[broad * p + c] = s.matrix[wide * p + c]
                s.both[broad * p + gone + c] = nothing
                for _ in if_(self.place(c) == self.first_row(p)):
                    s.both[broad * p + gone + c] = nothing + 1.0
        self._solve(broad, gone, s.both)
        for p in loop(gone):
            for c in loop(gone):
                mean = 0.5 * (s.both[broad * p + gone + c] + s.both[broad * c + gone + p])
                inverse[gone * p + c] = (scale[self.place(p)] * scale[self.place(c)]) * mean
        for p in loop(gone):
            X = s.matrix.part(wide * p + gone)
            for c in range(self.column):
                x = local(nothing)
                for q in loop(gone):
                    x.set(x + inverse[gone * p + q] * self.column_of(self.place(q))[c])
                X[c] = now(x)
            for c in loop(self.kept):
                x = local(nothing)
                for q in loop(gone):
                    x.set(x + inverse[gone * p + q] * s.whole[self.place(q) * self.size + self.carried(c)])
                X[self.column + c] = now(x)

    def _pull(self):
        """Sources of α, f and the external force in γ_α and γ_λ of the message."""
        s, M, node = self.s, self.message, self.node
        alpha, shift = flattened(s.source(s.ON_ALPHA, self.body)), flattened(s.shift_of(self.body))
        for at, change in ((ALPHA, [-a - b for a, b in zip(alpha, M.A.back(shift))]), (LAMBDA, M.C @ shift)):
            for c, number in enumerate(change):
                s.here[at + c] += number
        pull = s.source(s.ON_X, self.body)
        for i in loop(node.push_end, node.push):
            x = s.pulled_push(self.body, i, pull)
            for c, number in enumerate(flattened(s.push_column(self.body, s.pushes[i]))):
                s.here[LAMBDA + c] -= number * x

    def _gamma_of_dof(self, i, h):
        """γ of q̈_i, but for what is known of it."""
        s, gamma = self.s, local(dot(h, self.message.vector(ALPHA)))
        for _ in if_(s.row.n_source != 0):
            gamma.set(gamma - s.row.source[s.ON_A * s.robot.nv + i])
            gamma.set(gamma - s.robot.armature[i] * s.row.source[s.ON_TAU * s.robot.nv + i])
        return now(gamma)

    def _begin(self):
        """Constants of couplings and of wide forces, their readings, columns −P of flat forces, and ends of loops."""
        s, wide, left = self.s, self.wide, self.left
        for x in loop(left):
            for y in loop(left):
                s.whole[x * self.size + y] = everything(s.robot, 0.0) + s.row.numbers[wide.inner + x * left + y]
            for c in range(self.column):
                self.column_of(x)[c] = 0.0
        if s.means:
            for j in loop(wide.load_end, wide.load):
                one = s.loads[j]
                self.column_of(one.to)[12] -= s.row.numbers[one.weight] * s.row.y[one.reading]
        for j in loop(wide.loose_end, wide.loose):
            one = s.loose[j]
            column, push = self.column_of(one.to), s.push_column(self.body, s.pushes[one.push])
            for c, x in enumerate(flattened(push)):
                column[6 + c] -= x
            if s.means:
                for _ in if_(s.row.n_source != 0):
                    column[12] -= push.dot(s.source(s.ON_X, self.body))
        for j in loop(wide.end_end, wide.end):  # a force K*ν on the body, and a reading of Kα
            one = s.ends[j]
            nu, mu, K = self.column_of(one.nu), self.column_of(one.mu), six(s.row.ends, 6 * one.at)
            for c, x in enumerate(flattened(K)):
                nu[6 + c] -= x
                mu[c] += x
            if s.means:
                mu[12] += s.row.drift[one.at]

    def _take(self, one):
        """Take from a child columns T*, and T*YT."""
        s, left, child, column = self.s, self.left, self.s.wides[one.wide], self.column
        kept, T = child.kept, s.row.numbers.part(one.T)
        Y = s.store.part(child.store + column * kept)
        for a in loop(kept):
            for x in loop(left):
                t, into = T[a * left + x], self.column_of(x)
                for c in range(column):
                    into[c] += t * s.store[child.store + column * a + c]
                half = local(everything(s.robot, 0.0))
                for b in loop(kept):
                    half.set(half + Y[a * kept + b] * T[b * left + x])
                s.half[a * left + x] = now(half)
        for x in loop(left):
            for y in loop(left):
                for a in loop(kept):
                    s.whole[x * self.size + y] += T[a * left + x] * s.half[a * left + y]

    def _own_columns(self):
        """Γ[:, α]H*, and Γ[:, λ]S* + K*, with γ; what is put in for λ pulls the columns that are there."""
        s, M, node, k = self.s, self.message, self.node, local(self.left)

        def keep(numbers):
            column = self.column_of(now(k))
            for c, x in enumerate(numbers):
                column[c] = x
            k.set(k + 1)

        if self.pulled:
            for _ in if_(s.row.n_source != 0):
                shift = flattened(s.shift_of(self.body))
                for x in loop(self.left):
                    column = self.column_of(x)
                    column[12] -= dot([column[6 + c] for c in SIX], shift)
        for i in dofs(s.robot, self.body):
            h = flattened(s.rows_of_H[i].h)
            gamma = [self._gamma_of_dof(i, h)] if s.means else []
            keep([*self._column_of_dof(h), *gamma])
        for i in loop(node.rows_end, node.rows):
            s.keep_row_of_S(self.body, i)
            one, row, gamma = s.measured[i], flattened(s.S[i].h), None
            if s.means:
                gamma = local(dot(row, M.vector(LAMBDA)) - s.row.y[one.reading])
            s.K[i].h = Spatial.zero()
            for _ in if_(one.kind == tables.MOTION):
                s.K[i].h = s.turned(self.body, six(s.row.numbers, one.S))
                if s.means:
                    gamma.set(gamma + self._turning(one.S + 6))
            column = self._column_of_row(row)
            both = [*(x + y for x, y in zip(column[:6], flattened(s.K[i].h))), *column[6:]]
            keep([*both, now(gamma)] if s.means else both)

    def _turning(self, at):
        """Return the part of a reading of motion that ω causes."""
        s = self.s
        w = s.bodies[self.body.t].R.turned_back(s.bodies[self.body.t].omega)
        products = (w.x * w.x, w.x * w.y, w.x * w.z, w.y * w.y, w.y * w.z, w.z * w.z)
        return total(s.row.numbers[at + i] * x for i, x in enumerate(products))

    def _matrix(self):
        """Γ over w, but for (u, u), which is there."""
        s, node, left, size, m = self.s, self.node, self.left, self.size, self.m
        row, rows = s.row, left + self.m
        for i in dofs(s.robot, self.body):
            line, h = s.whole.part(size * (left + i - self.body.v)), flattened(s.rows_of_H[i].h)
            for j in loop(size):
                column = self.column_of(j)
                line[j] = dot(h, [column[c] for c in SIX])
            for j in loop(node.rows_end, node.rows):
                for _ in if_((s.measured[j].kind < tables.FORCE) & (s.measured[j].at == i)):
                    line[rows + j - node.rows] += row.scale[2 * j + 1]
            for j in loop(node.own_end, node.own):
                for _ in if_(s.own[j].dof == i):
                    for k, w in s.weights(s.own[j], j):
                        line[left + s.own[k].dof - self.body.v] += w
                        if s.means:
                            self.column_of(left + i - self.body.v)[12] -= w * row.y[s.own[k].reading]
        for i in loop(self.n_rows):
            line, r = s.whole.part(size * (rows + i)), flattened(s.S[node.rows + i].h)
            for j in loop(size):
                column = self.column_of(j)
                line[j] = dot(r, [column[6 + c] for c in SIX])
            for j in loop(self.n_rows):
                line[rows + j] -= row.numbers[node.R + i * self.n_rows + j]
            for j in loop(m):  # rows of q̈ have K and e, too
                line[left + j] = s.whole[size * (left + j) + rows + i]
        for x in loop(left):
            for y in loop(size, left):
                s.whole[x * size + y] = s.whole[y * size + x]

    def _solve(self, wide, count, matrix=None):
        """Gauss and Jordan on ``count`` lines of ``wide`` numbers: what stands behind 𝒦 is multiplied by 𝒦⁻¹.

        Every lane takes the largest pivot that is left, as LAPACK would; the first order of lines is such that few
        states need another.
        """
        matrix = self.s.matrix if matrix is None else matrix
        for p in loop(count):
            pivot = matrix.part(wide * p)
            for i in loop(count, p + 1):
                line = matrix.part(wide * i)
                larger = abs(line[p]) > abs(pivot[p])
                for _ in if_(any_lanes(larger)):
                    for c in loop(wide, p):
                        above, below = pivot[c], line[c]
                        pivot[c], line[c] = where(larger, below, above), where(larger, above, below)
            d = pivot[p]
            self._watch(p, d)
            inverse = 1.0 / d
            for c in loop(wide, p + 1):
                pivot[c] = pivot[c] * inverse
            for i in loop(count):
                for _ in if_(i != p):
                    line = matrix.part(wide * i)
                    factor = line[p]
                    for c in loop(wide, p + 1):
                        line[c] -= factor * pivot[c]

    def _store(self, c, wide):
        """Store what is left of an unknown that is carried, shifted to the parent; η of the hinge enters its γ."""
        s, size, here, column, kept = self.s, self.size, self.s.bodies[self.body.t], self.column, self.kept
        which = self.carried(c)
        changes = [local(everything(s.robot, 0.0)) for _ in range(column)]
        Y = s.store.part(self.wide.store + column * kept + c * kept)
        for j in loop(kept):
            Y[j] = everything(s.robot, 0.0)
        for p in loop(self.gone):
            beside = s.whole[self.place(p) * size + which]
            X = s.matrix.part(wide * p + self.gone)
            for i in range(column):
                changes[i].set(changes[i] - beside * X[i])
            for j in loop(kept):
                Y[j] -= beside * X[column + j]
        for i in range(12):
            self._watch_growth(changes[i], self.unit[i] * self.scale[which], s.sizes[3 + i // 6])
        for j in loop(kept):
            other = self.carried(j)
            self._watch_growth(Y[j], self.scale[which] * self.scale[other], s.sizes[5])
            Y[j] += s.whole[which * size + other]
        out = [self.column_of(which)[i] + now(changes[i]) for i in range(column)]
        alpha, lam = (Spatial.of(out[i : i + 6]) for i in (0, 6))
        parts = flattened((alpha.force_shifted(here.l), lam.force_shifted(here.l)))
        if s.means:
            parts = [*parts, out[12] + alpha.dot(here.eta)]
        for i, x in enumerate(parts):
            s.store[self.wide.store + column * c + i] = x
