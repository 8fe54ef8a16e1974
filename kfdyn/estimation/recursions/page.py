"""The page: filter and smoother of THEORY (2)–(5), once, over whatever algebra the nodes bring.

A *node* knows its prior and its outputs, an *output* h its row of H, its noise, its measurement. Outputs are scalar
and measured one after the other (PART), or all of a node are one, whose row is H and whose variance d is a matrix; what
P, z and λ are made of is the nodes' affair: dense blocks, or articulated inertias and spatial vectors, of floats,
lanes, symbols. They may put P η into z beforehand, as SKO does; then the innovation is SKO's, and a and λ are the same
(THEORY section 3).

    node.prior()             variables P, z             Σ φP⁺φ* + M,  Σ φz⁺ + ξ; z None if only P is wanted, and P
                                                        None where gains are known: then h.gain, h.variance
    node.outputs()           its h; backwards as well
    node.pass_on(P, z)       φP⁺φ*, φz⁺ into the parent's sum
    P.applied(h), P.less(g, u), z.plus(g, ε)            P h*, P − g u*, z + g ε
    node.arriving()          variable λ⁺ = φ*λ(p)
    node.leave(λ)            λ of the node, for its children
    h.refined(P⁺, g, d)      P⁺ with the digits that rounding took from it; as it is where h is an :class:`Output`
    Λ.applied(g), Λ.less(u, h), A.turned(g), A.less_symmetric(h, v)     Λg, Λ − u h, g*A, A − h*v known to be symmetric
    h.row.dot(x), h.row.added_to(λ, a), h.noise, h.measured, h.keep(g, d, nu), h.gain, h.nu, h.answer(a),
    h.precision              d⁻¹
"""


def filter_node(node):
    """The gather at one node: P, D, G, P⁺ and z, ε, ν, z⁺ (THEORY (2), (3); R86 8.2–8.9)."""
    state = node.prior()
    for h in node.outputs():
        P, z = state.get()
        g, d, P = (h.gain, h.variance, None) if P is None else measure(h, P)
        nu = None
        if z is not None:
            eps, z = innovate(h, g, z)
            nu = eps * (1.0 / d)
        h.keep(g, d, nu)
        state.set(P, z)
    node.pass_on(*state.get())


def measure(h, P):
    """One scalar measurement: its gain g = P h*/d, its variance d = h P h* + r, and P⁺ = P − g d g*."""
    u = P.applied(h.row)
    d = h.row.dot(u) + h.noise
    g = (1.0 / d) * u
    return g, d, h.refined(P.less(g, u), g, d)


def innovate(h, g, z):
    """ε = T − h z, and z⁺ = z + g ε."""
    eps = h.measured - h.row.dot(z)
    return eps, z.plus(g, eps)


def smooth_node(node):
    """The scatter at one node: a = ν − g*λ⁺, λ = λ⁺ + h*a, the last measured first (THEORY (4); R86 8.10–8.13)."""
    state = node.arriving()
    for h in node.outputs(backwards=True):
        a, costate = respond(h, state.get())
        h.answer(a)
        state.set(costate)
    node.leave(state.get())


def respond(h, costate):
    """a = ν − g*λ⁺ and λ⁺ + h*a."""
    a = h.nu - h.gain.dot(costate)
    return a, h.row.added_to(costate, a)


def smooth_covariance(node):
    """The scatter of the covariance at one node: Λ⁺ = φ*Λ(p)φ arrives, Λ leaves (THEORY (5); R86 9.13–9.21)."""
    state = node.arriving()
    for h in node.outputs(backwards=True):
        state.set(weigh(h, state.get()))
    node.leave(state.get())


def weigh(h, Lambda):
    """Λ = τ̄*Λ⁺τ̄ + h*d⁻¹h with τ̄ = 1 − g h, one projection after the other: the second cleans up the first."""
    A = Lambda.less(Lambda.applied(h.gain), h.row)
    v = A.turned(h.gain) - h.precision * h.row
    return A.less_symmetric(h.row, v)


class Output:
    """An output of which P⁺ is taken as it comes."""

    def refined(self, P, g, d):
        """As it is."""
        return P


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
