"""The gather of the square-root form: arrays made triangular by Householder reflections (THEORY section 14).

It does not stand on the page, and cannot: the page is written in P h*, P − g u*, φP⁺φ* *added* to a parent's sum. A
root has no such sum. Its children are more columns of one array, a measurement and a prediction are the same act on it,
and what makes it exact, that nothing is ever subtracted, is that none of these steps exists. An algebra whose ``less``
reflects would carry the page's words and none of its meaning. What the two share is what they find: P, D, G, P⁺, which
the filter of vectors takes from either.
"""

from kfdyn.estimation.recursions.linalg.reflections import Array, Reflection, array_size, triangularise, whole
from kfdyn.estimation.recursions.linalg.root_columns import (
    Stored,
    absorb,
    blank,
    column_of,
    combined,
    largest_first,
    numbers_of,
    product,
    put_square,
)
from kfdyn.estimation.recursions.linalg.small_blocks import Row
from kfdyn.estimation.recursions.linalg.tolerances import EPS, scale
from kfdyn.estimation.recursions.square_root.layout import Roots
from kfdyn.estimation.recursions.square_root.node import absorb_product, copy, in_registers, put_product
from kfdyn.estimation.recursions.state_space import MODEL, inward
from kfdyn.sweeps.control_flow import down, if_, if_else, loop
from kfdyn.sweeps.functions import sqrt
from kfdyn.sweeps.jit import sweep
from kfdyn.sweeps.memory import LINE
from kfdyn.sweeps.trace_context import LANEWISE, arithmetic
from kfdyn.sweeps.values import not_, to_float, where
from kfdyn.sweeps.variables import local

#: An innovation below that part of its row's size, times the numbers in it, is rounding.
_ROUNDING = 4.0 * EPS


@sweep(tags=1)
def gather_roots(sizes, model, found, roots: Roots, work):
    """Fill P, P⁺, D and their roots, and G, of every node, leaves to roots.

    ::

        [ R^½   H P^½ ]      [ D^½      0     ]
        [  0    P^½   ]  →   [ G D^½   P⁺^½   ]          P(p)^½ ← [ P(p)^½   φ P⁺^½ ]

    All factors of P, Q, R and D are lower triangular, P⁺^½ is square. Rows that are not seen are zero in R^½, and left
    out: identity in L, zero in G. Returns −1, or the number of the output (stacked) whose innovation is no more than
    rounding. ``work`` holds :func:`gather_work` numbers. 4n³ + O(n²m) flops a node.
    """
    failed, model = local(-1), MODEL.at(model)
    for node in inward(model, sizes):
        copy(roots.own(roots.P, node), node.square(roots.Q))
    for node in inward(model, sizes, until=failed):
        if in_registers(node) and node.one:
            _measure_one(node, found, roots, failed)
        else:
            _measure_all(node, found, roots, work, failed)
        for _ in if_(node.parent >= 0):
            above = node.above()
            total, kept = roots.own(roots.P, above), roots.above(roots.before, node, above)
            for _ in if_(not_(roots.first[node.k])):
                copy(kept, total)
            _predict(node, above, roots.own(roots.P_plus, node), total, work)
    return failed


def gather_work(n, m):
    """Numbers that :func:`gather_roots` works in, with at most n states and m outputs to a node."""
    most = n + max(n, m)
    return array_size(most, most) + n * (n + 4) + m + 2 * LINE


@arithmetic(LANEWISE)
def _measure_one(node, found, roots, failed):
    """A scalar output in registers: one reflection, of the row (r, f = h P^½), along which P^½ goes."""
    S, own = roots.own(roots.P, node), roots.own(roots.P_plus, node)
    n, columns, h, r = node.n, S.columns(), node.H.numbers(0), node.among(roots.R)[0, 0]
    P, D, L, G = node.square(found.P), node.among(found.D), node.among(found.L), node.gain(found.G)
    put_square(P, columns)
    f = [_sum([h[i] * S[i, j] for i in range(j, n)]) for j in range(n)]
    for there in if_else(found.seen[node.output]):
        if there:
            d, head, v, right = largest_first(r, blank(n), f, columns)
            w, along = combined(v, right), Reflection(d, _sum([x * x for x in v]))
            size = sqrt(scale(r * r, node.H.line(0), P))
            for _ in if_(not_(along.length > _ROUNDING * (n + 1.0) * size)):
                failed.set(where(failed < 0, node.output, failed))
            t = along.share(head, w)
            right = [column - t * x for column, x in zip(right, v)]
            D[0, 0], L[0, 0] = along.square, along.length
            gain = (w + d * head) * (1.0 / where(along.square > 0.0, along.square, 1.0))
        else:
            u = combined(f, columns)
            right, gain, L[0, 0] = columns, blank(n), 1.0
            D[0, 0] = node.among(node.model.R)[0, 0] + _sum([x * y for x, y in zip(h, numbers_of(u, n))])
        Row.of(numbers_of(gain, n)).store(G.memory, 0)
        own.set_columns(right)
        put_square(node.square(found.P_plus), right)


