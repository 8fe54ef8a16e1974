"""The smoothed covariance in Rauch–Tung–Striebel form (RTS), for nodes where the Bryson–Frazier form cancels."""

from kfdyn.estimation.recursions.costate_covariances import cancelled
from kfdyn.estimation.recursions.linalg.matrices import Block, Column, Identity, Turned, add_congruence, multiply
from kfdyn.estimation.recursions.linalg.tolerances import EPS, bound
from kfdyn.estimation.recursions.linalg.triangular import cholesky, solve_lower, solve_lower_transposed
from kfdyn.estimation.recursions.state_space import ANY, MODEL, Node, outward
from kfdyn.sweeps import sweep
from kfdyn.sweeps.control_flow import if_, loop
from kfdyn.sweeps.functions import maximum, sqrt
from kfdyn.sweeps.values import where
from kfdyn.sweeps.variables import local
from kfdyn.sweeps.workspace import Workspace


@sweep(tags=0)
def restore_cancelled(model, covariances, Lambda, S, errors, work):
    """Recompute the S of the nodes where it has lost digits, parents before children, wherever that rounds off less.

    ``errors`` (Σn,), 0 before, is filled at these nodes: S_ij is known to about ε errors_i errors_j. ``work`` is for a
    :class:`ByParent`.
    """
    model, known = MODEL.at(model), covariances
    for node in outward(model, ANY):
        for _ in if_(node.parent >= 0):
            for _ in if_(cancelled(node.square(known.P_plus), node.square(S))):
                smooth_by_parent(node, known, Lambda, S, errors, work)


def smooth_by_parent(node, known, Lambda, S, errors, work):
    """Take every entry of S(k) from that of the two forms which rounds off less.

    Λ(p) may have lost digits on its way from the root, of which the bound for P⁺ − P⁺Λ⁺P⁺ knows nothing. That shows
    where the forms differ by more than the other one rounds off; where they differ by less, a child is told so.
    """
    n, above, own = node.n, node.above(), node.square(known.P_plus)
    S_k, error, form = node.square(S), Column(errors, node.state, n), ByParent(node, known, S, errors, work)
    for i in loop(n):
        error[i] = sqrt(rounding_of_difference(own, node.step(above), above.square(Lambda), form.row, i))
    for _ in if_(form.regular()):
        form.fill()
        form.weigh()
        for i in loop(n):
            for j in loop(i + 1):
                new, known_to = form.S[i, j], form.error[i] * form.error[j]
                apart = abs(S_k[i, j] - new) > bound(n + above.n) * known_to
                for _ in if_(apart | (known_to < error[i] * error[j])):
                    S_k[i, j] = new
                    S_k[j, i] = new
        for i in loop(n):
            gap = abs(S_k[i, i] - form.S[i, i])
            error[i] = where(gap > 0.0, maximum(error[i], sqrt(gap / EPS)), form.error[i])


