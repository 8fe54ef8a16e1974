"""Gather and scatter of vectors, many T at once: z, ε, ν, z⁺ inward, λ⁺, a, λ, x̂ outward (THEORY (3), (4)).

All outputs of a node are one output of the page, whose gain and variance are known.
"""

from typing import Any, NamedTuple

from kfdyn.estimation.recursions.linalg.lanes import Batch
from kfdyn.estimation.recursions.linalg.matrices import Column
from kfdyn.estimation.recursions.node_update import Output, Straight, filter_node, smooth_node
from kfdyn.estimation.recursions.state_space import MODEL, inward, outward
from kfdyn.sweeps import sweep
from kfdyn.sweeps.control_flow import if_, if_else


class FilteredRows(NamedTuple):
    """Rows that are filtered, flat: T, ξ, η, and what becomes of them.

    ``xi_step`` and ``eta_step`` are 0 where one row serves all, −1 where there is none; z and z⁺ are filled where
    ``stored``.
    """

    T: Any
    xi: Any
    eta: Any
    xi_step: Any
    eta_step: Any
    stored: Any
    eps: Any
    nu: Any
    z: Any
    z_plus: Any


class SmoothedRows(NamedTuple):
    """Rows that are smoothed, flat; λ⁺, λ and x̂ are filled where ``stored``."""

    nu: Any
    eta: Any
    eta_step: Any
    stored: Any
    z_plus: Any
    a: Any
    costate_plus: Any
    costate: Any
    x: Any


@sweep(tags=2)
def filter_states(lanes, sizes, model, covariances, rows, share):
    """Run rows of T through the filter; fills ε, ν, and z, z⁺ where they are stored.

    ::

        z(k)  = Σ_j φ(k,j) z⁺(j) + ξ(k)
        ε(k)  = T − H z,   ν = D⁻¹ ε
        z⁺(k) = z + G ε + P⁺ η(k)

    All rows lie flat, one after the other; the workspace is a :class:`Gather`. Cost per node and vector: 2n² + 4nm
    flops, and 2n² more with η.
    """
    sweep = Gather(lanes, MODEL.at(model), covariances, rows, share.work)
    for _ in sweep.passes(share):
        for known in if_else(rows.xi_step >= 0):  # Σ φ z⁺ of the children plus ξ
            if known:
                sweep.flow.load(rows.xi, sweep.n_states, step=rows.xi_step)
            else:
                sweep.flow.clear()
        sweep.innovation.load(rows.T, sweep.n_outputs)
        for node in inward(sweep.model, sizes):
            filter_node(Filtered(sweep, node))
        sweep.innovation.store(rows.eps, sweep.n_outputs)
        sweep.residual.store(rows.nu, sweep.n_outputs)


@sweep(tags=2)
def smooth_costates(lanes, sizes, model, covariances, rows, share):
    """Run rows of ν through the smoother; fills a, and λ⁺, λ, x̂ where they are stored.

    ::

        λ⁺(k) = φ*(p(k),k) λ(p(k))
        a(k)  = ν − G*(λ⁺ + η)
        λ(k)  = λ⁺ + η + H* a
        x̂(k)  = z⁺ + P⁺ λ⁺

    Rows lie flat, as in the filter; the workspace is a :class:`Scatter`. Cost per node and vector: 2n² + 4nm flops, and
    2n² more for x̂.
    """
    sweep = Scatter(lanes, MODEL.at(model), covariances, rows, share.work)
    for _ in sweep.passes(share):
        sweep.rate.load(rows.nu, sweep.n_outputs)
        for node in outward(sweep.model, sizes):
            smooth_node(Smoothed(sweep, node))
        sweep.rate.store(rows.a, sweep.n_outputs)


class States(Batch):
    """A sweep of vectors: the model, what is known of it, the rows, and the workspace."""

    def __init__(self, lanes, model, known, rows, work):
        self.model, self.covariances, self.given = model, known, rows
        self.n_states, self.n_outputs = model.state[model.nodes], model.output[model.nodes]
        super().__init__(lanes, work, self.n_states, self.n_outputs, model.most)


class Gather(States):
    """z of every node; T, which becomes ε; ν; η and z⁺ of one node."""

    @staticmethod
    def layout(states, outputs, n):
        """Return the layout for that many in all, and at most n states to a node."""
        return {"flow": states, "known": n, "innovation": outputs, "residual": outputs, "ahead": n}


