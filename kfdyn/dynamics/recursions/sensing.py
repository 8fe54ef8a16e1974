"""The means in compiled lanes: one outward sweep, the gather and scatter of THEORY section 11, one gather of forces.

The program is data (``sensors.program``): at which node which rows are, in which order they are eliminated. A message
has 90 numbers: J (21), A (36), C (21), γ_α = −h (6), γ_λ = b (6); see ``sensors.gather``. At a hinge the
unknowns w = (q̈, m) have a column (12) and a number each, and are eliminated by Gauss and Jordan in a fixed order of
rows, which a pivot that has shrunk too much says to be wrong: then the row of the batch has no answer here.
"""

from kfdyn.dynamics.recursions.articulated import everything
from kfdyn.dynamics.recursions.forward import GRAVITY
from kfdyn.multibody.recursions.energy import Q, V
from kfdyn.multibody.recursions.outward import WORK, axis_of, inertia_of, place_world, sweep_outward
from kfdyn.multibody.recursions.robot import INDEX, REVOLUTE, ROBOT, SCREW, dofs, inward, outward
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.algebra import Mat3, Vec3
from kfdyn.sweeps.control import either, loop, when
from kfdyn.sweeps.entry import Entry, Given, Parameter
from kfdyn.sweeps.functions import absolute, smaller
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.records import Record
from kfdyn.sweeps.values import choice, local, now

#: Kinds of rows: generalised force of a dof, its acceleration, a component of a force at a frame.
TORQUE, ACCELERATION, FORCE = 0, 1, 2

#: A node's part of the program, by body t: first and last of its rows, inertial pieces and pushes, where its unknowns
#: and its order of elimination begin, and where the covariance of its rows is.
#: ``pair`` is 1 where one dof and one row of its own are all that is unknown.
NODE = Record(rows=int, rows_end=int, info=int, info_end=int, push=int, push_end=int, unknowns=int, R=int, pair=int)

#: A row: kind; dof, or component of the force; the frame; which reading.
ROW = Record(kind=int, at=int, frame=int, reading=int)

#: Rows in information form: one reading; ``of`` 0–5 a component of [angular; linear] at a frame, or 6 + a dof; its
#: weights with the others of its piece (``weights`` numbers from ``weight`` on), which begins at ``first``.
INFO = Record(of=int, frame=int, reading=int, first=int, count=int, weight=int)

#: A push: one component of an external force; ``of`` 0–5 at a frame in its axes, 6–11 in the world's; else alike.
PUSH = Record(of=int, frame=int, reading=int, first=int, count=int, weight=int)

FRAME = Record(R=Mat3, p=Vec3)

#: A pivot that is this part of what it was when the order was chosen shows that the order is wrong.
SHRUNK = 1e-6

MESSAGE = 90
_J, _A, _C, _GA, _GL = 0, 21, 57, 78, 84


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
        return self.memory[_J + upper(a, b)]

    def A(self, a, b):
        """A_ab, row of λ and column of α."""
        return self.memory[_A + 6 * a + b]

    def C(self, a, b):
        """C_ab."""
        return self.memory[_C + upper(a, b)]


