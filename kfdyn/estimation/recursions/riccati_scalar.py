"""A scalar output as the Riccati gather meets it: P, its row h, and what becomes of them in memory."""

from kfdyn.estimation.recursions.dense import Column, add_scaled, combine, dot, subtract_outer, subtract_pair
from kfdyn.estimation.recursions.rounding import bound, flush
from kfdyn.sweeps.control import loop, when
from kfdyn.sweeps.values import local, no, now


class Covariance:
    """P, in memory; P⁺ is written where the node keeps it, which may be in its place."""

    def __init__(self, node, block):
        self.node, self.block = node, block

    def applied(self, row):
        """P h*."""
        return row.applied(self.block)

    def less(self, g, u):
        """P − g u*."""
        u.take(self.node.P_plus, self.block, g)
        return Covariance(self.node, self.node.P_plus)


class One:
    """One scalar output: its row, its noise r, and where its gain goes."""

    def __init__(self, node, a, h, r, gain, P, scratch):
        self.node, self.a, self.noise = node, a, r
        self.row, self.before = CheckedRow(self, h, gain, scratch), node.gather.before
        scale = local(r)
        for i in loop(h.size):
            self.before[i] = P[i, i]
            scale += h[i] * h[i] * self.before[i]
        self.scale = scale

    def variance(self, hu):
        """d = h u + r, if that is more than rounding."""
        d = local(hu + self.noise)
        for _ in when(no(d > bound(self.row.h.size) * self.scale), likely=False):
            self.node.fail(self.a)
            d.set(1.0)
        return now(d)

    def refined(self, P, g, d):
        """P⁺ as P − g u* would be without rounding.

        B = P − u u*/d loses what is small against P when r ≪ d. Then one step of refinement with the residual
        δ = B h* − r g, which is zero in exact arithmetic, brings it back (the Joseph form's virtue at the price of a
        rank-two correction): P⁺ = B − δ g* − g δ* + (hδ) g g*.
        """
        r, h, u = self.noise, self.row.h, self.row.u
        for _ in when(no(r > 0.01 * d)):
            combine(u, h, P.block)
            add_scaled(u, u, -r, g)
            add_scaled(u, u, -0.5 * dot(h, u), g)  # δ − κ g / 2: the correction is then u g* + g u*
            subtract_pair(P.block, u, g)
            for _ in when(r == 0.0):
                flush(self.before, P.block)
        return P

    def keep(self, g, d, nu):
        """The gain is where it belongs; the node keeps d."""
        self.node.kept(self, d)


class ScalarRow:
    """A row h of H, with room for u = P h* and for g."""

    def __init__(self, h, gain, scratch):
        self.h, self.gain, self.u = h, gain, Column(scratch, 0, h.size, h.known)

    def applied(self, P):
        """u = P h*."""
        combine(self.u, self.h, P)
        return Applied(self)

    def dot(self, x):
        """h u; of means, what they make of it."""
        return x.along(self.h)


class CheckedRow(ScalarRow):
    """A row of which h u + r is looked at."""

    def __init__(self, output, h, gain, scratch):
        super().__init__(h, gain, scratch)
        self.output = output

    def dot(self, x):
        """h u, to which the noise is added."""
        return Sum(self.output, super().dot(x))


class Sum:
    """h P h*, which with the noise is the variance of the innovation."""

    def __init__(self, output, value):
        self.output, self.value = output, value

    def __add__(self, noise):
        return self.output.variance(self.value)


class Applied:
    """u = P h*."""

    def __init__(self, row):
        self.row = row

    def __rmul__(self, inverse):
        """g = u/d."""
        add_scaled(self.row.gain, None, inverse, self.row.u)
        return self.row.gain

    def along(self, h):
        """h u."""
        return dot(h, self.row.u)

    def take(self, P_plus, P, g):
        """P⁺ = P − u g*."""
        subtract_outer(P_plus, P, self.row.u, g, True)
