"""Covariances that have settled: along a chain of nodes that are all alike they are copied and not computed again.

Rounding keeps the last digits of a settled covariance moving for ever, so none is ever the same to the bit. It has
settled where it is no other than one node before, and than a window of nodes before, up to what rounding moves; the
window is a share of all nodes that are left, so that one that creeps on does not creep far: 64 such changes at most.
"""

from kfdyn.estimation.recursions.linalg.tolerances import EPS
from kfdyn.estimation.recursions.state_space import Node
from kfdyn.sweeps.control_flow import if_, if_else, loop
from kfdyn.sweeps.functions import sqrt
from kfdyn.sweeps.values import not_, now, to_int, where
from kfdyn.sweeps.variables import local

#: What rounding moves, of the deviations of two states.
MOVED = 8 * EPS
#: A window is at least so many nodes, and at least that share of those that are left.
LEAST, SHARE = 8, 64

_MOVING, _SETTLED, _COPIED = 0, 1, 2


class Settling:
    """The parts of a sweep that have settled.

    The sweep says what of a node is ``given`` and what is ``filled``, as (memory, first, size); which of the latter
    must have ``settled``, as symmetric matrices; whether a node ``follows`` another, along which ``edge``; and how to
    ``resume`` behind a node that was copied. Its ``line`` is for as many numbers as a node has states or outputs.
    """

    def __init__(self, sweep, sizes):
        self.sweep, self.sizes, self.line = sweep, sizes, sweep.line
        self.last, self.step, self.run, self.left = local(-1), local(-1), local(0), local(sweep.model.nodes)
        self.reference, self.state = local(-1), local(_MOVING)

    def due(self, nodes):
        """Over the nodes that must be computed; all others are copied."""
        for node in nodes:
            alike = self._alike(node)
            for _ in if_((self.state != _MOVING) & (alike == 0)):
                for _ in if_(self.state == _COPIED):
                    self.sweep.resume(self._node(self.last))
                self.state.set(_MOVING)
            for known in if_else(self.state != _MOVING):
                if known:
                    self._copy(node)
                    self.state.set(_COPIED)
                else:
                    yield node
                    self._look(node, alike)
            self.last.set(node.k)
            self.left -= 1

    def _node(self, k):
        return Node(self.sweep.model, self.sizes, now(k))

    def _alike(self, node):
        """1 if the node is given the same as the one before it, of which it is the only neighbour on this side."""
        alike, model = local(0), self.sweep.model
        for _ in if_(self.last >= 0):
            before = self._node(self.last)
            edge = self.sweep.edge(before, node)
            at = local(model.phi_at[edge])
            for _ in if_(self.sweep.follows(before, node) & (before.n == node.n) & (before.m == node.m)):
                other = local(-1)
                for _ in if_((self.step < 0) | (at != self.step)):
                    other.set(where(self.step < 0, 0, -1))
                    _compare(other, model.phi, now(at), now(self.step), node.n * node.n)
                for (flat, first, size), (_, here, _) in zip(self.sweep.given(before), self.sweep.given(node)):
                    _compare(other, flat, first, here, size)
                alike.set(to_int(other < 0))
            self.step.set(where(before.n == node.n, now(at), -1))
        return alike

    def _look(self, node, alike):
        """Tell whether it has settled."""
        for same in if_else(alike != 0):
            if same:
                self.run += 1
                window = now(self.left) // SHARE
                for _ in if_((self.run >= LEAST) & (self.run > window)):
                    still = local(1)
                    for k in (self.last, self.reference):
                        for _ in if_(still != 0):
                            self._moved(node, self._node(k), still)
                    self.state.set(where(still != 0, _SETTLED, _MOVING))
                    self.reference.set(node.k)
                    self.run.set(0)
            else:
                self.run.set(0)
                self.reference.set(node.k)

    def _moved(self, node, before, still):
        """``still`` becomes 0 if something is another than rounding would make it."""
        for new, old in zip(self.sweep.settled(node), self.sweep.settled(before)):
            n, line = new.shape[0], self.line
            for i in loop(n):
                line[i] = sqrt(where(new[i, i] > 0.0, new[i, i], 0.0))
            moved = local(-1)
            for i in loop(n, until=moved):
                for j in loop(i + 1, until=moved):
                    for _ in if_(not_(abs(new[i, j] - old[i, j]) <= MOVED * line[i] * line[j])):
                        moved.set(0)
            still.set(where(moved < 0, still, 0))

    def _copy(self, node):
        """Take all that was found of the node before."""
        before = self._node(self.last)
        for (flat, first, size), (_, here, _) in zip(self.sweep.filled(before), self.sweep.filled(node)):
            for i in loop(size):
                flat[here + i] = flat[first + i]


def _compare(other, flat, first, second, size):
    """``other`` becomes 0 if two stretches of memory differ."""
    for i in loop(size, until=other):
        for _ in if_(not_(flat[first + i] == flat[second + i])):
            other.set(0)
