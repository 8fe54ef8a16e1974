"""A StateSpace as the sweeps see it: one address, behind which are its arrays; and the blocks of one node.

One number instead of 14 arrays, each of which would take time to compile and to check in every sweep.
"""

from typing import Any, NamedTuple

from kfdyn.estimation.recursions.linalg.matrices import Block
from kfdyn.sweeps.control_flow import down, loop, size
from kfdyn.sweeps.records import Table

#: A model; ``most`` and ``most_outputs``: the largest of its sizes. The arrays are those of ``StateSpace.arrays``.
MODEL = Table(
    nodes=int, most=int, most_outputs=int, order=(int,), parent=(int,), child_start=(int,), children=(int,),
    state=(int,), output=(int,), phi=(float,), phi_at=(int,), H=(float,), H_at=(int,), Q=(float,), Q_at=(int,),
    R=(float,), R_at=(int,),
)  # fmt: skip


class Covariances(NamedTuple):
    """The filter's covariances, which depend on no measurement, stacked: P, P⁺, D, its lower factor L, G.

    ``seen`` says which outputs are measured.
    """

    seen: Any
    P: Any
    P_plus: Any
    D: Any
    L: Any
    G: Any


class Sizes(NamedTuple):
    """Tags of the state and output sizes that all nodes of a model share; None where they differ.

    ``tiled`` is a tag where blocks are so large that their products go by tiles, else None.
    """

    n: Any
    m: Any
    tiled: Any = None


ANY = Sizes(None, None)


class Node:
    """Node k: its sizes, and where its blocks are."""

    def __init__(self, model, sizes, k):
        self.model, self.sizes, self.k, self.parent = model, sizes, k, model.parent[k]
        self.state, self.output = model.state[k], model.output[k]  # read here, before any branch
        self.n = size(sizes.n, model.state[k + 1] - self.state)
        self.m = size(sizes.m, model.output[k + 1] - self.output)
        self.Q_at, self.H_at, self.R_at = model.Q_at[k], model.H_at[k], model.R_at[k]
        self.known, self.one, self.tiled = sizes.n is not None, sizes.m is not None, sizes.tiled is not None

    def square(self, flat):
        """A block (n, n): of Q, P, P⁺, Λ, S."""
        return Block(flat, self.Q_at, self.n, self.n, self.known, self.tiled)

    def among(self, flat):
        """A block (m, m): of R, D, L."""
        return Block(flat, self.R_at, self.m, self.m, False, self.tiled)

    def gain(self, flat):
        """A block (n, m): of G."""
        return Block(flat, self.H_at, self.n, self.m, self.known, self.tiled)

    def states(self, numbers):
        """Its part of what there is for all states."""
        return numbers.part(self.state, self.n, self.known)

    def outputs(self, numbers):
        """Its part of what there is for all outputs."""
        return numbers.part(self.output, self.m, self.one)

    def one_state(self, numbers):
        """As many numbers as it has states."""
        return numbers.part(0, self.n, self.known)

    @property
    def H(self):
        """H(k), (m, n)."""
        return Block(self.model.H, self.H_at, self.m, self.n, self.known, self.tiled)

    def above(self):
        """The parent, where there is one."""
        return Node(self.model, self.sizes, self.parent)

    def step(self, above):
        """φ(p, k), (n of the parent, n)."""
        return Block(self.model.phi, self.model.phi_at[self.k], above.n, self.n, self.known, self.tiled)


def inward(model, sizes, until=None):
    """Over the nodes, children before parents."""
    for i in loop(model.nodes, until=until):
        yield Node(model, sizes, model.order[i])


def outward(model, sizes):
    """Over the nodes, parents before children."""
    for i in down(model.nodes):
        yield Node(model, sizes, model.order[i])
