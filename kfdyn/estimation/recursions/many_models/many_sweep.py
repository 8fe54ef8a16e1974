"""Filter, smoother and score of many models of one tree and sizes, a lane for each: one sweep there and one back.

What a pass of as many models as there are lanes works in, it keeps to itself; what is wanted of it goes to the rows of
the caller.
"""

from typing import Any, NamedTuple

from kfdyn.estimation.recursions.costate_covariances import SCORED, SMOOTHED, Scattered
from kfdyn.estimation.recursions.linalg.matrices import Block
from kfdyn.estimation.recursions.many_models.flat_columns import fit_columns, sum_of_squares, weigh_columns
from kfdyn.estimation.recursions.many_models.many_gather import Alone, Beside, Flow, ManyGather, Nothing, Several
from kfdyn.estimation.recursions.many_models.many_scatter import ManyScatter, read_off
from kfdyn.estimation.recursions.node_update import filter_node
from kfdyn.estimation.recursions.state_space import ANY, MODEL, Covariances, inward, outward
from kfdyn.sweeps import Column, clear, if_, if_else, loop, passes, sweep
from kfdyn.sweeps.control_flow import both
from kfdyn.sweeps.memory import LINE
from kfdyn.sweeps.workspace import Workspace

#: What is wanted: ℓ alone; what the filter finds; what the smoother finds; the score.
LIKELIHOOD, FILTERED, SMOOTH, SCORE = 0, 1, 2, 3


class Given(NamedTuple):
    """Models, row by row, and what they filter: T (models or 1, series, Σm), 0 where it is missing.

    A ``step`` is how far models are apart, 0 where all share one; φ of one has ``phi_size`` numbers. ``flat`` are the
    places of flat states, whose columns follow the ``series``; ``phi_at`` is where derivatives in φ begin, each block
    for itself.
    """

    phi: Any
    H: Any
    Q: Any
    R: Any
    xi: Any
    T: Any
    phi_step: Any
    H_step: Any
    Q_step: Any
    R_step: Any
    xi_step: Any
    T_step: Any
    phi_size: Any
    series: Any
    flat: Any
    phi_at: Any
    seen: Any


class Told(NamedTuple):
    """The answers for each model: Σ|L⁻¹ε|², what is not a number if it has no answer, diagonals, what else is wanted.

    The diagonals are those of L and of the flat states' triangle.
    """

    squares: Any
    lost: Any
    deviations: Any
    diagonal: Any


class FilterFills(NamedTuple):
    """The filter's results for each model: P, P⁺, D, L, G; z, z⁺, ε of all rows."""

    P: Any
    P_plus: Any
    D: Any
    L: Any
    G: Any
    z: Any
    z_plus: Any
    eps: Any


class SmootherFills(NamedTuple):
    """The smoother's results for each model: Λ, S; λ, x̂, a of all rows."""

    Lambda: Any
    S: Any
    costate: Any
    x: Any
    a: Any


class Scores(NamedTuple):
    """The gradient of the likelihood of each model, summed over its series."""

    phi: Any
    H: Any
    Q: Any
    R: Any
    xi: Any