class ByParent(Workspace):
    """S(k) from S(p), without the difference of large numbers in P⁺ − P⁺Λ⁺P⁺.

    ::

        J = P⁺ φ* P(p)⁻¹,   W = Q(p) + S(p) + Σ_siblings φ P⁺ φ*
        S(k) = E P⁺ E* + J W J*,   E = 1 − Jφ

    A sum of two positive semi-definite terms: it keeps its digits under a diffuse prior. Needs P(p) invertible. A child
    is cancelled only if its share φP⁺φ* is nearly all of P(p) in some direction, so a parent of r states has at most r
    such children and the sums over siblings stay O(children).
    """

    def __init__(self, node, known, S, errors, work):
        self.node, self.known, self.above = node, known, node.above()
        n, r, most = node.n, self.above.n, node.model.most
        super().__init__(work, most)
        shapes, sizes = ((r, r), (n, r), (n, n), (r, r), (n, n)), (r, r, r, n)
        self.L, self.J, self.E, self.W, self.S = (
            Block(self.blocks, i * most * most, *shape) for i, shape in enumerate(shapes)
        )
        self.scale, self.row, self.error_p, self.error = (
            Column(self.lines, i * most, size) for i, size in enumerate(sizes)
        )
        self.phi, self.own = node.step(self.above), node.square(known.P_plus)
        self.S_p, self.errors = self.above.square(S), errors

    @staticmethod
    def layout(n):
        """Return the layout for at most n states to a node."""
        return {"blocks": 5 * n * n, "half": 2 * n * n, "lines": 4 * n}

    def regular(self):
        """Tell whether P(p) is invertible, and leave its lower factor behind."""
        return cholesky(self.above.square(self.known.P), self.L, None, bound(self.above.n)) < 0

    def solve(self, x):
        """x ← P(p)⁻¹ x."""
        solve_lower(self.L, x)
        solve_lower_transposed(self.L, x)

    def fill(self):
        """S(k), and what it is made of."""
        model, above, J, E, W = self.node.model, self.above, self.J, self.E, self.W
        multiply(J, self.own, Turned(self.phi))
        for i in loop(self.node.n):
            self.solve(J.line(i))
        multiply(E, J, self.phi, base=Identity(), sign=-1.0)
        noise = above.square(model.Q)
        for a in loop(above.n):
            for b in loop(above.n):
                W[a, b] = noise[a, b] + self.S_p[a, b]
        for at in loop(model.child_start[above.k + 1], model.child_start[above.k]):
            j = model.children[at]
            for _ in if_(j != self.node.k):
                other = Node(model, ANY, j)
                add_congruence(W, other.step(above), other.square(self.known.P_plus), self.half)
        self.S.clear()
        add_congruence(self.S, E, self.own, self.half)
        add_congruence(self.S, J, W, self.half)

    def weigh(self):
        """Leave the bounds of rounding behind: ``error`` (n,)."""
        for a in loop(self.above.n):
            self.scale[a] = deviation(self.above.square(self.known.P), a)
            e = self.errors[self.above.state + a]
            self.error_p[a] = where(e > 0.0, e, deviation(self.above.square(self.known.P_plus), a))
        for i in loop(self.node.n):
            self.error[i] = sqrt(self.rounding(i))

    def rounding(self, i):
        """Bound the rounding of S_ii, in units of ε.

        P(p) is known to δP_ab ≈ ε s_a s_b, s_a² = P(p)_aa, and J to δJ = J δP P(p)⁻¹. The form is stationary in J, but
        for its term J S(p) J*; besides there are the roundings of the products, and what S(p) is known to::

            |E||P⁺||E|* + |J||W||J|* + 2|J|s s*|P(p)⁻¹S(p)J*| + (|J|e(p))²

        Two nearly parallel null directions, of Q(p) and of φP⁺φ*, make P(p) regular by a rounding error and J huge. And
        a small body on a long lever is a point to its parent, whose P(p) is singular but for its last digits.
        """
        r, J, row = self.above.n, self.J, self.row
        for a in loop(r):
            row[a] = total(r, lambda b: self.S_p[a, b] * J[i, b])  # noqa: B023
        self.solve(row)
        of_J = 2.0 * reach(J, i, lambda a: self.scale[a]) * total(r, lambda a: abs(row[a]) * self.scale[a])
        inherited = reach(J, i, lambda a: self.error_p[a])
        return terms(self.E, self.own, i) + terms(J, self.W, i) + of_J + inherited * inherited


def rounding_of_difference(P_plus, phi, Lambda, row, i):
    """Bound the rounding of (P⁺ − P⁺Λ⁺P⁺)_ii, Λ⁺ = φ*Λ(p)φ, in units of ε: P⁺ + |P⁺||φ|*|Λ||φ||P⁺|."""
    for a in loop(phi.shape[0]):
        row[a] = reach(P_plus, i, lambda l: phi[a, l])  # noqa: B023
    size = total(phi.shape[0], lambda a: row[a] * total(phi.shape[0], lambda b: abs(Lambda[a, b]) * row[b]))
    return abs(P_plus[i, i]) + size


def total(count, number):
    """Σ_a number(a)."""
    s = local(0.0)
    for a in loop(count):
        s += number(a)
    return s


def terms(A, S, i):
    """(|A||S||A|*)_ii: the size of what row i of A S A* is a sum of."""
    return reach(A, i, lambda a: reach(A, i, lambda b: S[a, b]))


def reach(A, i, x):
    """(|A||x|)_i."""
    return total(A.shape[1], lambda a: abs(A[i, a]) * abs(x(a)))


def deviation(P, i):
    """√P_ii, 0 where rounding has made it negative."""
    return sqrt(where(P[i, i] > 0.0, P[i, i], 0.0))
