"""A scalar output as the Riccati gather meets it: P, its row h, and what becomes of them in memory."""

from kfdyn.estimation.recursions.linalg.matrices import Column, add_scaled, combine, dot, subtract_outer, subtract_pair
from kfdyn.estimation.recursions.linalg.tolerances import bound, flush
from kfdyn.estimation.recursions.node_update import Output
from kfdyn.sweeps.control_flow import if_, loop
from kfdyn.sweeps.values import any_lanes, not_, now, where
from kfdyn.sweeps.variables import local


class ScalarOutput(Output):
    """A row h of H and its noise r, with room for u = P h* and for its gain; P⁺ may be in the place of P."""

    def __init__(self, h, r, gain, P_plus, scratch):
        self.h, self.noise, self.gain, self.P_plus = h, r, gain, P_plus
        self.u = Column(scratch, 0, h.size, h.known)

    def applied(self, P):
        """u = P h*."""
        combine(self.u, self.h, P)
        return self.u

    def variance(self, u):
        """d = h u + r."""
        return dot(self.h, u) + self.noise

    def gain_of(self, u, d):
        """g = u/d."""
        add_scaled(self.gain, None, 1.0 / d, u)
        return self.gain

    def reduced(self, P, g, u):
        """P⁺ = P − u g*."""
        subtract_outer(self.P_plus, P, u, g)
        return self.P_plus


class Measurement(ScalarOutput):
    """Output a of a node, whose variance must be more than rounding: ``d``, which is then kept."""

    def __init__(self, node, a, h, r, gain, scratch):
        super().__init__(h, r, gain, node.P_plus, scratch)
        self.node, self.a, self.before, self.scale = node, a, node.gather.before, local(r)

    def applied(self, P):
        """u = P h*; variances before the measurement, and the size of what d is a sum of, are kept."""
        for i in loop(self.h.size):
            self.before[i] = P[i, i]
            self.scale += self.h[i] * self.h[i] * self.before[i]
        return super().applied(P)

    def variance(self, u):
        """d = h u + r, if that is more than rounding."""
        d = local(super().variance(u))
        low = not_(d > bound(self.h.size) * self.scale)
        for _ in if_(any_lanes(low), likely=False):
            self.node.fail(self.a, low)
            d.set(where(low, 1.0, d))
        self.d = now(d)
        return self.d

    def refined(self, P, g, d):
        """P⁺ as P − g u* would be without rounding.

        B = P − u u*/d loses what is small against P when r ≪ d. Then one step of refinement with the residual
        δ = B h* − r g, which is zero in exact arithmetic, brings it back (the Joseph form's virtue at the price of a
        rank-two correction): P⁺ = B − δ g* − g δ* + (hδ) g g*.
        """
        r, h, u = self.noise, self.h, self.u
        lossy = not_(r > 0.01 * d)
        for _ in if_(any_lanes(lossy)):
            combine(u, h, P)
            add_scaled(u, u, -r, g)
            add_scaled(u, u, -0.5 * dot(h, u), g)  # δ − κ g / 2: the correction is then u g* + g u*
            u.keep(lossy)
            subtract_pair(P, u, g)
            flush(self.before, P, r == 0.0)
        return P