@sweep(tags=3)
def evaluate_models(lanes, wanted, vectorial, model, given, told, out, share):
    """Filter the models of a share, and go back if more is wanted; ``vectorial`` where nodes have several outputs.

    ``out`` is one of the classes above, for ℓ alone anything. Cost: that of the filter, the smoother and the score of
    each model, with all lanes at work.
    """
    layout = MODEL.at(model)
    room = Room(share.work.aligned().lanes(lanes), *sizes_of(layout, given, wanted))
    rows, flat = given.series + given.flat.size, given.flat.size
    flow = Flow(rows, z=room.z, z_plus=room.z_plus, eps=room.eps, white=room.white, costate=room.costate, x=room.x,
                a=room.a)  # fmt: skip
    known = Covariances(given.seen, room.P, room.P_plus, room.D, room.L, room.G)
    own = Beside(layout, phi=room.phi, H=room.H, R=room.R)
    outputs, states = layout.output[layout.nodes], layout.state[layout.nodes]
    white = Block(room.white, 0, outputs + states, rows)
    for first, apart in passes(lanes, share.first, share.last):

        def theirs(memory, step):
            return Column(memory.part(0), first * step, apart * step, lanes)  # noqa: B023

        def tell(memory, numbers, count):
            Column(memory.part(0), first * count, apart * count, lanes).copy(numbers, count)  # noqa: B023

        for to, rest, step in (
            (room.phi, given.phi, given.phi_step), (room.H, given.H, given.H_step), (room.P, given.Q, given.Q_step),
            (room.R, given.R, given.R_step),
        ):  # fmt: skip
            load(to, theirs(rest, step))
        start(flow, given, states, outputs, theirs(given.xi, given.xi_step), theirs(given.T, given.T_step))
        gather = ManyGather(own, known, room.rest, flow)
        for node in inward(own, ANY):
            for seen in (True,) if vectorial else if_else(both(node.m == 1, lambda n: given.seen[n.output], node)):
                filter_node((Several if vectorial else Alone if seen else Nothing)(gather, node))
        z_plus = Block(room.white, outputs * rows, states, rows)
        if wanted != FILTERED:
            z_plus.copy(Block(room.z_plus, 0, states, rows))
            fit_columns(white, outputs, flat, room.diagonal, room.along)
            tell(told.diagonal, room.diagonal, flat)
        for node in inward(own, ANY):
            L = node.among(room.L)
            for a in loop(node.m):
                room.deviations[node.output + a] = L[a, a]
        tell(told.deviations, room.deviations, outputs)
        theirs(told.squares, 1)[0] = sum_of_squares(white, outputs, given.series)
        theirs(told.lost, 1)[0] = gather.lost
        if wanted == FILTERED:
            for name in ("P", "P_plus", "D", "L", "G", "z", "z_plus", "eps"):
                numbers = getattr(room, name)
                tell(getattr(out, name), numbers, numbers.size)
        if wanted in (SMOOTH, SCORE):
            weigh_columns(white, flat)
            Block(room.z_plus, 0, states, rows).copy(z_plus)
            found = Scattered(room.Lambda, room.S, room.C, room.phi_slopes, given.phi_at, room.H_slopes)
            back = ManyScatter(own, known, found, SMOOTHED if wanted == SMOOTH else SCORED, room.rest, flow)
            if wanted == SCORE:
                widths = room.phi_slopes.size, room.H.size, room.P.size, room.R.size, states
                score = Scores(*(theirs(memory, width) for memory, width in zip(out, widths)))
            for node in outward(own, ANY):
                back.smooth(node, vectorial)
                if wanted == SCORE:
                    read_off(back, node, given.series, score)
            if wanted == SMOOTH:
                theirs(told.lost, 1)[0] = gather.lost + back.lost
                for name in ("Lambda", "S", "costate", "x", "a"):
                    numbers = getattr(room, name)
                    tell(getattr(out, name), numbers, numbers.size)


def load(numbers, given):
    """Take numbers of the caller's rows."""
    for i in loop(numbers.size):
        numbers[i] = given[i]


def start(flow, given, states, outputs, xi, T):
    """ξ and T in the columns of the series, and one in each flat state's own."""
    rows, series = flow.rows, given.series
    clear(flow.z, states * rows)
    clear(flow.eps, outputs * rows)
    for s in loop(series):
        for _ in if_(given.xi.size > 0):
            for i in loop(states):
                flow.z[i * rows + s] = xi[i]
        for o in loop(outputs):
            flow.eps[o * rows + s] = T[s * outputs + o]
    for j in loop(given.flat.size):
        flow.z[given.flat[j] * rows + (series + j)] = 1.0


def sizes_of(layout, given, wanted):
    """Return the sizes that a :class:`Room` is made for."""
    N = layout.nodes
    return (
        given.phi_size, given.phi_at[N], layout.Q_at[N], layout.H_at[N], layout.R_at[N], layout.state[N],
        layout.output[N], given.series, given.flat.size, wanted,
    )  # fmt: skip


class Room(Workspace):
    """The memory of one pass, each number with its lanes."""

    @staticmethod
    def layout(phi, steps, Q, H, R, n, m, series, flat, wanted):
        """Numbers of φ as stored and as derived, of Q, H and R; n states and m outputs in all."""
        rows = series + flat
        back, smooth, score = (int(c) for c in (wanted >= SMOOTH, wanted == SMOOTH, wanted == SCORE))
        return {
            "phi": phi, "H": H, "R": R, "P": Q, "P_plus": Q, "D": R, "L": R, "G": H, "z": n * rows,
            "z_plus": n * rows, "eps": m * rows, "white": (n + m) * rows, "deviations": m, "diagonal": flat,
            "along": rows, "costate": back * n * rows, "x": back * n * rows, "a": back * m * rows, "Lambda": back * Q,
            "S": smooth * Q, "C": score * R, "phi_slopes": score * steps, "H_slopes": score * H,
        }  # fmt: skip


def numbers(sizes, n, m):
    """Return the size of a lane in numbers, alignment included; ``n``, ``m`` are the largest sizes of a node."""
    return Room.size(*sizes) + max(ManyGather.size(n, m), ManyScatter.size(n, m)) + LINE
