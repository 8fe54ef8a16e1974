"""At a hinge: the unknowns w = (q̈, m) are eliminated through 𝒦, and what is left of the message is the parent's.

An unknown has a column of twelve and a number, Γ[:, α]H* or Γ[:, λ]S* and γ; X = 𝒦⁻¹[columns*, γ]. The usual node has
one dof with one row of its own, two by two and without loops. Others are eliminated by Gauss and Jordan in a fixed
order of rows, which a pivot that has shrunk too much says to be wrong: then the row of the batch has no answer here.
"""

from kfdyn.dynamics.recursions.sensing.message import ALPHA, LAMBDA, SIX, Message, dot, total
from kfdyn.dynamics.recursions.sensing.tables import FORCE, SHRUNK
from kfdyn.multibody.recursions.robot import dofs
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.control import flattened, loop, when
from kfdyn.sweeps.functions import absolute, smaller
from kfdyn.sweeps.values import local, now


def watch(s, place, pivot):
    """Remember how far above the least allowed a pivot is, and the pivot itself if it is asked for."""
    s.least.set(smaller(s.least, absolute(pivot) - SHRUNK * s.row.pivots[place]))
    if s.means:
        for _ in when(s.row.n_pivot != 0):
            s.row.pivot[place] = pivot


def column_of_dof(M, h):
    """Γ[:, α]h*."""
    return ([0.0] * 6 if M.quiet else M.J @ h) + (M.A @ h)


def column_of_row(M, r):
    """Γ[:, λ]r*."""
    return M.A.back(r) + [-x for x in M.C @ r]


def reduce(s, M, *terms):
    """Γ − Σ column x* and γ likewise, over columns and rows of X."""
    terms = [([-y for y in column], x) for column, x in terms]
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


def pair(s, body, node, h, quiet):
    """One dof h and its own row, det 𝒦 < 0.

    Where nothing is known of accelerations J = 0, A stays symmetric, and is an articulated body inertia.
    """
    row, M = s.row, Message(s.here, quiet)
    scale, armature = (row.scale[2 * node.rows + i] for i in range(2))
    one, two = column_of_dof(M, h), [scale * x for x in column_of_row(M, h)]
    k, g = (0.0, 0.0) if quiet else _known(s, node, dot(h, one), dot(h, M.vector(ALPHA)) if s.means else 0.0)
    across, least = dot(h, two) + armature, scale * dot(h, two[6:]) - row.numbers[node.R]
    if quiet:
        second, inverse = across, 1.0 / across
        K = -least * inverse * inverse, inverse, 0.0
    else:
        det = k * least - across * across
        second, inverse = det / across, 1.0 / det
        K = least * inverse, -across * inverse, k * inverse
    watch(s, node.unknowns, across)
    watch(s, node.unknowns + 1, second)
    if s.means:
        y = scale * dot(h, M.vector(LAMBDA)) - row.y[s.rows[node.rows].reading]
        one, two = [*one, g], [*two, y]
    first, other = ([a * x + b * z for x, z in zip(one, two)] for a, b in ((K[0], K[1]), (K[1], K[2])))
    s.keep_pair(body, node, scale * Spatial.of(h), (first, other), K, M)
    for _ in when(body.parent != 0):
        reduce(s, M, (one, first), (two, other))


def _known(s, node, k, g):
    """k and γ of a dof with what is known of it in information form: of one dof, so each of one reading."""
    k, g = local(k), local(g)
    for j in loop(node.own_end, node.own):
        w = s.row.numbers[s.own[j].weight]
        k.set(k + w)
        if s.means:
            g.set(g - w * s.row.y[s.own[j].reading])
    return now(k), now(g)


def general(s, body, node):
    """Any number of dofs and rows, in the order chosen."""
    _keep_columns(s, body, node)
    row, M = s.row, s.matrix
    m = body.v_end - body.v
    count = m + node.rows_end - node.rows
    right = 13 if s.means else 12
    wide = count + right + (0 if s.means else count)  # for covariances 𝒦⁻¹ itself stands behind
    for i in loop(count):  # row i of the order is that of unknown ``which``
        which = row.order[node.unknowns + i]
        line = M.part(wide * i)
        for _ in when(which < m):
            _dof_line(s, body, node, which, m, count, line)
        for _ in when(which >= m):
            _row_line(s, body, node, which - m, m, count, line)
        column = s.columns.part(12 * which)
        for c in range(12):
            line[count + c] = column[c]
        if not s.means:
            for c in loop(count):
                line[count + 12 + c] = 0.0
            line[count + 12 + which] = 1.0
    for p in loop(count):
        pivot = M.part(wide * p)
        d = pivot[p]
        watch(s, node.unknowns + p, d)
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
        s.keep_solved(node.unknowns + i, [M[wide * i + count + c] for c in range(right)])
    s.keep_general(body, node, count, wide)
    for _ in when(body.parent != 0):
        for i in loop(count):
            column = [s.columns[12 * i + c] for c in range(12)]
            reduce(s, Message(s.here), (column, [M[wide * i + count + c] for c in range(right)]))


def _keep_columns(s, body, node):
    """Γ[:, α]H* and Γ[:, λ]S* of all unknowns; rows of S are kept."""
    M, k = Message(s.here), local(0)

    def keep(numbers):
        column = s.columns.part(12 * now(k))
        for c, x in enumerate(numbers):
            column[c] = x
        k.set(k + 1)

    for i in dofs(s.robot, body):
        keep(column_of_dof(M, flattened(s.H[i].h)))
    for i in loop(node.rows_end, node.rows):
        s.keep_row_of_S(body, i)
        keep(column_of_row(M, flattened(s.S[i].h)))


def _dof_line(s, body, node, i, m, count, line):
    """Row of 𝒦 for q̈_i: H_i times the columns, armatures and informations, and γ."""
    row, h = s.row, flattened(s.H[body.v + i].h)
    for j in loop(count):
        line[j] = dot(h, [s.columns[12 * j + c] for c in SIX])
    for j in loop(node.rows_end, node.rows):
        one = s.rows[j]
        for _ in when((one.kind != FORCE) & (one.at == body.v + i)):
            line[m + j - node.rows] += row.scale[2 * j + 1]
    gamma = local(dot(h, Message(s.here).vector(ALPHA))) if s.means else None
    for j in loop(node.own_end, node.own):
        one = s.own[j]
        for _ in when(one.dof == body.v + i):
            for k, w in s.weights(one, j):
                line[s.own[k].dof - body.v] += w
                if s.means:
                    gamma.set(gamma - w * row.y[s.own[k].reading])
    if s.means:
        line[count + 12] = now(gamma)


def _row_line(s, body, node, i, m, count, line):
    """Row of 𝒦 for m_i: S_i times the columns, less R, and γ = S b − y."""
    row, r, one = s.row, flattened(s.S[node.rows + i].h), s.rows[node.rows + i]
    for j in loop(count):
        line[j] = dot(r, [s.columns[12 * j + 6 + c] for c in SIX])
    for _ in when(one.kind != FORCE):
        line[one.at - body.v] += row.scale[2 * (node.rows + i) + 1]
    wide = node.rows_end - node.rows
    for j in loop(wide):
        line[m + j] -= row.numbers[node.R + i * wide + j]
    if s.means:
        line[count + 12] = dot(r, Message(s.here).vector(LAMBDA)) - row.y[one.reading]