class Sensing:
    """The workspace: bodies, rows of H, messages in slots, one to work on, columns and solutions, answers by body."""

    def __init__(self, robot, row, work):
        self.robot, self.row, self.zero = robot, row, everything(robot, 0.0)
        self.nodes, self.rows = NODE.rows(row.nodes), ROW.rows(row.rows)
        self.frames = FRAME.rows(row.frames)
        at = (robot.n + 1) * WORK.width
        self.work, self.bodies = work, WORK.rows(work)
        self.H = work.part(at)
        at = at + robot.nv * SCREW.width
        self.slots = work.part(at)
        at = at + (robot.slots + 1) * MESSAGE
        self.here = work.part(at)
        at = at + MESSAGE
        self.S = work.part(at)  # six numbers a row
        at = at + 6 * row.n_rows
        self.columns = work.part(at)  # twelve a unknown
        at = at + 12 * row.n_unknowns
        self.X = work.part(at)  # thirteen a unknown
        at = at + 13 * row.n_unknowns
        # α, λ, f and external forces, six a body in the system's order, then the world's: rows of answers as they are
        self.alpha, self.lam, self.force, self.push = (work.part(at + i * 6 * (robot.n + 1)) for i in range(4))
        at = at + 24 * (robot.n + 1)
        self.pieces = work.part(at)  # rows of an inertial piece: six numbers, and one
        at = at + 7 * 6
        self.matrix = work.part(at)

    @staticmethod
    def size(robot, row):
        """How many numbers it works in."""
        n, most = robot.n + 1, row.most
        fixed = n * (WORK.width + 24) + robot.nv * SCREW.width + (robot.slots + 2) * MESSAGE + 42
        return fixed + 6 * row.n_rows + 25 * row.n_unknowns + most * (most + 13)

    def begin(self):
        """Slot 0 and the world."""
        place_world(self.work)
        clear(self.slots, MESSAGE)

    # -- places

    def number(self, t):
        """A body's number in the system; the world comes last."""
        return choice(t == 0, self.robot.n, INDEX.rows(self.robot.index)[t].body)

    def rows_of_H(self, i):
        """The row of dof i."""
        return [self.H[6 * i + c] for c in range(6)]

    def placed(self, body, f):
        """Orientation and arm of a frame on a body."""
        R, frame = self.bodies[body.t].R, self.frames[f]
        return R @ frame.R, R @ frame.p

    def motion_row(self, body, f, of):
        """Row of K for component ``of`` at a frame, as a choice over six: R*[1, 0] and R*[−r~, 1]."""
        R, r = self.placed(body, f)
        out = [local(self.zero) for _ in range(6)]
        for c in range(3):
            axis = R.column(c)
            for _ in when(of == c):
                for x, value in zip(out, (*axis, self.zero, self.zero, self.zero)):
                    x.set(value)
            for _ in when(of == 3 + c):
                # axis·(a + α × r) = axis·a + (r × axis)·α
                for x, value in zip(out, (*r.cross(axis), *axis)):
                    x.set(value)
        return [now(x) for x in out]

    def force_row(self, body, f, of):
        """Row of S for component ``of`` of [moment; force] at a frame: R*[1, −r~] and R*[0, 1]."""
        R, r = self.placed(body, f)
        out = [local(self.zero) for _ in range(6)]
        for c in range(3):
            axis = R.column(c)
            for _ in when(of == c):
                # axis·(n − r × f) = axis·n − (axis × r)·f
                for x, value in zip(out, (*axis, *(-axis.cross(r)))):
                    x.set(value)
            for _ in when(of == 3 + c):
                for x, value in zip(out, (self.zero, self.zero, self.zero, *axis)):
                    x.set(value)
        return [now(x) for x in out]

    def push_column(self, body, f, of):
        """Column of P: a unit of a force at a frame, as one at the body's origin; in its axes, or in the world's."""
        R, r = self.placed(body, f)
        one = everything(self.robot, 1.0)
        unit = [Vec3(*(one if i == c else self.zero for i in range(3))) for c in range(3)]
        out = [local(self.zero) for _ in range(6)]
        for c in range(6):
            for start, axis in ((0, R.column(c % 3)), (6, unit[c % 3])):
                for _ in when(of == start + c):
                    value = (*axis, self.zero, self.zero, self.zero) if c < 3 else (*r.cross(axis), *axis)
                    for x, y in zip(out, value):
                        x.set(y)
        return [now(x) for x in out]

    # -- gather

    def arrive(self, body):
        """The message of what is outboard, with the body's own inertia and bias force."""
        here, slot = self.here, self.slots.part(MESSAGE * body.arrives)
        for i in range(MESSAGE):
            here[i] = slot[i]
        J, p = inertia_of(body, self.work)
        m, omega, A = body.mass, self.bodies[body.t].omega, Message(here)
        inner = [[J.s[upper3(a, b)] for b in range(3)] for a in range(3)]
        cross = [[0.0, -p.z, p.y], [p.z, 0.0, -p.x], [-p.y, p.x, 0.0]]
        for a in range(3):
            for b in range(3):
                here[_A + 6 * a + b] = A.A(a, b) + inner[a][b]
                if a != b:
                    here[_A + 6 * a + 3 + b] = A.A(a, 3 + b) + cross[a][b]
                    here[_A + 6 * (3 + a) + b] = A.A(3 + a, b) - cross[a][b]
            here[_A + 6 * (3 + a) + 3 + a] = A.A(3 + a, 3 + a) + m
        xi = (*omega.cross(J @ omega), *omega.cross(omega.cross(p)))
        for i, x in enumerate(xi):
            here[_GL + i] = here[_GL + i] + x

    def inform(self, body, node):
        """J += K*R⁻¹K and γ_α −= K*R⁻¹y of the inertial pieces, one row at a time."""
        row, here, pieces = self.row, self.here, INFO.rows(self.row.info)
        for i in loop(node.info_end, node.info):
            one = pieces[i]
            for _ in when(one.of < 6):
                place = i - one.first
                self._look(body, one, place)
                # the piece's rows up to this one: (row i) weight (row j) + its transpose
                for j in loop(i + 1, one.first):
                    w = row.numbers[one.weight + place * one.count + (j - one.first)]
                    a = [self.pieces[7 * place + c] for c in range(7)]
                    b = [self.pieces[7 * (j - one.first) + c] for c in range(7)]
                    half = local(w)
                    for _ in when(j == i):
                        half.set(0.5 * w)
                    w = now(half)
                    for c in range(6):
                        for d in range(c, 6):
                            here[_J + upper(c, d)] += w * (a[c] * b[d] + b[c] * a[d])
                        here[_GA + c] -= w * (a[c] * b[6] + b[c] * a[6])

    def _look(self, body, one, place):
        """A row of K and the reading less its offset R*(ω × (ω × r)) into ``pieces``."""
        K = self.motion_row(body, one.frame, one.of)
        _, r = self.placed(body, one.frame)
        omega = self.bodies[body.t].omega
        turn = omega.cross(omega.cross(r))
        # the linear part of K is R* of an accelerometer's row, and zero of an angular one
        offset = K[3] * turn.x + K[4] * turn.y + K[5] * turn.z
        for c in range(6):
            self.pieces[7 * place + c] = K[c]
        self.pieces[7 * place + 6] = self.row.y[one.reading] - offset

    def spread(self, body, node):
        """C += PΣP* and γ_λ −= Pμ of external forces."""
        row, here, pushes = self.row, self.here, PUSH.rows(self.row.push)
        for i in loop(node.push_end, node.push):
            one = pushes[i]
            p = self.push_column(body, one.frame, one.of)
            y = row.y[one.reading]
            for c in range(6):
                here[_GL + c] -= p[c] * y
            for j in loop(one.first + one.count, one.first):
                other = pushes[j]
                w = row.numbers[one.weight + (i - one.first) * one.count + (j - one.first)]
                s = self.push_column(body, other.frame, other.of)
                for c in range(6):
                    for d in range(c, 6):
                        here[_C + upper(c, d)] += (0.5 * w) * (p[c] * s[d] + s[c] * p[d])

    def unknowns(self, body, node):
        """Columns Γ[:, α]H* and Γ[:, λ]S* of all unknowns; rows of S."""
        gamma = Message(self.here)
        k = local(node.unknowns)
        for i in dofs(self.robot, body):
            h = self.rows_of_H(i)
            column = self.columns.part(12 * now(k))
            for a in range(6):
                column[a] = total(gamma.J(a, b) * h[b] for b in range(6))
                column[6 + a] = total(gamma.A(a, b) * h[b] for b in range(6))
            k += 1
        for i in loop(node.rows_end, node.rows):
            one, S = self.rows[i], self.S.part(6 * i)
            scale = self.row.scale[2 * i]
            for c in range(6):
                S[c] = 0.0
            for _ in when(one.kind == TORQUE):
                for c, x in enumerate(self.rows_of_H(one.at)):
                    S[c] = scale * x
            for _ in when(one.kind == FORCE):
                for c, x in enumerate(self.force_row(body, one.frame, one.at)):
                    S[c] = scale * x
            s = [S[c] for c in range(6)]
            column = self.columns.part(12 * now(k))
            for b in range(6):
                column[b] = total(gamma.A(a, b) * s[a] for a in range(6))
                column[6 + b] = -total(gamma.C(b, a) * s[a] for a in range(6))
            k += 1

    def eliminate(self, body, node):
        """𝒦, its rows in the order chosen, with columns and γ beside it; X = 𝒦⁻¹[columns*, γ]."""
        row, here, M = self.row, self.here, self.matrix
        m = body.v_end - body.v
        count = m + node.rows_end - node.rows
        wide = count + 13
        for i in loop(count):  # row i of the order is that of unknown ``which``
            which = row.order[node.unknowns + i]
            line = M.part(wide * i)
            for _ in when(which < m):
                self._dof_line(body, node, which, m, count, line)
            for _ in when(which >= m):
                self._row_line(body, node, which - m, m, count, line)
            column = self.columns.part(12 * (node.unknowns + which))
            for c in range(12):
                line[count + c] = column[c]
        for p in loop(count):
            pivot = M.part(wide * p)
            d = pivot[p]
            self.least.set(smaller(self.least, absolute(d) - SHRUNK * row.pivots[node.unknowns + p]))
            row.pivot[node.unknowns + p] = d
            inverse = 1.0 / d
            for c in loop(wide, p + 1):
                pivot[c] = pivot[c] * inverse
            for i in loop(count):
                for _ in when(i != p):
                    line = M.part(wide * i)
                    factor = line[p]
                    for c in loop(wide, p + 1):
                        line[c] -= factor * pivot[c]
        for i in loop(count):
            line, X = M.part(wide * i + count), self.X.part(13 * (node.unknowns + i))
            for c in range(13):
                X[c] = line[c]
        for _ in when(body.parent != 0):
            for i in loop(count):
                column, X = self.columns.part(12 * (node.unknowns + i)), self.X.part(13 * (node.unknowns + i))
                a, x = [column[c] for c in range(12)], [X[c] for c in range(13)]
                for c in range(6):
                    for d in range(6):
                        here[_A + 6 * c + d] -= a[6 + c] * x[d]
                    for d in range(c, 6):
                        here[_J + upper(c, d)] -= a[c] * x[d]
                        here[_C + upper(c, d)] += a[6 + c] * x[6 + d]
                    here[_GA + c] -= a[c] * x[12]
                    here[_GL + c] -= a[6 + c] * x[12]

    def pair(self, body, node):
        """One dof and its own row, 𝒦 two by two: the usual node, without loops. det 𝒦 < 0."""
        row, here, gamma = self.row, self.here, Message(self.here)
        h, scale = self.rows_of_H(body.v), row.scale[2 * node.rows]
        s = [scale * x for x in h]
        for c in range(6):
            self.S[6 * node.rows + c] = s[c]
        one = [total(gamma.J(a, b) * h[b] for b in range(6)) for a in range(6)]
        one += [total(gamma.A(a, b) * h[b] for b in range(6)) for a in range(6)]
        two = [total(gamma.A(a, b) * s[a] for a in range(6)) for b in range(6)]
        two += [-total(gamma.C(b, a) * s[a] for a in range(6)) for b in range(6)]
        k, g = local(total(h[c] * one[c] for c in range(6))), local(total(h[c] * here[_GA + c] for c in range(6)))
        pieces = INFO.rows(row.info)
        for j in loop(node.info_end, node.info):
            piece = pieces[j]
            for _ in when(piece.of == 6 + body.v):  # of one dof, so of one reading
                w = row.numbers[piece.weight]
                k.set(k + w)
                g.set(g - w * row.y[piece.reading])
        k, g = now(k), now(g)
        across = total(h[c] * two[c] for c in range(6)) + row.scale[2 * node.rows + 1]
        least = total(s[c] * two[6 + c] for c in range(6)) - row.numbers[node.R]
        y = total(s[c] * here[_GL + c] for c in range(6)) - row.y[self.rows[node.rows].reading]
        det = k * least - across * across
        inverse = 1.0 / det
        second = det / across
        for i, pivot in ((0, across), (1, second)):
            row.pivot[node.unknowns + i] = pivot
            self.least.set(smaller(self.least, absolute(pivot) - SHRUNK * row.pivots[node.unknowns + i]))
        a, b, c_ = least * inverse, -across * inverse, k * inverse
        first = [a * x + b * z for x, z in zip([*one, g], [*two, y])]
        other = [b * x + c_ * z for x, z in zip([*one, g], [*two, y])]
        X = self.X.part(13 * node.unknowns)
        for c in range(13):
            X[c], X[13 + c] = first[c], other[c]
        for _ in when(body.parent != 0):
            for c in range(6):
                for d in range(6):
                    here[_A + 6 * c + d] -= one[6 + c] * first[d] + two[6 + c] * other[d]
                for d in range(c, 6):
                    here[_J + upper(c, d)] -= one[c] * first[d] + two[c] * other[d]
                    here[_C + upper(c, d)] += one[6 + c] * first[6 + d] + two[6 + c] * other[6 + d]
                here[_GA + c] -= one[c] * first[12] + two[c] * other[12]
                here[_GL + c] -= one[6 + c] * first[12] + two[6 + c] * other[12]

    def _dof_line(self, body, node, i, m, count, line):
        """Row of 𝒦 for q̈_i: H_i times the columns, armatures and informations, and γ."""
        row, here = self.row, self.here
        h = self.rows_of_H(body.v + i)
        for j in loop(count):
            column = self.columns.part(12 * (node.unknowns + j))
            line[j] = total(h[c] * column[c] for c in range(6))
        for j in loop(node.rows_end, node.rows):
            one = self.rows[j]
            for _ in when((one.kind != FORCE) & (one.at == body.v + i)):
                line[m + j - node.rows] += row.scale[2 * j + 1]
        gamma = local(total(h[c] * here[_GA + c] for c in range(6)))
        pieces = INFO.rows(row.info)
        for j in loop(node.info_end, node.info):
            one = pieces[j]
            for _ in when(one.of == 6 + body.v + i):
                for k in loop(one.first + one.count, one.first):
                    w = row.numbers[one.weight + (j - one.first) * one.count + (k - one.first)]
                    other = pieces[k]
                    line[other.of - 6 - body.v] += w
                    gamma.set(gamma - w * row.y[other.reading])
        line[count + 12] = now(gamma)

    def _row_line(self, body, node, i, m, count, line):
        """Row of 𝒦 for m_i: S_i times the columns, less R, and γ = S b − y."""
        row, here = self.row, self.here
        s = [self.S[6 * (node.rows + i) + c] for c in range(6)]
        one = self.rows[node.rows + i]
        for j in loop(count):
            column = self.columns.part(12 * (node.unknowns + j))
            line[j] = total(s[c] * column[6 + c] for c in range(6))
        for _ in when(one.kind != FORCE):
            line[one.at - body.v] += row.scale[2 * (node.rows + i) + 1]
        r = node.rows_end - node.rows
        for j in loop(r):
            line[m + j] -= row.numbers[node.R + i * r + j]
        line[count + 12] = total(s[c] * here[_GL + c] for c in range(6)) - row.y[one.reading]

    def leave(self, body):
        """γ += Γ[:, α]η, and the message shifted to the parent's sum."""
        here, gamma = self.here, Message(self.here)
        l, eta = self.bodies[body.t].l, [*self.bodies[body.t].eta.w, *self.bodies[body.t].eta.v]
        ga = [here[_GA + a] + total(gamma.J(a, b) * eta[b] for b in range(6)) for a in range(6)]
        gl = [here[_GL + a] + total(gamma.A(a, b) * eta[b] for b in range(6)) for a in range(6)]
        base, out = self.slots.part(MESSAGE * body.base), self.slots.part(MESSAGE * body.leaves)
        for place, entry in ((_J, gamma.J), (_C, gamma.C)):
            moved = shifted([[entry(a, b) for b in range(6)] for a in range(6)], l)
            for a in range(6):
                for b in range(a, 6):
                    out[place + upper(a, b)] = base[place + upper(a, b)] + moved[a][b]
        moved = shifted([[gamma.A(a, b) for b in range(6)] for a in range(6)], l)
        for a in range(6):
            for b in range(6):
                out[_A + 6 * a + b] = base[_A + 6 * a + b] + moved[a][b]
        for place, g in ((_GA, ga), (_GL, gl)):
            f = Spatial.of(g).force_shifted(l)
            for i, x in enumerate((*f.w, *f.v)):
                out[place + i] = base[place + i] + x

    # -- scatter

    def smooth(self, body, node):
        """w = −X(α', g) − 𝒦⁻¹γ, α = α' + H*q̈, λ = g + S*m; what the row of the batch is told."""
        row, here, up = self.row, self.bodies[body.t], 6 * self.number(body.parent)
        a = Spatial.of([self.alpha[up + i] for i in range(6)]).motion_shifted(here.l) + here.eta
        g = Spatial.of([self.lam[up + i] for i in range(6)]).motion_shifted(here.l)
        kept = [*a.w, *a.v, *g.w, *g.v]
        moved, pulled = self.alpha.part(6 * body.body), self.lam.part(6 * body.body)
        for i in range(6):
            moved[i], pulled[i] = kept[i], kept[6 + i]
        k = local(node.unknowns)
        for i in dofs(self.robot, body):
            X, h = self.X.part(13 * now(k)), self.rows_of_H(i)
            rate = -total(X[c] * kept[c] for c in range(12)) - X[12]
            row.a[i] = rate
            for c in range(6):
                moved[c] += h[c] * rate
            k += 1
        for i in loop(node.rows_end, node.rows):
            X, S = self.X.part(13 * now(k)), self.S.part(6 * i)
            pull = -total(X[c] * kept[c] for c in range(12)) - X[12]
            row.m[i] = pull
            for c in range(6):
                pulled[c] += S[c] * pull
            k += 1
        push, force = self.push.part(6 * body.body), self.force.part(6 * body.body)
        for c in range(6):
            push[c] = force[c] = 0.0
        pushes = PUSH.rows(row.push)
        for i in loop(node.push_end, node.push):
            one = pushes[i]
            p = self.push_column(body, one.frame, one.of)
            x = local(row.y[one.reading])
            for j in loop(one.first + one.count, one.first):
                other = pushes[j]
                s = self.push_column(body, other.frame, other.of)
                w = row.numbers[one.weight + (i - one.first) * one.count + (j - one.first)]
                x.set(x + w * total(s[c] * pulled[c] for c in range(6)))
            for c in range(6):
                push[c] += p[c] * now(x)

    def press(self, body):
        """f = Σφf + Mα + ξ − x, and tau = H f + R q̈."""
        row, at = self.row, 6 * body.body
        moved, f, pushed = self.alpha.part(at), self.force.part(at), self.push.part(at)
        J, p = inertia_of(body, self.work)
        omega = self.bodies[body.t].omega
        w, v = Vec3(*(moved[i] for i in range(3))), Vec3(*(moved[3 + i] for i in range(3)))
        moment = (J @ w).plus_cross(p, v).plus_cross(omega, J @ omega)
        push = (body.mass * v).plus_cross(w, p) + omega.cross(omega.cross(p))
        whole = [f[i] + x - pushed[i] for i, x in enumerate((*moment, *push))]
        for i in dofs(self.robot, body):
            h = self.rows_of_H(i)
            row.tau[i] = total(h[c] * whole[c] for c in range(6)) + self.robot.armature[i] * row.a[i]
        for i, x in enumerate(whole):
            f[i] = x
        for _ in when(body.parent != 0):
            shift = Spatial.of(whole).force_shifted(self.bodies[body.t].l)
            up = self.force.part(6 * self.number(body.parent))
            for i, x in enumerate((*shift.w, *shift.v)):
                up[i] += x


