"""Likelihood and score of one series under many sets of variances: a lane of :mod:`constant_chain` for each set.

Flat states are fitted in lanes too, by orthogonal columns; a set without an answer gets one that is not finite.
"""

from typing import Any, NamedTuple

from kfdyn.estimation.recursions.constant_chain import Asked, Found, Measured, Sweep, filter_steps, score_steps
from kfdyn.estimation.recursions.linalg.matrices import Block
from kfdyn.estimation.recursions.many_models.flat_columns import fit_columns, sum_of_squares, weigh_columns
from kfdyn.sweeps import Column, broadcast, local, loop, passes, sweep, to_float
from kfdyn.sweeps.memory import LINE
from kfdyn.sweeps.workspace import Workspace


class Sets(NamedTuple):
    """Sets of variances θ (B, p): Q at its entries, P0 and the noise are θ times ``Q`` (p, entries), ``P0`` (p, n²) and
    ``noise`` (p,).
    """

    theta: Any
    Q: Any
    P0: Any
    noise: Any


class Answers(NamedTuple):
    """The answers for all sets: D (B, steps), diagonals of the flat triangles (B, d), Σ|e|² (B,), gradients (B, p)."""

    D: Any
    diagonal: Any
    squares: Any
    gradient: Any


@sweep(tags=2)
def evaluate_chains(lanes, scored, chain, y, start, sets, answers, share):
    """Evaluate sets of variances of a share; ``scored`` 1 adds gradients. y, start: those of :class:`Measured`."""
    steps, p, entries = chain.seen.size, sets.noise.size, chain.entries.size // 2
    flat = answers.diagonal.size // answers.squares.size
    room = Room(share.work.aligned().lanes(lanes), chain.n, chain.rows, steps, flat, p, entries)
    found = Found(room.e, room.G, room.D)
    e = Block(room.e, 0, steps, chain.rows)
    for first, apart in passes(lanes, share.first, share.last):
        theta = _column(sets.theta, first, apart, p, lanes)
        for to, given in ((room.Q, sets.Q), (room.P0, sets.P0)):
            for i in loop(to.size):
                to[i] = _sum(p, theta, lambda l: given[l * to.size + i])  # noqa: B023
        noise = _sum(p, theta, lambda l: sets.noise[l])
        sweep = Sweep(chain, found, room.rest)
        filter_steps(sweep, Measured(y, start, room.Q, room.P0, noise))
        fit_columns(e, steps, flat, room.diagonal, room.along)
        _column(answers.D, first, apart, steps, lanes).copy(room.D, steps)
        _column(answers.diagonal, first, apart, flat, lanes).copy(room.diagonal, flat)
        _column(answers.squares, first, apart, 1, lanes)[0] = sum_of_squares(e, steps, chain.rows - flat)
        if scored:
            _score(sweep, sets, room, _column(answers.gradient, first, apart, p, lanes), chain.rows - flat)


class Room(Workspace):
    """The memory of one pass, each number with its lanes; behind it there is room for a :class:`Sweep`."""

    @staticmethod
    def layout(n, rows, steps, flat, p, entries):
        """Return the layout for n states, that many rows (``flat`` of them), steps, parameters, entries of Q."""
        return {
            "e": steps * rows, "G": steps * n, "D": steps, "Q": entries, "P0": n * n, "diagonal": flat, "along": rows,
            "squares": entries, "Lambdas": entries, "sums": 2,
        }  # fmt: skip


def numbers(n, rows, steps, flat, p, entries):
    """Return the size of a share's lane in numbers, with those that it takes to align them."""
    return Room.size(n, rows, steps, flat, p, entries) + Sweep.size(n, rows) + LINE


def _column(memory, first, apart, width, lanes):
    """Rows of the caller, ``width`` numbers each, as lanes see them."""
    return Column(memory.part(0), first * width, apart * width, lanes)


def _sum(count, theta, factor):
    """Σ_l θ_l factor(l)."""
    total = local(broadcast(0.0, theta.lanes))
    for l in loop(count):
        total += theta[l] * factor(l)
    return total


def _score(sweep, sets, room, gradient, series):
    """Smooth what is left, and the flat states along their spread; the gradient is the mean over both."""
    times = to_float(series)
    weigh_columns(Block(room.e, 0, sweep.chain.seen.size, sweep.chain.rows), sweep.chain.rows - series)
    for part in (room.squares, room.Lambdas, room.sums):
        for l in loop(part.size):
            part[l] = 0.0
    score_steps(sweep, Asked(room.squares, room.Lambdas, room.sums))
    noise = 0.5 * (room.sums[0] - times * room.sums[1])
    for i in loop(sets.noise.size):
        total = local(noise * sets.noise[i])
        for l in loop(room.Q.size):
            total += (0.5 * sets.Q[i * room.Q.size + l]) * (room.squares[l] - times * room.Lambdas[l])
        gradient[i] = total
