"""The scatter of the co-state covariances: Λ⁺ and Λ from the roots to the leaves (THEORY (5)), and what needs no more.

That is the smoothed error covariance S, or the part of the score that does not depend on T (THEORY section 10).
"""

from typing import Any, NamedTuple

from kfdyn.estimation.recursions.costate_outputs import ScalarWeigh, VectorWeigh
from kfdyn.estimation.recursions.linalg.matrices import (
    Block,
    Column,
    negative_product,
    nothing,
    subtract_congruence,
    transposed_congruence,
)
from kfdyn.estimation.recursions.node_update import Straight, smooth_covariance
from kfdyn.estimation.recursions.riccati.settled import Settling
from kfdyn.estimation.recursions.state_space import MODEL, outward
from kfdyn.sweeps import sweep
from kfdyn.sweeps.control_flow import both, if_else, loop
from kfdyn.sweeps.values import to_int, where
from kfdyn.sweeps.variables import local
from kfdyn.sweeps.workspace import Workspace

#: What is wanted beside Λ: S; C = 𝓜⁻¹(k,k); C and the derivatives in φ and H.
SMOOTHED, INVERSE, SCORED = 0, 1, 2
CANCELLED = 0.01  # of P⁺: a smaller S is a difference that has lost two digits or more


class Scattered(NamedTuple):
    """Results of the scatter, stacked: Λ; S; C; −Λ(p)φP⁺, whose blocks begin at ``phi_at``, and −(CH − G*Λ⁺)P."""

    Lambda: Any
    S: Any
    C: Any
    phi: Any
    phi_at: Any
    H: Any


@sweep(tags=3)
def scatter_covariances(sizes, vectorial, wanted, model, covariances, found, work):
    """Fill Λ for every node and what is wanted with it; returns how many S have lost digits (see rts).

    ::

        Λ⁺(k) = φ* Λ(p) φ,   Λ(k) = τ̄* Λ⁺ τ̄ + H* D⁻¹ H,   S(k) = P⁺ − P⁺ Λ⁺ P⁺,   C(k) = D⁻¹ + G* Λ⁺ G

    ``vectorial`` None leaves vector outputs out; tiled ones are all vectors. ``found`` is a :class:`Scattered`, empty
    where nothing is wanted; ``work`` is for a :class:`Scatter`. Cost per node: 3n³ + O(n²m) flops, 4n³ more with S, 2n³
    with the score.
    """
    scatter = Scatter(MODEL.at(model), covariances, found, wanted, work)
    vectorial = vectorial if sizes.tiled is None else True
    single = vectorial is None or sizes.n is not None  # elsewhere it is not worth the time to compile it
    nodes = outward(scatter.model, sizes)
    for node in nodes if sizes.tiled is None else Settling(scatter, sizes).due(nodes):
        own = Weighed(scatter, node)
        own.arrive()
        for alone in if_else(both(node.m == 1, lambda own: own.seen[0], own)) if single else (False,):
            own.output = ScalarWeigh.of if alone else None if vectorial is None else VectorWeigh
            smooth_covariance(own)
    return scatter.lost


def cancelled(P_plus, S):
    """Tell whether some variance of S is so small a remainder of P⁺ that P⁺ − P⁺Λ⁺P⁺ has lost digits."""
    lost = nothing(S)
    for i in loop(P_plus.shape[0]):
        lost.set(where(S[i, i] < CANCELLED * P_plus[i, i], 1.0, lost))
    return lost != 0.0