def total(terms):
    """A sum from left to right."""
    terms = list(terms)
    out = terms[0]
    for term in terms[1:]:
        out = out + term
    return out


def upper3(a, b):
    """Place of an entry in a Sym3."""
    return {(0, 0): 0, (0, 1): 1, (0, 2): 2, (1, 1): 3, (1, 2): 4, (2, 2): 5}[min(a, b), max(a, b)]


def shifted(B, l):
    """φ B φ*, φ = [[1, l~], [0, 1]], of six rows of six."""
    rows = [list(row) for row in B]
    for b in range(6):
        x = Vec3(*(rows[a][b] for a in range(3))).plus_cross(l, Vec3(*(rows[3 + a][b] for a in range(3))))
        for a, value in enumerate(x):
            rows[a][b] = value
    for a in range(6):
        x = Vec3(*rows[a][:3]).plus_cross(l, Vec3(*rows[a][3:]))
        for b, value in enumerate(x):
            rows[a][b] = value
    return rows


def sense(robot, row, work):
    """Means of accelerations and forces. About 1500 flops for a body on one dof with one reading."""
    s = Sensing(robot, row, work)
    sweep_outward(robot, row, s.work, s.H, moving=True)
    s.least = local(everything(robot, 1e300))
    for body in inward(robot):
        node = s.nodes[body.t]
        for _ in when(body.kind == REVOLUTE):
            axis = axis_of(body.t, s.work)
            for c, x in enumerate((*axis, 0.0, 0.0, 0.0)):
                s.H[6 * body.v + c] = x
        s.arrive(body)
        s.inform(body, node)
        s.spread(body, node)
        for simple in either(node.pair != 0):
            if simple:
                s.pair(body, node)
            else:
                s.unknowns(body, node)
                s.eliminate(body, node)
        for _ in when(body.parent != 0):
            s.leave(body)
    for i in range(6):
        s.alpha[6 * robot.n + i], s.lam[6 * robot.n + i] = (-row.gravity[i - 3] if i >= 3 else 0.0), 0.0
    for body in outward(robot):
        s.smooth(body, s.nodes[body.t])
    for body in inward(robot):
        s.press(body)
    for out, numbers in ((row.alpha, s.alpha), (row.lam, s.lam), (row.f, s.force), (row.x, s.push)):
        out.copy(numbers, 6 * robot.n)
    return now(s.least)


def begin(robot, row, work):
    """Slot 0 and the world stay as they are."""
    Sensing(robot, row, work).begin()


SENSE = Entry(
    sense,
    ROBOT,
    [Q, V, Given("y", ("n_readings",)), GRAVITY],
    [
        Given("a", ("nv",)),
        Given("tau", ("nv",)),
        Given("alpha", ("n", 6)),
        Given("lam", ("n", 6)),
        Given("f", ("n", 6)),
        Given("x", ("n", 6)),
        Given("m", ("n_rows",)),
        Given("pivot", ("n_unknowns",)),
    ],
    lambda robot, row: Sensing.size(robot, row),
    begin,
    [
        Parameter("n_rows", "n"),
        Parameter("n_unknowns", "n"),
        Parameter("n_readings", "n"),
        Parameter("most", "n"),
        Parameter("nodes", "i"),
        Parameter("rows", "i"),
        Parameter("info", "i"),
        Parameter("push", "i"),
        Parameter("order", "i"),
        Parameter("frames", "f"),
        Parameter("numbers", "f"),
        Parameter("scale", "f"),
        Parameter("pivots", "f"),
    ],
)
