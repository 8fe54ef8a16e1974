"""log det 𝓜 and its gradient: what the filter finds at each dof, and what the smoother's Λ makes of it.

    log det 𝓜 = Σ log d,      ∂ log det 𝓜/∂q_i = 2 tr(X_i* Λ⁺P⁺),      X = [[ω~, v~], [0, ω~]],  H_i* = [ω; v]

A hinge of several screws is a chain of hinges of one dof on mass-less bodies (PART): measured from the outermost on,
P⁺ behind screw i and Λ⁺ before it are those of its mass-less body. The columns of a ball or a free hinge are fixed in
the child and move along with it: there P⁺ is the one behind all dofs, and Λ⁺ the one that arrives. THEORY section 10.
"""

from kfdyn.dynamics.recursions.articulated import Filter, Output
from kfdyn.estimation.recursions import node_update
from kfdyn.estimation.recursions.node_update import smooth_covariance
from kfdyn.multibody.recursions.given import Q
from kfdyn.multibody.recursions.hinges import zeros
from kfdyn.multibody.recursions.outward import axis_of
from kfdyn.multibody.recursions.robot import REVOLUTE, SCREWS, dofs, outward
from kfdyn.multibody.recursions.robot_entry import entry
from kfdyn.multibody.recursions.spatial import Articulated, Reduced, Spatial
from kfdyn.sweeps.algebra import Mat3, Sym3, Vec3
from kfdyn.sweeps.control_flow import if_, if_else, loop_vars
from kfdyn.sweeps.entry import Given
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.records import Record


class Variance(Output):
    """An output that tells its innovation's variance."""

    def keep(self, g, d, nu):
        """As always, and d for the caller."""
        super().keep(g, d, nu)
        self.node.filter.row.d[self.i] = d


class Variances(Filter):
    """A filter that tells d of every dof."""

    output = Variance


class Behind(Output):
    """An output that keeps P⁺, and its gain as the body itself sees it."""

    def refined(self, P, g, d):
        """As it is."""
        self.node.filter.behind[self.i].P = P.now()
        return P

    def keep(self, g, d, nu):
        """The gain is not shifted."""
        self.lever = None
        super().keep(g, d, nu)


class CostateCovariance(Articulated):
    """Λ = [[J, B], [B*, C]] of a motion at a point."""

    def like(self, numbers):
        """Another Λ."""
        return CostateCovariance(*numbers)

    def motion_shifted(self, l):
        """φ*Λφ: as an inertia is shifted the other way, with angular and linear exchanged."""
        turned = Articulated(self.C, self.B.T, self.J).shifted(-l)
        return CostateCovariance(turned.C, turned.B.T, turned.J)

    def less(self, u, h):
        """Λ − u h, half of what the page asks for."""
        return HalfProjected(self, u, h)

    def axial_of_product(self, P):
        """t with tr(X*ΛP) = H t for every column H* = [ω; v] of X: each block's axial vector, Σ row × column."""
        A, B, C, J, K, L = _full(self.J), self.B, _full(self.C), _full(P.J), P.B, _full(P.C)
        turn = slide = Vec3.zero()
        for k in range(3):
            for row, column in (
                (J.row(k), A.column(k)), (K.column(k), B.column(k)), (K.row(k), B.row(k)), (L.row(k), C.column(k))
            ):  # fmt: skip
                turn = turn.plus_cross(row, column)
            for row, column in ((K.row(k), A.column(k)), (L.row(k), B.column(k))):
                slide = slide.plus_cross(row, column)
        return Spatial(turn, slide)


def _full(S: Sym3) -> Mat3:
    xx, xy, xz, yy, yz, zz = S.s
    return Mat3(xx, xy, xz, xy, yy, yz, xz, yz, zz)


class HalfProjected:
    """Λ − u h with u = Λg, not symmetric yet."""

    def __init__(self, Lambda, u, h):
        self.Lambda, self.u, self.h = Lambda, u, h

    def turned(self, g):
        """g*(Λ − u h) = u* − (g·u) h."""
        return self.u - g.dot(self.u) * self.h

    def less_symmetric(self, h, v):
        """Λ − u h − h*v."""
        once = Reduced(self.Lambda, self.u, self.h).now()
        return CostateCovariance(*Reduced(once, h, v).numbers())


#: P⁺ of each dof, and Λ of each body; that of the world is 0.
BEHIND = Record(P=Articulated)
SPREAD = Record(Lambda=CostateCovariance)


class Dof(node_update.Output):
    """One dof as an output: what the page wants of it."""

    def __init__(self, row, kept):
        self.row, self.gain, self.precision = row, kept.gain, kept.inverse


class Spread:
    """A body as a node of the scatter of Λ, which tells the gradient on its way."""

    def __init__(self, sweep, body):
        self.sweep, self.body = sweep, body

    def arriving(self):
        """Λ⁺ = φ*Λ(p)φ."""
        sweep, body = self.sweep, self.body
        self.state = loop_vars(sweep.spread[body.parent].Lambda.motion_shifted(sweep.bodies[body.t].l))
        return self.state

    def outputs(self, backwards):
        """The dofs, the innermost first: it was measured last."""
        sweep, body, none = self.sweep, self.body, zeros(self.sweep.robot)
        turned, h = loop_vars(self._turned(body.v)), loop_vars(Spatial(none, none))
        for i in dofs(sweep.robot, body):
            for _ in if_(body.kind <= SCREWS):
                turned.set(self._turned(i))
            for revolute in if_else(body.kind == REVOLUTE):  # what follows is long, and written once for both
                h.set(Spatial(axis_of(body.t, sweep.work), none) if revolute else sweep.rows_of_H[i].h)
            sweep.row.gradient[i] = 2.0 * h.get().dot(turned.get())
            yield Dof(h.get(), sweep.dofs[i])

    def _turned(self, i):
        return self.state.get().axial_of_product(self.sweep.behind[i].P)

    def leave(self, Lambda):
        """Λ, for the children."""
        self.sweep.spread[self.body.t].Lambda = Lambda


class Gradient(Filter):
    """A filter that keeps P⁺, the outermost dof of a hinge being measured first, and the scatter of Λ behind it."""

    output, outermost_first = Behind, True

    def __init__(self, robot, row, work):
        super().__init__(robot, row, work)
        self.behind = self.take_rows(BEHIND, robot.nv + 1)  # one more, where a body without dofs may look
        self.spread = self.take_rows(SPREAD, robot.n + 1)

    def begin(self):
        """Slot 0, and the world, which does not move."""
        super().begin()
        clear(self.spread.memory, SPREAD.width)


def innovation_variances(f):
    """d of every dof, whose product is det 𝓜 (SKO "determinant"): outward sweep and gather."""
    f.sweep_outward(moving=False)
    return f.gather()


def logdet_gradient(f):
    """∂ log det 𝓜/∂q, O(N): the gather, and the scatter of Λ."""
    f.sweep_outward(moving=False)
    least = f.gather()
    for body in outward(f.robot):
        smooth_covariance(Spread(f, body))
    return least


VARIANCES = entry(innovation_variances, Variances, [Q], [Given("d", ("nv",))])
LOGDET_GRADIENT = entry(logdet_gradient, Gradient, [Q], [Given("gradient", ("nv",))])