class Scatter(Workspace):
    """The sweep: what it fills and where it works."""

    def __init__(self, model, known, found, wanted, work):
        super().__init__(work, model.most, model.most_outputs)
        self.model, self.known, self.found, self.wanted, self.lost = model, known, found, wanted, local(0)

    @staticmethod
    def layout(n, m):
        """Return the layout for at most n states and m outputs to a node."""
        return {"plus": n * n, "half": 2 * n * n, "scratch": 3 * n * m + 2 * n + m, "line": n}

    def lose(self, digits):
        """Count a node if digits of its S are lost."""
        self.lost += to_int(digits)

    # What :class:`~.riccati.settled.Settling` asks of a sweep.

    def follows(self, before, node):
        """Tell whether a node's input comes from the node before it."""
        return node.parent == before.k

    def edge(self, before, node):
        """The node whose φ leads from one to the other."""
        return node.k

    def given(self, node):
        """H, P⁺, L, G and what is seen."""
        known, n, m = self.known, node.n, node.m
        blocks = (self.model.H, node.H_at, m * n), (known.P_plus, node.Q_at, n * n), (known.L, node.R_at, m * m)
        return *blocks, (known.G, node.H_at, n * m), (known.seen, node.output, m)

    def filled(self, node):
        """Λ and what is wanted beside it."""
        found, n, m = self.found, node.n, node.m
        blocks = [(found.Lambda, node.Q_at, n * n)]
        if self.wanted == SMOOTHED:
            return *blocks, (found.S, node.Q_at, n * n)
        blocks.append((found.C, node.R_at, m * m))
        if self.wanted == SCORED:
            blocks += [(found.phi, found.phi_at[node.k], n * n), (found.H, node.H_at, m * n)]
        return blocks

    def settled(self, node):
        """Λ, and S if it is wanted."""
        squares = (self.found.Lambda, self.found.S) if self.wanted == SMOOTHED else (self.found.Lambda,)
        return [node.square(flat) for flat in squares]

    def resume(self, node):
        """Nothing: children ask their parent."""


class Weighed:
    """A node of the scatter; ``output`` makes what it is measured by, None if there is nothing."""

    def __init__(self, scatter, node):
        known, found = scatter.known, scatter.found
        self.scatter, self.node, self.scratch = scatter, node, scatter.scratch
        self.H, self.G, self.L = node.H, node.gain(known.G), node.among(known.L)
        self.seen = Column(known.seen, node.output, node.m)
        self.Lambda, self.plus = (
            node.square(found.Lambda),
            Block(scatter.plus, 0, node.n, node.n, node.known, node.tiled),
        )
        self.P_plus = node.square(known.P_plus)

    def arrive(self):
        """Λ⁺, and what of a node needs no more: S, or the derivative in φ."""
        scatter, node, plus, P_plus = self.scatter, self.node, self.plus, self.P_plus
        S = node.square(scatter.found.S) if scatter.wanted == SMOOTHED else None
        for inner in if_else(node.parent >= 0):
            if inner:
                above = node.above()
                half = transposed_congruence(plus, node.step(above), above.square(scatter.found.Lambda), scatter.half)
                if S is not None:
                    subtract_congruence(S, P_plus, plus, scatter.half)
                    scatter.lose(cancelled(P_plus, S))
                if scatter.wanted == SCORED:  # Λ(p)φP⁺
                    at = scatter.found.phi_at[node.k]
                    slope = Block(scatter.found.phi, at, above.n, node.n, node.known, node.tiled)
                    negative_product(slope, half, P_plus, scatter.half.part(above.n * node.n))
                continue
            plus.clear()
            if S is not None:
                S.copy(P_plus)

    def arriving(self):
        """Λ⁺."""
        return Straight(self.plus)

    def outputs(self, backwards=False):
        """The one, if any; a vector output is one. It leaves C and the derivative in H behind, if they are wanted."""
        found, wanted = self.scatter.found, self.scatter.wanted
        C = None if wanted == SMOOTHED else self.node.among(found.C)
        node = self.node
        slope = Block(found.H, node.H_at, node.m, node.n, node.known, node.tiled) if wanted == SCORED else None
        if self.output is not None:
            output = self.output(self)
            yield output
            if C is not None:
                output.fill_inverse(C)
            if slope is not None:
                output.fill_slope(slope, self.P_plus)
            return
        for block in (C, slope):  # nothing is seen
            if block is not None:
                block.clear()

    def leave(self, Lambda):
        """It is where it belongs, unless nothing was measured."""
        if self.output is None:
            self.Lambda.copy(self.plus)
