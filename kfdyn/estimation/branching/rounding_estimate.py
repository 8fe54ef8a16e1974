"""A second opinion: the same tree counted from its other end, with its traits in other units, gives the same answer.

Nothing but rounding tells the two apart. So their difference is what rounding does to the answer, in the sweeps and for
lack of digits in what was given; there the other tree also takes a W or R that is singular but for rounding as it
stands (:mod:`.factors`). A bound would be far too large, or hold for one reason alone. It costs as much as the answer,
so it is asked for where that was found by roots (:mod:`.square_root_dual`), and not by the package itself, as in a fit.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kfdyn.errors import LostDigitsWarning, ModelError, SingularError
from kfdyn.estimation.branching.near_exact import caller, depth
from kfdyn.estimation.branching.square_root_dual import solve_by_roots
from kfdyn.estimation.model.blocks import Blocks, FloatArray, IntArray, offsets_of
from kfdyn.estimation.precision.cancellation import TOLERABLE

if TYPE_CHECKING:
    from kfdyn.estimation.branching.model import OutwardTree
    from kfdyn.estimation.branching.posterior import OutwardPosterior
    from kfdyn.estimation.branching.score import OutwardScore

_EPS, _TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)
_SUSPECT = TOLERABLE / 3.0  # a difference of two errors may be less than either
_REPRESENTED = 1e-7  # of the terms of a state: how well it must be known where its deviation is even less


class _Other(NamedTuple):
    """The posterior in other units, x' = x * state and y' = y * output, all numbers in reverse."""

    post: OutwardPosterior
    state: FloatArray
    output: FloatArray


class _Places(NamedTuple):
    """Of every number of some blocks: the state or output of its row, the one of its column, and the node."""

    row: IntArray
    column: IntArray
    node: IntArray


class _Difference(NamedTuple):
    """The largest difference of two answers beside the size of what they are made of, and where that is."""

    error: float
    what: str
    node: int


def warn_of_lost_posterior(post: OutwardPosterior) -> None:
    """Warn where fewer than five digits are left of the likelihood, of a mean in its deviation, or of a covariance."""
    _warn(post, _posterior_differences)


def warn_of_lost_score(post: OutwardPosterior, score: OutwardScore) -> None:
    """Warn where fewer than five digits are left of an entry of the score, beside the terms that it is made of."""
    _warn(post, lambda post, other: _score_differences(post, score, other))
    post.__dict__.pop("other", None)  # which was kept for this


def _warn(post: OutwardPosterior, differences: Callable[[OutwardPosterior, _Other], Iterator[_Difference]]) -> None:
    frame = caller()
    if frame is None:
        return
    try:
        if "other" not in post.__dict__:
            post.__dict__["other"] = _in_other_units(post)
        worst = max(differences(post, post.__dict__["other"]), key=lambda difference: difference.error)
    except (SingularError, ModelError):
        worst = _Difference(1.0, "the posterior", post.model.tree.roots[0])
    if worst.error <= _SUSPECT:
        return
    warnings.warn(
        f"{worst.what} loses about {min(round(math.log10(worst.error / _EPS)), 16)} of its 16 digits at "
        f"{post.model.tree.label(worst.node)}, and has a relative error of about {min(worst.error, 1.0):.0e}: "
        "variances in directions that are no trait's own differ by too many orders, or a W or R is all but singular. "
        "Give the observations a larger noise R, or the branches a larger W",
        LostDigitsWarning,
        stacklevel=depth(frame),
    )


def _in_other_units(post: OutwardPosterior) -> _Other:
    """Solve the tree with its nodes, traits and observations in reverse, and in other units."""
    model = post.model
    state, output = (1.0 + np.sqrt(2.0 + _within(sizes)) % 1.0 for sizes in (model.n, model.m))  # no powers of two
    A, W, C, R = (_places(model, name) for name in "AWCR")
    blocks = (
        _reversed(model.A, state[A.row] / state[A.column]),
        _reversed(model.W, state[W.row] * state[W.column]),
        _reversed(model.C, output[C.row] / state[C.column]),
        _reversed(model.R, output[R.row] * output[R.column]),
    )
    parent = np.where(model.tree.parent < 0, -1, len(model) - 1 - model.tree.parent)[::-1]
    mean, root_mean, root_cov = (model.mean * state)[::-1], None, None
    if model.root_cov is not None:
        k = int(np.flatnonzero(parent < 0)[0])  # all roots have one prior
        root_mean, root_cov = Blocks(mean, model.n[::-1])[k], blocks[1][k]
    other = type(model)(parent, *blocks, root_mean, root_cov, mean=mean)
    y = np.ascontiguousarray((post.y * output)[..., ::-1])
    table = y.reshape(math.prod(y.shape[:-1]), y.shape[-1])
    return _Other(type(post)(other, y, solve_by_roots(other, table, as_given=True)), state, output)


def _within(sizes: IntArray) -> FloatArray:
    """The number of every state, or output, within its node."""
    return np.arange(float(sizes.sum())) - np.repeat(offsets_of(sizes)[:-1], sizes)


def _places(model: OutwardTree, name: str) -> _Places:
    blocks: Blocks = getattr(model, name)
    assert blocks.cols is not None
    states, outputs = offsets_of(model.n), offsets_of(model.m)
    size = blocks.rows * blocks.cols
    node = np.repeat(np.arange(len(model)), size)
    within = np.arange(node.size) - offsets_of(size)[node]
    row, column = np.divmod(within, np.maximum(blocks.cols[node], 1))
    rows = outputs if name in "CR" else states
    columns = outputs[node] if name == "R" else states[model.tree.parent[node] if name == "A" else node]
    return _Places(rows[node] + row, columns + column, node)


def _reversed(blocks: Blocks, unit: FloatArray) -> list[FloatArray]:
    """Blocks in other units, from the last number to the first."""
    assert blocks.cols is not None
    return list(Blocks((blocks.flat * unit)[::-1], blocks.rows[::-1], blocks.cols[::-1]))


def _posterior_differences(post: OutwardPosterior, other: _Other) -> Iterator[_Difference]:
    model, (second, state, output) = post.model, other
    node, places = np.repeat(np.arange(len(model)), model.n), _places(model, "W")
    mean, Lambda = post.mean.flat, post.dual.Lambda
    deviation = np.sqrt(np.maximum(Lambda.diagonals(), 0.0))
    taken = _places(model, "A")
    terms = np.abs(mean)
    np.add.at(terms, (..., taken.row), np.abs(model.A.flat * mean[..., taken.column]))  # type: ignore[arg-type]
    difference = np.abs(mean - second.mean.flat[..., ::-1] / state)
    yield _largest("the posterior mean", difference, deviation + _REPRESENTED * terms, node)
    size = deviation + _REPRESENTED * terms.max(axis=tuple(range(terms.ndim - 1)), initial=0.0)
    difference = np.abs(Lambda.flat - second.dual.Lambda.flat[::-1] / (state[places.row] * state[places.column]))
    yield _largest("the posterior covariance", difference, size[places.row] * size[places.column], places.node)
    seen = ~np.isnan(post.y).any(axis=tuple(range(post.y.ndim - 1)))
    moved = float(np.log(output[seen]).sum())
    if model.root_cov is None:  # whose flat prior has the units of its states
        moved -= sum(float(np.log(Blocks(state, model.n)[k]).sum()) for k in model.tree.roots)
    difference = np.abs(np.reshape(post.llf, (-1, 1)) - np.reshape(second.llf, (-1, 1)) - moved)
    at = np.array(model.tree.roots[:1])
    yield _largest("the log-likelihood", difference, np.maximum(np.abs(np.reshape(post.llf, (-1, 1))), 1.0), at)


def _score_differences(post: OutwardPosterior, g: OutwardScore, other: _Other) -> Iterator[_Difference]:
    """Entries are compared with products of the sizes of forces and states: |s|, √N and 1/x, x̂ and √Λ.

    Not with ½(ss* − N) itself: where the data are as likely as any, that is what is left of two larger numbers.
    """
    from kfdyn.estimation.branching.score import score_and_rho

    model, (second, state_unit, output_unit) = post.model, other
    h, second_rho = score_and_rho(second)
    rho = second_rho[..., ::-1] * output_unit
    node = np.repeat(np.arange(len(model)), model.n)
    state = np.abs(post.mean.flat) + np.sqrt(np.maximum(post.dual.Lambda.diagonals(), 0.0)) + _TINY
    seen = _places(model, "C")
    read = np.zeros((*post.y.shape[:-1], model.n_outputs)) + _TINY
    np.add.at(read, (..., seen.row), np.abs(model.C.flat) * state[..., seen.column])  # type: ignore[arg-type]
    force, row = (
        np.abs(s) + np.sqrt(np.maximum(s * s - 2.0 * _diagonals(b), 0.0)) + 1.0 / x
        for s, b, x in ((g.mean, g.W, state), (rho, g.R, read))
    )
    yield _largest("score.mean", np.abs(g.mean - h.mean[..., ::-1] * state_unit), force, node)
    units = {"x": 1.0 / state_unit, "s": state_unit, "r": output_unit}
    sizes = {"x": state, "s": force, "r": row}
    for name, i, j in (("W", "s", "s"), ("A", "s", "x"), ("R", "r", "r"), ("C", "r", "x")):
        places, value = _places(model, name), getattr(g, name).flat
        again = getattr(h, name).flat[..., ::-1] * units[i][places.row] * units[j][places.column]
        size = sizes[i][..., places.row] * sizes[j][..., places.column]
        yield _largest(f"score.{name}", np.abs(value - again), size, places.node)


def _diagonals(blocks: Blocks) -> FloatArray:
    """Diagonals of square blocks (..., Σn)."""
    nodes = np.repeat(np.arange(len(blocks)), blocks.rows)
    within = _within(blocks.rows).astype(int)
    return blocks.flat[..., blocks.offsets[nodes] + within * (blocks.rows[nodes] + 1)]


def _largest(what: str, difference: FloatArray, size: FloatArray, node: IntArray) -> _Difference:
    """Of numbers (..., count), each belonging to a node; one that is equal needs no size."""
    if not difference.size:
        return _Difference(0.0, what, 0)
    error = np.where(difference > 0.0, difference / np.maximum(size, _TINY), np.where(difference == 0.0, 0.0, np.inf))
    each = error.max(axis=tuple(range(error.ndim - 1)))
    at = int(np.argmax(each))
    return _Difference(float(each[at]), what, int(node[at]))
