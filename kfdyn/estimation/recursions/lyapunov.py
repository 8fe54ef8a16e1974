"""Lyapunov gathers and scatters for two operators A, B with ragged blocks."""

from kfdyn.estimation.recursions.linalg.matrices import Turned, multiply
from kfdyn.estimation.recursions.linalg.ragged import Ragged
from kfdyn.sweeps import down, if_, loop, sweep


@sweep(tags=0)
def forward(order, parent, A: Ragged, B: Ragged, Y: Ragged, work):
    """Y(p) += A(p,k) Y(k) B*(p,k), leaves to roots; Y arrives as X. ``work`` is for the largest block."""
    for k, p in edges(loop(order.size), order, parent):
        upward(A.block(k), B.block(k), Y.block(k), Y.block(p), work)


@sweep(tags=0)
def backward(order, parent, A: Ragged, B: Ragged, Y: Ragged, work):
    """Y(k) += A*(p,k) Y(p) B(p,k), roots to leaves; Y arrives as X. ``work`` is for the largest block."""
    for k, p in edges(down(order.size), order, parent):
        downward(A.block(k), B.block(k), Y.block(k), Y.block(p), work)


def edges(places, order, parent):
    """Over the nodes at these places of the order that have a parent: k and p."""
    for i in places:
        k = order[i]
        p = parent[k]
        for _ in if_(p >= 0):
            yield k, p


def upward(A, B, Y, above, work):
    """Y(p) += A Y B*."""
    half = work.matrix(0, A.shape[0], Y.shape[1])
    multiply(half, A, Y)
    multiply(above, half, Turned(B), base=above)


def downward(A, B, Y, above, work):
    """Y += A* Y(p) B."""
    half = work.matrix(0, above.shape[0], B.shape[1])
    multiply(half, above, B)
    multiply(Y, Turned(A), half, base=Y)
