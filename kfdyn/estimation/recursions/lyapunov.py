"""Lyapunov gathers and scatters for two operators A, B with ragged blocks."""

from kfdyn.estimation.recursions.dense import Turned, multiply
from kfdyn.sweeps import down, loop, sweep, when


@sweep(tags=0)
def forward(order, parent, A, A_at, B, B_at, rows, cols, Y, Y_at, work):
    """Y(p) += A(p,k) Y(k) B*(p,k), leaves to roots; Y arrives as X. ``work`` is for the largest block."""
    for i in loop(order.size):
        edge(order[i], parent, A, A_at, B, B_at, rows, cols, Y, Y_at, work, upward)


@sweep(tags=0)
def backward(order, parent, A, A_at, B, B_at, rows, cols, Y, Y_at, work):
    """Y(k) += A*(p,k) Y(p) B(p,k), roots to leaves; Y arrives as X. ``work`` is for the largest block."""
    for i in down(order.size):
        edge(order[i], parent, A, A_at, B, B_at, rows, cols, Y, Y_at, work, downward)


def edge(k, parent, A, A_at, B, B_at, rows, cols, Y, Y_at, work, run):
    """What is done between a node and its parent, if it has one."""
    p = parent[k]
    for _ in when(p >= 0):
        a, b = A.matrix(A_at[k], rows[p], rows[k]), B.matrix(B_at[k], cols[p], cols[k])
        y, above = Y.matrix(Y_at[k], rows[k], cols[k]), Y.matrix(Y_at[p], rows[p], cols[p])
        run(a, b, y, above, work.matrix(0, rows[p], cols[k]))


def upward(a, b, y, above, half):
    """Y(p) += A Y B*."""
    multiply(half, a, y)
    multiply(above, half, Turned(b), base=above)


def downward(a, b, y, above, half):
    """Y += A* Y(p) B."""
    multiply(half, above, b)
    multiply(y, Turned(a), half, base=y)
