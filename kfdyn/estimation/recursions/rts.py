"""The smoothed covariance in Rauch–Tung–Striebel form, for nodes where the Bryson–Frazier form cancels."""

from kfdyn.estimation.recursions.costate_covariances import CANCELLED, cancelled
from kfdyn.estimation.recursions.dense import Block, Identity, Turned, add_congruence, multiply
from kfdyn.estimation.recursions.model import ANY, MODEL, Node, outward
from kfdyn.estimation.recursions.rounding import bound
from kfdyn.estimation.recursions.triangular import cholesky, solve_lower, solve_lower_transposed
from kfdyn.sweeps import sweep
from kfdyn.sweeps.control import loop, when
from kfdyn.sweeps.functions import absolute
from kfdyn.sweeps.values import local


@sweep(tags=0)
def restore_cancelled(model, covariances, S, work):
    """Recompute the S of the nodes where it has lost digits, parents before children.

    ``work`` is for :func:`work_size` numbers.
    """
    model, known = MODEL.at(model), covariances
    for node in outward(model, ANY):
        for _ in when(node.parent >= 0):
            for _ in when(cancelled(node.square(known.P_plus), node.square(S))):
                smooth_by_parent(node, known, S, work)


def work_size(n):
    """Numbers that it works in, with at most n states to a node."""
    return 6 * n * n


def smooth_by_parent(node, known, S, work):
    """S(k) from S(p), without the difference of large numbers in P⁺ − P⁺Λ⁺P⁺.

    ::

        J = P⁺ φ* P(p)⁻¹,   W = Q(p) + Σ_siblings φ P⁺ φ*
        S(k) = (1 − Jφ) P⁺ (1 − Jφ)* + J (W + S(p)) J*

    A sum of two positive semi-definite terms: it keeps its digits under a diffuse prior. Needs P(p) invertible;
    where it is not, or so nearly not that J W J* loses as much, S(k) stays as it is. A child is
    cancelled only if its share φP⁺φ* is nearly all of P(p) in some direction, so a parent of r states has at most r
    such children and the sums over siblings stay O(children).
    """
    model, above = node.model, node.above()
    n, r, square = node.n, above.n, model.most * model.most
    L, J, E, W = (Block(work, i * square, *shape) for i, shape in enumerate(((r, r), (n, r), (n, n), (r, r))))
    phi, own = node.step(above), node.square(known.P_plus)
    for _ in when(cholesky(above.square(known.P), L, None, bound(r)) < 0):
        multiply(J, own, Turned(phi))
        for i in loop(n):
            solve_lower(L, J.line(i))
            solve_lower_transposed(L, J.line(i))
        multiply(E, J, phi, base=Identity(), sign=-1.0)
        noise, S_p = above.square(model.Q), above.square(S)
        for a in loop(r):
            for b in loop(r):
                W[a, b] = noise[a, b] + S_p[a, b]
        spare = work.part(4 * square)
        for at in loop(model.child_start[above.k + 1], model.child_start[above.k]):
            j = model.children[at]
            for _ in when(j != node.k):
                other = Node(model, ANY, j)
                add_congruence(W, other.step(above), other.square(known.P_plus), spare)
        for _ in when(rounds_off(J, W, own) == 0):
            S_k = node.square(S)
            S_k.clear()
            add_congruence(S_k, E, own, spare)
            add_congruence(S_k, J, W, spare)


def rounds_off(J, W, P_plus):
    """1 if J W J* rounds off more than two digits of P⁺: |J||W||J|* > 100 P⁺ somewhere; else 0.

    Two nearly parallel null directions, of Q(p) and of φP⁺φ*, make P(p) regular by a rounding error and J huge.
    """
    found = local(0)
    for i in loop(J.shape[0]):
        terms = local(0.0)
        for a in loop(J.shape[1]):
            for b in loop(J.shape[1]):
                terms += absolute(J[i, a]) * absolute(W[a, b]) * absolute(J[i, b])
        for _ in when(CANCELLED * terms > P_plus[i, i]):
            found.set(1)
    return found
