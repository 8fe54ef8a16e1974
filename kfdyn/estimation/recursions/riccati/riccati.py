"""The Riccati gather: P, D, G, P⁺ from the leaves to the roots (THEORY (2)), nodes of dense blocks on the page.

A node is measured in one of four ways. A scalar output is one output of the page; a vector output is one too, with a
matrix for its variance, or as many as it has rows once R is decorrelated; where blocks are large, all goes by tiles.
"""

from kfdyn.estimation.recursions.node_update import filter_node
from kfdyn.estimation.recursions.riccati.nodes import Gather, Scalar, Together, Unseen
from kfdyn.estimation.recursions.riccati.settled import Settling
from kfdyn.estimation.recursions.riccati.tiled import Tiled
from kfdyn.estimation.recursions.riccati.univariate import Univariate
from kfdyn.estimation.recursions.state_space import MODEL, inward
from kfdyn.sweeps import sweep
from kfdyn.sweeps.control_flow import both, if_else
from kfdyn.sweeps.trace_context import IN_ORDER

#: How vector outputs are measured: there are none; all at once by the factor of D; one by one; all at once by tiles.
NONE, BLOCK, UNIVARIATE, TILED = 0, 1, 2, 3
_WAYS = {NONE: Unseen, BLOCK: Together, UNIVARIATE: Univariate, TILED: Tiled}


@sweep(flags=IN_ORDER, tags=2)
def gather_covariances(sizes, how, model, covariances, work):
    """Fill P, P⁺, D, its Cholesky factor L, and G; returns −1, or the output (stacked) that failed.

    ::

        P(k)  = Σ_j φ(k,j) P⁺(j) φ*(k,j) + Q(k)
        D = H P H* + R,   G = P H* D⁻¹,   P⁺ = P − G D G*

    P begins as Q and each node adds itself to its parent. ``sizes`` are the common sizes, if any; ``model``
    is its address, ``covariances`` are the arrays of :class:`Covariances`; ``work`` is for a :class:`Gather`.
    Cost per node: 3n³ + O(n²m) flops.
    """
    gather = Gather(MODEL.at(model), covariances, work)
    gather.begin(inward(gather.model, sizes))
    single = how == NONE or sizes.n is not None  # elsewhere it is not worth the time to compile it
    nodes = inward(gather.model, sizes, until=gather.failed)
    for node in nodes if sizes.tiled is None else Settling(gather, sizes).due(nodes):
        for alone in (
            if_else(both(node.m == 1, lambda node: covariances.seen[node.output], node)) if single else (False,)
        ):
            filter_node((Scalar if alone else _WAYS[how])(gather, node))
    return gather.failed
