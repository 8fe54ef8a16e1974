"""At a hinge: the unknowns w = (q̈, m) are eliminated through 𝒦, and what is left of the message is the parent's.

An unknown has a column of twelve and a number, Γ[:, α]H* or Γ[:, λ]S* and γ; X = 𝒦⁻¹[columns*, γ]. The usual node has
one dof with one row of its own, two by two and without loops. Others are eliminated by Gauss and Jordan in a fixed
order of rows, which a pivot that has shrunk too much says to be wrong: then the row of the batch has no answer here.
"""

from kfdyn.dynamics.recursions.sensing.message import ALPHA, LAMBDA, SIX, Message, dot, total
from kfdyn.dynamics.recursions.sensing.tables import FORCE, SHRUNK
from kfdyn.multibody.recursions.robot import dofs
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.control_flow import flattened, if_, loop
from kfdyn.sweeps.functions import minimum
from kfdyn.sweeps.values import now
from kfdyn.sweeps.variables import local


class Unknowns:
    """The ``count`` unknowns of a body: q̈ of its m dofs, then multipliers m of its rows."""

    def __init__(self, s, body, quiet=False):
        self.s, self.body, self.node, self.message = s, body, s.nodes[body.t], Message(s, quiet)
        self.m, self.n_rows = body.v_end - body.v, self.node.rows_end - self.node.rows
        self.count = self.m + self.n_rows

    def eliminate_pair(self, h):
        """One dof h and its own row, det 𝒦 < 0.

        Where nothing is known of accelerations J = 0, A stays symmetric, and is an articulated body inertia.
        """
        s, node, M, row = self.s, self.node, self.message, self.s.row
        scale, armature = (row.scale[2 * node.rows + i] for i in range(2))
        one, two = self._column_of_dof(h), [scale * x for x in self._column_of_row(h)]
        k, g = (0.0, 0.0) if M.quiet else self._known(dot(h, one), dot(h, M.vector(ALPHA)) if s.means else 0.0)
        across, least = dot(h, two) + armature, scale * dot(h, two[6:]) - row.numbers[node.R]
        if M.quiet:
            second, inverse = across, 1.0 / across
            K = -least * inverse * inverse, inverse, 0.0
        else:
            det = k * least - across * across
            second, inverse = det / across, 1.0 / det
            K = least * inverse, -across * inverse, k * inverse
        self._watch(0, across)
        self._watch(1, second)
        if s.means:
            y = scale * dot(h, M.vector(LAMBDA)) - row.y[s.measured[node.rows].reading]
            one, two = [*one, g], [*two, y]
        first, other = ([a * x + b * z for x, z in zip(one, two)] for a, b in ((K[0], K[1]), (K[1], K[2])))
        s.S[node.rows].h = scale * Spatial.of(h)
        s.keep_solved(node.unknowns, first)
        s.keep_solved(node.unknowns + 1, other)
        if not s.means:
            for i, x in enumerate((K[0], K[1], K[1], K[2])):
                s.inverse[node.inverse + i] = x
            s.keep_message(self.body, M)
        for _ in if_(self.body.parent != 0):
            self._reduce((one, first), (two, other))

    def _known(self, k, g):
        """k and γ of a dof with what is known of it in information form: of one dof, so each of one reading."""
        s, node, k, g = self.s, self.node, local(k), local(g)
        for j in loop(node.own_end, node.own):
            w = s.row.numbers[s.own[j].weight]
            k.set(k + w)
            if s.means:
                g.set(g - w * s.row.y[s.own[j].reading])
        return now(k), now(g)

    def eliminate(self):
        """Any number of dofs and rows, in the order chosen."""
        self._keep_columns()
        s, node, count, matrix = self.s, self.node, self.count, self.s.matrix
        right = 13 if s.means else 12
        wide = count + right + (0 if s.means else count)  # for covariances 𝒦⁻¹ itself stands behind
        for i in loop(count):  # row i of the order is that of unknown ``which``
            which = s.row.order[node.unknowns + i]
            line = matrix.part(wide * i)
            for _ in if_(which < self.m):
                self._dof_line(which, line)
            for _ in if_(which >= self.m):
                self._row_line(which - self.m, line)
            column = s.columns.part(12 * which)
            for c in range(12):
                line[count + c] = column[c]
            if not s.means:
                for c in loop(count):
                    line[count + 12 + c] = 0.0
                line[count + 12 + which] = 1.0
        self._solve(wide, count)
        for i in loop(count):
            s.keep_solved(node.unknowns + i, [matrix[wide * i + count + c] for c in range(right)])
        if not s.means:
            inverse = s.inverse.part(node.inverse)
            for i in loop(count):
                for j in loop(count):
                    inverse[count * i + j] = matrix[wide * i + count + 12 + j]
            s.keep_message(self.body, self.message)
        for _ in if_(self.body.parent != 0):
            for i in loop(count):
                column = [s.columns[12 * i + c] for c in range(12)]
                self._reduce((column, [matrix[wide * i + count + c] for c in range(right)]))

    def _keep_columns(self):
        """Γ[:, α]H* and Γ[:, λ]S* of all unknowns; rows of S are kept."""
        s, node, k = self.s, self.node, local(0)

        def keep(numbers):
            column = s.columns.part(12 * now(k))
            for c, x in enumerate(numbers):
                column[c] = x
            k.set(k + 1)

        for i in dofs(s.robot, self.body):
            keep(self._column_of_dof(flattened(s.rows_of_H[i].h)))
        for i in loop(node.rows_end, node.rows):
            s.keep_row_of_S(self.body, i)
            keep(self._column_of_row(flattened(s.S[i].h)))

    def _column_of_dof(self, h):
        """Γ[:, α]h*."""
        M = self.message
        return ([0.0] * 6 if M.quiet else M.J @ h) + (M.A @ h)

    def _column_of_row(self, r):
        """Γ[:, λ]r*."""
        M = self.message
        return M.A.back(r) + [-x for x in M.C @ r]

    def _dof_line(self, i, line):
        """Row of 𝒦 for q̈_i: H_i times the columns, armatures and informations, and γ."""
        s, node, dof = self.s, self.node, self.body.v + i
        row, h = s.row, flattened(s.rows_of_H[dof].h)
        for j in loop(self.count):
            line[j] = dot(h, [s.columns[12 * j + c] for c in SIX])
        for j in loop(node.rows_end, node.rows):
            one = s.measured[j]
            for _ in if_((one.kind != FORCE) & (one.at == dof)):
                line[self.m + j - node.rows] += row.scale[2 * j + 1]
        gamma = local(dot(h, self.message.vector(ALPHA))) if s.means else None
        for j in loop(node.own_end, node.own):
            one = s.own[j]
            for _ in if_(one.dof == dof):
                for k, w in s.weights(one, j):
                    line[s.own[k].dof - self.body.v] += w
                    if s.means:
                        gamma.set(gamma - w * row.y[s.own[k].reading])
        if s.means:
            line[self.count + 12] = now(gamma)

    def _row_line(self, i, line):
        """Row of 𝒦 for m_i: S_i times the columns, less R, and γ = S b − y."""
        s, node, at = self.s, self.node, self.node.rows + i
        row, r, one = s.row, flattened(s.S[at].h), s.measured[at]
        for j in loop(self.count):
            line[j] = dot(r, [s.columns[12 * j + 6 + c] for c in SIX])
        for _ in if_(one.kind != FORCE):
            line[one.at - self.body.v] += row.scale[2 * at + 1]
        for j in loop(self.n_rows):
            line[self.m + j] -= row.numbers[node.R + i * self.n_rows + j]
        if s.means:
            line[self.count + 12] = dot(r, self.message.vector(LAMBDA)) - row.y[one.reading]

    def _solve(self, wide, count):
        """Gauss and Jordan on ``count`` lines of ``wide`` numbers: what stands behind 𝒦 is multiplied by 𝒦⁻¹."""
        matrix = self.s.matrix
        for p in loop(count):
            pivot = matrix.part(wide * p)
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

    def _watch(self, i, pivot):
        """Remember how far above the least allowed a pivot is, and the pivot itself if it is asked for."""
        s, place = self.s, self.node.unknowns + i
        s.least.set(minimum(s.least, abs(pivot) - SHRUNK * s.row.pivots[place]))
        if s.means:
            for _ in if_(s.row.n_pivot != 0):
                s.row.pivot[place] = pivot

    def _reduce(self, *terms):
        """Γ − Σ column x* and γ likewise, over columns and rows of X."""
        s, M, terms = self.s, self.message, [([-y for y in column], x) for column, x in terms]
        for c, d in M.A.pairs:
            M.A[c, d] = total([M.A[c, d], *(a[6 + c] * x[d] for a, x in terms)])
        for c, d in M.C.pairs:
            M.C[c, d] = total([M.C[c, d], *(-a[6 + c] * x[6 + d] for a, x in terms)])
        if not M.quiet:
            for c, d in M.J.pairs:
                M.J[c, d] = total([M.J[c, d], *(a[c] * x[d] for a, x in terms)])
        if s.means:
            for at, first in zip(M.vectors, (6, 0)):
                for c in SIX:
                    s.here[at + c] = total([s.here[at + c], *(a[first + c] * x[12] for a, x in terms)])
