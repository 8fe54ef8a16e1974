"""Means where unknowns are carried inward: exact accelerometers, flat forces, couplings.

What a node cannot decide stays in its message: a column of twelve for each such unknown, its γ, and Y among them. The
parent takes them as T times its own unknowns u, T being 1 unless a coupling joins some of them. Which of w = (u, q̈, m)
are eliminated, and in which order of rows, is fixed beforehand; a pivot that has shrunk says that the order is wrong.
"""

from kfdyn.dynamics.recursions.articulated import everything
from kfdyn.dynamics.recursions.sensing import tables
from kfdyn.dynamics.recursions.sensing.means import Means, sense
from kfdyn.dynamics.recursions.sensing.message import ALPHA, LAMBDA, SIX, dot, total
from kfdyn.dynamics.recursions.sensing.tables import ANSWERS, PROGRAM
from kfdyn.dynamics.recursions.sensing.unknowns import Unknowns
from kfdyn.multibody.recursions.given import GRAVITY, Q, V
from kfdyn.multibody.recursions.robot import SCREW, dofs
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.multibody.recursions.swept import entry
from kfdyn.sweeps.control_flow import flattened, if_, if_else, loop, loop_vars
from kfdyn.sweeps.entry import Given, Parameter
from kfdyn.sweeps.values import now
from kfdyn.sweeps.variables import local

#: Numbers of an unknown: its column and γ.
COLUMN = 13


class CarriedMeans(Means):
    """The workspace, with columns and Γ of one node, what is carried, and the values of unknowns."""

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.wides, self.loads = tables.WIDE.rows(row.wide), tables.LOAD.rows(row.loads)
        self.loose, self.inner_nodes = tables.LOOSE.rows(row.loose), tables.CHILD.rows(row.inner_nodes)

    @staticmethod
    def layout(robot, row):
        """That of the means, and what is carried."""
        most = row.most
        more = {
            "K": (SCREW, row.n_rows), "wide_columns": COLUMN * most, "whole": most * most, "half": most * most,
            "store": row.n_store, "beside": row.n_beside, "values": row.n_values,
        }  # fmt: skip
        return {**Means.layout(robot, row), **more}

    def eliminate(self, unknowns):
        """In general; where something is carried, by itself."""
        for wide in if_else(unknowns.node.way == tables.CARRIES):
            if wide:
                Carried(self, unknowns.body).eliminate()
            else:
                unknowns.eliminate()

    def smooth(self, body, node):
        """As everywhere, or with what is carried."""
        for wide in if_else(node.way == tables.CARRIES):
            if wide:
                self._smooth_carried(body, node)
            else:
                super().smooth(body, node)

    def _smooth_carried(self, body, node):
        """w = −X(α', g, u_kept) − 𝒦⁻¹γ; children get their shares of u."""
        row, here, up, wide = self.row, self.bodies[body.t], self.number(body.parent), self.wides[node.wide]
        alpha = self.alpha[up].h.motion_shifted(here.l) + here.eta
        g = self.lam[up].h.motion_shifted(here.l)
        w, gone, kept = self.values.part(wide.values), wide.gone, wide.kept
        for p in loop(gone):
            X = self.X[node.unknowns + p]
            x = local(X.alpha.dot(alpha) + X.lam.dot(g) + X.gamma)
            for c in loop(kept):
                x.set(x + self.beside[wide.beside + p * kept + c] * w[row.places[wide.order + 2 * gone + c]])
            w[row.places[wide.order + gone + p]] = -now(x)
        moved, pulled, m = loop_vars(alpha), loop_vars(g), body.v_end - body.v
        for i in dofs(self.robot, body):
            value = w[wide.left + (i - body.v)]
            self.a[i] = value
            moved.set(moved.get() + value * self.rows_of_H[i].h)
        for i in loop(node.rows_end, node.rows):
            pulled.set(pulled.get() + w[wide.left + m + (i - node.rows)] * self.S[i].h)
        self.alpha[body.body].h, self.lam[body.body].h = moved.get(), pulled.get()
        for _ in if_(row.n_x != 0):
            self._push(body, node, pulled.get())
            for j in loop(wide.loose_end, wide.loose):
                one = self.loose[j]
                force = w[one.to] * self.push_column(body, self.pushes[one.push])
                self.x[body.body].h = self.x[body.body].h + force
        for j in loop(wide.child_end, wide.child):
            one = self.inner_nodes[j]
            child = self.wides[one.wide]
            for a in loop(child.kept):
                x = local(everything(self.robot, 0.0))
                for c in loop(wide.left):
                    x.set(x + row.numbers[one.T + a * wide.left + c] * w[c])
                self.values[child.values + row.places[child.order + 2 * child.gone + a]] = now(x)