def _sum(terms):
    """The sum in rounds."""
    while len(terms) > 1:
        terms = [terms[j] + terms[j + 1] if j + 1 < len(terms) else terms[j] for j in range(0, len(terms), 2)]
    return terms[0]


def _measure_all(node, found, roots, work, failed):
    """All outputs of a node in memory."""
    n, m, S, own = node.n, node.m, roots.own(roots.P, node), roots.own(roots.P_plus, node)
    P, D, L, G = node.square(found.P), node.among(found.D), node.among(found.L), node.gain(found.G)
    H, noise, seen = node.H, node.among(roots.R), found.seen.part(node.output)
    put_product(P, S, work)
    A = Array(work.aligned(), 1, m + n, m + n)
    size = A.spare.part(m + n)
    A.clear()
    for a in loop(m):
        total = local(0.0)
        for b in loop(m):
            A[a, b] = noise[a, b]
            total += noise[a, b] * noise[a, b]
        for j in loop(n):
            s = local(0.0)
            for i in loop(n):
                s += H[a, i] * S[i, j]
            A[a, m + j] = where(seen[a], s, 0.0)
        size[a] = _ROUNDING * sqrt(scale(total, H.line(a), P))
    for i in loop(n):
        for j in loop(n):
            A[m + i, m + j] = S[i, j]
    triangularise(A, m, (0, 0), m + n, lambda s: (m, m + n))
    for a in loop(m):
        for _ in if_(seen[a] & not_(A[a, a] > size[a] * to_float(n + m))):
            failed.set(where(failed < 0, node.output + a, failed))
        for b in loop(m):
            L[a, b] = where(b > a, 0.0, A[a, b])
        for _ in if_(not_(seen[a])):
            L[a, a] = 1.0
    for _ in if_(failed < 0):
        _innovations(node, P, D, L, seen)
        for i in loop(n):
            for a in down(m):  # G ← G D^½ D^-½
                s = local(A[m + i, a])
                for b in loop(m, a + 1):
                    s -= G[i, b] * L[b, a]
                G[i, a] = s / L[a, a]
    for i in loop(n):
        for j in loop(n):
            own[i, j] = A[m + i, m + j]
    own.clear_spare()
    put_product(node.square(found.P_plus), own, work)


def _innovations(node, P, D, L, seen):
    """D = L L* of what is seen and H P H* + R of the rest."""
    n, m, H, R = node.n, node.m, node.H, node.among(node.model.R)
    for a in loop(m):
        for b in loop(a + 1):
            s, t = local(R[a, b]), local(0.0)
            for c in loop(b + 1):
                t += L[a, c] * L[b, c]
            for _ in if_(not_(seen[a] & seen[b])):
                for i in loop(n):
                    for j in loop(n):
                        s += H[a, i] * P[i, j] * H[b, j]
            D[a, b] = where(seen[a] & seen[b], t, s)
            D[b, a] = where(seen[a] & seen[b], t, s)


def _predict(node, above, own, total, work):
    """P(p)^½ ← [P(p)^½  φ P⁺^½]."""
    n, r, phi = node.n, above.n, node.step(above)
    if in_registers(node):
        step = [column_of(phi.column(l)) for l in range(n)]
        total.set_columns(absorb(total.columns(), product(step, own.columns())))
        return
    step, work = Stored(work, 0, r, n, False), work.part(n * whole(r))
    copy(step, phi)
    absorb_product(total, step, own, total, work)
