"""The page: filter and smoother of THEORY (2)–(5), once, over whatever algebra the nodes bring.

A *node* knows its prior and its outputs; what is done with an *output* h, a row of H, stands in :class:`Output`.
Outputs are scalar and measured one after the other (PART), or all of a node are one, whose row is H and whose variance
d is a matrix; what P, z and λ are made of is the nodes' affair: dense blocks, or articulated inertias and spatial
vectors, of floats, lanes, symbols. They may put P η into z beforehand, as SKO does; then the innovation is SKO's, and a
and λ are the same (THEORY section 3).

    node.prior()             variables P, z             Σ φP⁺φ* + M,  Σ φz⁺ + ξ; z None if only P is wanted, and P
                                                        None where gains are known
    node.outputs()           its h; backwards as well
    node.pass_on(P, z)       φP⁺φ*, φz⁺ into the parent's sum
    node.arriving()          variable λ⁺ = φ*λ(p), or Λ⁺ = φ*Λ(p)φ
    node.leave(λ)            λ of the node, for its children
"""


def filter_node(node):
    """The gather at one node: P, D, G, P⁺ and z, ε, ν, z⁺ (THEORY (2), (3); R86 8.2–8.9)."""
    state = node.prior()
    for h in node.outputs():
        P, z = state.get()
        if P is None:
            g, d = h.known()
        else:
            u = h.applied(P)
            d = h.variance(u)
            g = h.gain_of(u, d)
            P = h.refined(h.reduced(P, g, u), g, d)
        nu = None
        if z is not None:
            eps = h.innovation(z)
            z = h.corrected(z, g, eps)
            nu = h.residual(eps, d)
        h.keep(g, d, nu)
        state.set(P, z)
    node.pass_on(*state.get())


def smooth_node(node):
    """The scatter at one node: a = ν − g*λ⁺, λ = λ⁺ + h*a, the last measured first (THEORY (4); R86 8.10–8.13)."""
    state = node.arriving()
    for h in node.outputs(backwards=True):
        costate = state.get()
        a = h.response(costate)
        h.answer(a)
        state.set(h.excited(costate, a))
    node.leave(state.get())


def smooth_covariance(node):
    """The scatter of the covariance at one node: Λ = τ̄*Λ⁺τ̄ + h*d⁻¹h, τ̄ = 1 − g h (THEORY (5); R86 9.13–9.21).

    One projection after the other: the second cleans up the first.
    """
    state = node.arriving()
    for h in node.outputs(backwards=True):
        A = h.projected(state.get())
        state.set(h.weighed(A, h.remainder(A)))
    node.leave(state.get())


class Output:
    """An output h: its formulas, for letters that are numbers, vectors and matrices.

    It has ``row``, ``noise`` and ``measured``; in a scatter ``row``, ``gain`` and ``nu``, or ``precision``, which is
    d⁻¹. An output whose letters are places in memory does the same there, by methods of its own.
    """

    def applied(self, P):
        """u = P h*."""
        return P.applied(self.row)

    def variance(self, u):
        """d = h P h* + r."""
        return self.row.dot(u) + self.noise

    def gain_of(self, u, d):
        """g = P h*/d."""
        return (1.0 / d) * u

    def reduced(self, P, g, u):
        """P⁺ = P − g d g*."""
        return P.less(g, u)

    def refined(self, P, g, d):
        """P⁺ with the digits that rounding took from it: as it is."""
        return P

    def innovation(self, z):
        """ε = T − h z."""
        return self.measured - self.row.dot(z)

    def corrected(self, z, g, eps):
        """z⁺ = z + g ε."""
        return z.plus(g, eps)

    def residual(self, eps, d):
        """ν = ε/d."""
        return eps * (1.0 / d)

    def response(self, costate):
        """a = ν − g*λ⁺."""
        return self.nu - self.gain.dot(costate)

    def excited(self, costate, a):
        """λ = λ⁺ + h*a."""
        return self.row.added_to(costate, a)

    def projected(self, Lambda):
        """A = Λ⁺ − (Λ⁺g) h."""
        return Lambda.less(Lambda.applied(self.gain), self.row)

    def remainder(self, A):
        """v = g*A − d⁻¹h."""
        return A.turned(self.gain) - self.precision * self.row

    def weighed(self, A, v):
        """Λ = A − h*v, known to be symmetric."""
        return A.less_symmetric(self.row, v)

    def keep(self, g, d, nu):
        """Remember them; nothing where they are in their places."""

    def answer(self, a):
        """Tell a; nothing where it is in its place."""


class Straight:
    """Variables that change in no loop: what ``carried`` is, for a node of one output."""

    def __init__(self, *values):
        self.values = values

    def get(self):
        """The values now."""
        return self.values if len(self.values) > 1 else self.values[0]

    def set(self, *values):
        """Give them other values."""
        self.values = values