class Carried(Unknowns):
    """The unknowns w = (u, q̈, m) of a body: u that arrive from outboard or are joined there, q̈, multipliers m."""

    def __init__(self, s, body):
        super().__init__(s, body)
        self.wide = s.wides[self.node.wide]
        self.left, self.size = self.wide.left, self.wide.left + self.count

    def eliminate(self):
        """Those that are eliminated here; the others are stored for the parent."""
        self._begin()
        for j in loop(self.wide.child_end, self.wide.child):
            self._take(self.s.inner_nodes[j])
        self._own_columns()
        self._matrix()
        s, wide, gone, kept, size = self.s, self.wide, self.wide.gone, self.wide.kept, self.size
        places, broad = s.row.places, self.wide.gone + COLUMN + self.wide.kept
        for p in loop(gone):
            line, which = s.matrix.part(broad * p), places[wide.order + p]
            for c in loop(gone):
                line[c] = s.whole[which * size + places[wide.order + gone + c]]
            for c in range(COLUMN):
                line[gone + c] = s.wide_columns[COLUMN * which + c]
            for c in loop(kept):
                line[gone + COLUMN + c] = s.whole[which * size + places[wide.order + 2 * gone + c]]
        self._solve(broad, gone)
        for p in loop(gone):
            X = s.matrix.part(broad * p + gone)
            s.keep_solved(self.node.unknowns + p, [X[c] for c in range(COLUMN)])
            for c in loop(kept):
                s.beside[wide.beside + p * kept + c] = X[COLUMN + c]
        for _ in if_(self.body.parent != 0):
            for c in loop(kept):
                self._store(c, broad)
            for p in loop(gone):
                column = s.wide_columns.part(COLUMN * places[wide.order + gone + p])
                X = s.matrix.part(broad * p + gone)
                self._reduce(([column[c] for c in range(12)], [X[c] for c in range(COLUMN)]))

    def _begin(self):
        """Constants of couplings and of wide forces, their readings, and columns −P of flat forces."""
        s, wide, left = self.s, self.wide, self.left
        for x in loop(left):
            for y in loop(left):
                s.whole[x * self.size + y] = everything(s.robot, 0.0) + s.row.numbers[wide.inner + x * left + y]
            for c in range(COLUMN):
                s.wide_columns[COLUMN * x + c] = 0.0
        for j in loop(wide.load_end, wide.load):
            one = s.loads[j]
            s.wide_columns[COLUMN * one.to + 12] -= s.row.numbers[one.weight] * s.row.y[one.reading]
        for j in loop(wide.loose_end, wide.loose):
            one = s.loose[j]
            for c, x in enumerate(flattened(s.push_column(self.body, s.pushes[one.push]))):
                s.wide_columns[COLUMN * one.to + 6 + c] -= x

    def _take(self, one):
        """Of a child: columns T*, and T*YT."""
        s, left, child = self.s, self.left, self.s.wides[one.wide]
        kept, T = child.kept, s.row.numbers.part(one.T)
        Y = s.store.part(child.store + COLUMN * kept)
        for a in loop(kept):
            for x in loop(left):
                t, into = T[a * left + x], s.wide_columns.part(COLUMN * x)
                for c in range(COLUMN):
                    into[c] += t * s.store[child.store + COLUMN * a + c]
                half = local(everything(s.robot, 0.0))
                for b in loop(kept):
                    half.set(half + Y[a * kept + b] * T[b * left + x])
                s.half[a * left + x] = now(half)
        for x in loop(left):
            for y in loop(left):
                for a in loop(kept):
                    s.whole[x * self.size + y] += T[a * left + x] * s.half[a * left + y]

    def _own_columns(self):
        """Γ[:, α]H*, and Γ[:, λ]S* + K*, with γ."""
        s, M, node, k = self.s, self.message, self.node, local(self.left)

        def keep(numbers):
            column = s.wide_columns.part(COLUMN * now(k))
            for c, x in enumerate(numbers):
                column[c] = x
            k.set(k + 1)

        for i in dofs(s.robot, self.body):
            h = flattened(s.rows_of_H[i].h)
            keep([*self._column_of_dof(h), dot(h, M.vector(ALPHA))])
        for i in loop(node.rows_end, node.rows):
            s.keep_row_of_S(self.body, i)
            one, row = s.measured[i], flattened(s.S[i].h)
            gamma = local(dot(row, M.vector(LAMBDA)) - s.row.y[one.reading])
            s.K[i].h = Spatial.zero()
            for _ in if_(one.kind == tables.MOTION):
                s.K[i].h = s.turned(self.body, Spatial.of([s.row.numbers[one.S + c] for c in SIX]))
                gamma.set(gamma + self._turning(one.S + 6))
            column = self._column_of_row(row)
            keep([*(x + y for x, y in zip(column[:6], flattened(s.K[i].h))), *column[6:], now(gamma)])

    def _turning(self, at):
        """What ω brings to a reading of motion."""
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
                line[j] = dot(h, [s.wide_columns[COLUMN * j + c] for c in SIX])
            for j in loop(node.rows_end, node.rows):
                for _ in if_((s.measured[j].kind < tables.FORCE) & (s.measured[j].at == i)):
                    line[rows + j - node.rows] += row.scale[2 * j + 1]
            for j in loop(node.own_end, node.own):
                for _ in if_(s.own[j].dof == i):
                    for k, w in s.weights(s.own[j], j):
                        line[left + s.own[k].dof - self.body.v] += w
                        s.wide_columns[COLUMN * (left + i - self.body.v) + 12] -= w * row.y[s.own[k].reading]
        for i in loop(self.n_rows):
            line, r = s.whole.part(size * (rows + i)), flattened(s.S[node.rows + i].h)
            for j in loop(size):
                line[j] = dot(r, [s.wide_columns[COLUMN * j + 6 + c] for c in SIX])
            for j in loop(self.n_rows):
                line[rows + j] -= row.numbers[node.R + i * self.n_rows + j]
            for j in loop(m):  # rows of q̈ have K and e, too
                line[left + j] = s.whole[size * (left + j) + rows + i]
        for x in loop(left):
            for y in loop(size, left):
                s.whole[x * size + y] = s.whole[y * size + x]

    def _store(self, c, broad):
        """What is left of an unknown that is carried, shifted to the parent; η of the hinge enters its γ."""
        s, wide, size, here = self.s, self.wide, self.size, self.s.bodies[self.body.t]
        gone, kept, places = wide.gone, wide.kept, s.row.places
        which = places[wide.order + 2 * gone + c]
        out = [local(s.wide_columns[COLUMN * which + i]) for i in range(COLUMN)]
        Y = s.store.part(wide.store + COLUMN * kept + c * kept)
        for j in loop(kept):
            Y[j] = s.whole[which * size + places[wide.order + 2 * gone + j]]
        for p in loop(gone):
            beside = s.whole[places[wide.order + gone + p] * size + which]
            X = s.matrix.part(broad * p + gone)
            for i in range(COLUMN):
                out[i].set(out[i] - beside * X[i])
            for j in loop(kept):
                Y[j] -= beside * X[COLUMN + j]
        alpha, lam = (Spatial.of([now(x) for x in out[i : i + 6]]) for i in (0, 6))
        gamma = out[12] + alpha.dot(here.eta)
        parts = flattened((alpha.force_shifted(here.l), lam.force_shifted(here.l)))
        for i, x in enumerate([*parts, gamma]):
            s.store[wide.store + COLUMN * c + i] = x


SENSE_CARRIED = entry(
    sense,
    CarriedMeans,
    [Q, V, Given("y", ("n_readings",)), GRAVITY],
    [*ANSWERS, Given("lam", ("n_lam", 6)), Given("m", ("n_m",)), Given("pivot", ("n_pivot",))],
    [
        *PROGRAM,
        *(Parameter(name, "n") for name in ("n_values", "n_store", "n_beside")),
        *(Parameter(name, "i") for name in ("wide", "loads", "loose", "inner_nodes", "places")),
        *(Parameter(name, "n") for name in ("n_x", "n_lam", "n_m", "n_pivot")),
    ],
)