class Scatter(States):
    """λ of every node; η of one; ν, which becomes a."""

    @staticmethod
    def layout(states, outputs, n):
        """Return the layout for that many in all, and at most n states to a node."""
        return {"flow": states, "known": n, "rate": outputs}


class Place:
    """A node of the sweep: its part of what flows."""

    def __init__(self, sweep, node):
        self.sweep, self.node = sweep, node
        self.own, self.known = node.states(sweep.flow), node.one_state(sweep.known)

    @property
    def P_plus(self):
        """P⁺."""
        return self.node.square(self.sweep.covariances.P_plus)

    def above(self):
        """φ, and what flows at the parent."""
        above = self.node.above()
        return self.node.step(above), above.states(self.sweep.flow)

    def store(self, numbers, rows, base=None):
        """Write numbers of the node's states to the caller's rows, added to those of ``base`` if given."""
        numbers.store(rows, self.sweep.n_states, self.node.state, base)

    def outputs(self, backwards=False):
        """All outputs as one."""
        yield Outputs(self)


class Filtered(Place):
    """A node in the gather."""

    def prior(self):
        """z; the covariances are known."""
        return Straight(None, self.own)

    def pass_on(self, P, ahead):
        """z⁺ + P⁺η, kept, and φ times it into the parent's sum."""
        rows = self.sweep.given
        for _ in if_(rows.eta_step >= 0):
            self.known.load(rows.eta, self.sweep.n_states, self.node.state, rows.eta_step)
            ahead.multiply_turned(self.P_plus, self.known, base=ahead)
        for _ in if_(rows.stored != 0):
            self.store(self.own, rows.z)
            self.store(ahead, rows.z_plus)
        for _ in if_(self.node.parent >= 0):
            phi, above = self.above()
            above.multiply(phi, ahead, base=above)


class Smoothed(Place):
    """A node in the scatter."""

    def arriving(self):
        """λ⁺ + η; λ⁺ and x̂ are kept."""
        rows, own, n_states, at = self.sweep.given, self.own, self.sweep.n_states, self.node.state
        self.costate_plus()
        for _ in if_(rows.stored != 0):
            self.store(own, rows.costate_plus)
            self.known.multiply_turned(self.P_plus, own)
            self.store(self.known, rows.x, base=rows.z_plus)
        for _ in if_(rows.eta_step >= 0):
            self.known.load(rows.eta, n_states, at, rows.eta_step)
            own.add(self.known)
        return Straight(own)

    def costate_plus(self):
        """λ⁺ = φ*λ(p), 0 at a root."""
        for inner in if_else(self.node.parent >= 0):
            if inner:
                phi, above = self.above()
                self.own.multiply_turned(phi, above)
            else:
                self.own.clear()

    def leave(self, costate):
        """λ, kept; its children find it where it is."""
        for _ in if_(self.sweep.given.stored != 0):
            self.store(costate, self.sweep.given.costate)


class Outputs(Output):
    """The outputs of a node as one: its row is H, its gain G, its variance D = L L*; T becomes ε, and ν becomes a."""

    def __init__(self, place):
        self.sweep, self.node, self.covariances = place.sweep, place.node, place.sweep.covariances
        self.H, self.gain = self.node.H, self.node.gain(self.covariances.G)

    def known(self):
        """G and D, by its factor."""
        return self.gain, self.node.among(self.covariances.L)

    def innovation(self, z):
        """ε = T − H z, 0 where T is missing."""
        eps = self.node.outputs(self.sweep.innovation)
        eps.multiply(self.H, z, base=eps, sign=-1.0)
        eps.erase(Column(self.covariances.seen, self.node.output, self.node.m))
        return eps

    def corrected(self, z, G, eps):
        """z⁺ = z + G ε, in a place of its own."""
        ahead = self.node.one_state(self.sweep.ahead)
        ahead.multiply(G, eps, base=z)
        return ahead

    def residual(self, eps, L):
        """ν = D⁻¹ ε."""
        nu = self.node.outputs(self.sweep.residual)
        nu.copy(eps)
        nu.solve(L)
        return nu

    def response(self, costate):
        """a = ν − G*λ."""
        a = self.node.outputs(self.sweep.rate)
        a.multiply_turned(self.gain, costate, base=a, sign=-1.0)
        return a

    def excited(self, costate, a):
        """λ⁺ + H* a."""
        costate.multiply_turned(self.H, a, base=costate)
        return costate
