"""At a hinge: the unknowns w = (q̈, m) are eliminated through 𝒦, and what is left of the message is the parent's.

An unknown has a column of twelve and a number, Γ[:, α]H* or Γ[:, λ]S* and γ; X = 𝒦⁻¹[columns*, γ]. The usual node has
one dof with one row of its own, two by two and without loops; :mod:`.general` has all others.
"""

from kfdyn.dynamics.recursions.sensing.message import ALPHA, LAMBDA, SIX, Message, dot, total
from kfdyn.dynamics.recursions.sensing.tables import SHRUNK
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.control_flow import if_, loop
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

    def _column_of_dof(self, h):
        """Γ[:, α]h*."""
        M = self.message
        return ([0.0] * 6 if M.quiet else M.J @ h) + (M.A @ h)

    def _column_of_row(self, r):
        """Γ[:, λ]r*."""
        M = self.message
        return M.A.back(r) + [-x for x in M.C @ r]

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
