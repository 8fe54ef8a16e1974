"""The modes of a body, measured before its hinge: n + 6 states, of which only the six at the hinge are passed on.

A mode is an output whose row of H is a unit row, so that P h* is a row of P: the filter and the smoother of
:mod:`kfdyn.estimation.recursions.page` are an elimination in place. Rows of P from the diagonal on stand in the
workspace; as a mode is measured, its gain takes the place of its row and ν that of z, and then its acceleration that.
"""

from kfdyn.dynamics.recursions.articulated import ROUNDING
from kfdyn.multibody.recursions.bending import OWN
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.control import carried, down, loop


class Modes:
    """The modes of a body: n states beside its six."""

    def __init__(self, filter_, body):
        self.filter, self.body = filter_, body
        self.flex = flex = filter_.bending.flex(body)
        self.n, self.wide = flex.modes, flex.modes + 6
        self.rows = filter_.bending.kept.part(flex.rows)
        self.z = self.rows.part(self.n * self.wide)
        self.before = self.z.part(self.n + OWN.width)

    def row(self, i):
        """Row i of P, and then the gain of mode i."""
        return self.rows.part(i * self.wide)

    def six(self, i):
        """What the hinge sees of it."""
        row = self.row(i)
        return Spatial.of([row[self.n + k] for k in range(6)])

    def measured(self, backwards=False):
        """The modes that are measured: all."""
        yield from down(self.n) if backwards else loop(self.n)

    def met(self, i):
        """Modes that mode i changes when it is measured, P(k, i), and the entry from which on row k is to be kept."""
        row = self.row(i)
        for k in loop(self.n, i + 1):
            yield k, row[k], k

    def prior(self):
        """P and z at the hinge: what the attachments passed on, and M_m, ξ."""
        slot, own = self.filter.slots[self.body.arrives], OWN.rows(self.z.part(self.n))[0]
        return carried(slot.P.plus_body(own.moment, own.first, self.body.mass), slot.z + own.xi)

    def filtered(self):
        """P and z that the modes leave to the hinge: d = P(i, i), g = P(·, i)/d, P − g d g*, z + g ε one by one."""
        for i in loop(self.n):
            self.before[i] = self.row(i)[i]
        state = self.prior()
        for i in self.measured():
            row, u, (P, z) = self.row(i), self.six(i), state.get()
            d, eps = row[i], self.filter.row.tau[self.flex.v + i] - self.z[i]
            self.filter.watch(d - ROUNDING * self.before[i])  # rounding is a part of the d of before
            inverse = 1.0 / d
            for k, beside, first in self.met(i):
                other, factor = self.row(k), inverse * beside
                for l in loop(self.wide, first):
                    other[l] -= factor * row[l]
                self.z[k] += eps * factor
            g = inverse * u
            state.set(P.less(g, u).now(), z + eps * g)
            for k in loop(self.wide, i + 1):
                row[k] = inverse * row[k]
            self.z[i] = eps * inverse
        return state.get()

    def smoothed(self):
        """Accelerations a = ν − g*λ at λ of the body behind its hinge, the last measured first."""
        costate = self.filter.bodies[self.body.t].eta
        for i in self.measured(backwards=True):
            row, total = self.row(i), carried(self.six(i).dot(costate))
            for k in loop(self.n, i + 1):
                total.set(total.get() + row[k] * self.z[k])
            self.z[i] = self.z[i] - total.get()
            self.filter.row.a[self.flex.v + i] = self.z[i]
