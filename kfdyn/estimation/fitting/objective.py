"""Log-likelihood and gradient as functions of the parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.inference.score import score
from kfdyn.estimation.model.blocks import Blocks, FloatArray, real_array
from kfdyn.estimation.model.state_space import StateSpace

Build = Callable[[FloatArray], Any]
Path = Callable[[FloatArray], FloatArray]
#: What ``derivative(theta)`` returns: for each parameter, by name of the blocks, what they change by.
Derivative = Callable[[FloatArray], Sequence[dict[str, Any]]]

_INWARD = ("phi", "H", "Q", "R", "xi", "eta")
_OUTWARD = ("A", "W", "C", "R", "mean")
STEP = 6e-6  # of a free parameter, for central differences of what is built: error about 1e-11
_CURVED = 3e-5  # of a difference, by how much its halves may differ: its error is about the square of that
_NARROWEST = 1e-9  # of a parameter: no shorter step is tried
_NOTHING = 1e-290  # a parameter below that is 0: shares of it are none
_SHORTER, _LONGER = 12, 3  # times that a step is shortened where the parameter is 0 and has no size, and lengthened


def expect_one_length(T: Any, name: str) -> None:
    """Refuse a list of series that differ in length, and say how to give them."""
    if isinstance(T, list | tuple):
        lengths = sorted(
            {
                len(row)
                for row in T
                if hasattr(row, "__len__") and not isinstance(row, str) and getattr(row, "ndim", 1) > 0
            }
        )
        if len(lengths) > 1:
            raise ShapeError(
                f"{name} holds series of different lengths, {lengths[0]} and {lengths[-1]}; fill the shorter ones up "
                "with NaN, at the end where they stopped early, at the front where they began late"
            )


def stacked(model: Any, T: ArrayLike) -> FloatArray:
    """Return measurements as the model stacks them, (..., Σm_k)."""
    return model.check_outputs(T, "T", allow_nan=True) if isinstance(model, StateSpace) else real_array(T, "T")


class Objective:
    """ℓ(θ) of all series of T and its gradient, by the score and the chain rule through ``build``.

    ``build.evaluate(theta, T)`` is asked for both if ``build`` has that. Else the derivative of ``build`` is taken from
    ``build.pullback(theta, score)`` if it has that, from ``derivative`` if given, else by differences of ``build``
    alone, along ``path``: parameters as a function of free numbers.
    """

    def __init__(self, build: Build, T: ArrayLike, derivative: Derivative | None = None) -> None:
        self.build, self.derivative = build, derivative
        self.constant = float(getattr(build, "constant", 0.0))
        expect_one_length(T, "T")
        self.T = real_array(T, "T")
        self._bound = hasattr(build, "evaluate")  # which knows no model, and is given series as they are
        self.evaluations = 0

    @cached_property
    def groups(self) -> list[FloatArray]:
        """Series of T grouped by what they lack; series without a measurement are left out."""
        groups = list(by_pattern(self.T))
        return [T for T in groups if not np.isnan(T).all()] or groups

    @property
    def n_observed(self) -> int:
        """Number of measurements that are there."""
        return int((~np.isnan(self.T)).sum())

    @property
    def mean_square(self) -> float:
        """Mean square of the observed measurements."""
        return float(np.nansum(self.T * self.T)) / max(self.n_observed, 1)

    @property
    def n_series(self) -> int:
        """Number of series that have a measurement."""
        return sum(int(np.prod(T.shape[:-1])) for T in self.groups if not np.isnan(T).all())

    def model(self, theta: FloatArray) -> Any:
        """Call ``build`` and check that it returned a model."""
        model = self.build(theta)
        if not isinstance(model, StateSpace) and not hasattr(model, "smooth"):
            raise ModelError(
                f"build(theta) must return a StateSpace or an OutwardTree, but it returned {type(model).__name__}"
            )
        if not self._bound:
            self.T, self._bound = stacked(model, self.T), True
        return model

    def value(self, theta: FloatArray) -> float:
        """Return ℓ alone."""
        self.evaluations += 1
        if hasattr(self.build, "evaluate"):
            return self.constant + sum(self.build.evaluate(theta, T)[0] for T in self.groups)
        model = self.model(theta)
        return self.constant + sum(float(np.sum(_llf(model, T))) for T in self.groups)

    def __call__(
        self, theta: FloatArray, path: Path, z: FloatArray, slope: FloatArray, size: Callable[[], Any], edge: Any
    ) -> tuple[float, FloatArray]:
        """Return ℓ and ∂ℓ/∂z at θ = path(z), whose slope is dθ/dz.

        ``size()`` is how far numbers may change before the model is another; ``edge`` marks those that may only grow.
        """
        self.evaluations += 1
        total, gradient = self.constant, np.zeros(z.size)
        if hasattr(self.build, "evaluate"):
            for T in self.groups:
                llf, own = self.build.evaluate(theta, T)
                total += llf
                gradient += own * slope
            return total, gradient
        model = self.model(theta)
        found = [_score(model, T) for T in self.groups]
        total += sum(float(np.sum(llf)) for llf, _ in found)
        scores = [s for _, s in found]
        if hasattr(self.build, "pullback"):
            for s in scores:
                gradient += self.build.pullback(theta, s) * slope
            return total, gradient
        if self.derivative is not None:
            changes = self.derivative(theta)
            if len(changes) != z.size:
                raise ShapeError(f"derivative(theta) gave {len(changes)} entries for {z.size} parameters")
            for i, change in enumerate(changes):
                gradient[i] = slope[i] * sum(_along(s, model, change) for s in scores)
            return total, gradient
        steps = STEP * size()
        for i in range(z.size):
            step = float(steps[i])
            gradient[i] = by_differences(lambda at: self.model(path(at)), z, i, step, model, scores, bool(edge[i]))
        return total, gradient


def by_pattern(T: FloatArray) -> Iterator[FloatArray]:
    """Yield the series of a batch, those with the same measurements missing together."""
    if T.ndim == 0:
        raise ShapeError("T must have at least one axis, which stacks the outputs of all nodes")
    if T.ndim == 1:
        yield T
        return
    rows = T.reshape(-1, T.shape[-1])
    missing = np.isnan(rows)
    if not missing.any():
        if len(rows):
            yield rows
        return
    _, group = np.unique(missing, axis=0, return_inverse=True)
    for g in range(int(group.max()) + 1):
        yield rows[group.reshape(-1) == g]


def _llf(model: Any, T: FloatArray) -> Any:
    if isinstance(model, StateSpace):
        from kfdyn.estimation.inference.filter import kalman_filter

        return kalman_filter(model, T).llf
    return model.smooth(T).llf


def _score(model: Any, T: FloatArray) -> tuple[Any, Any]:
    if isinstance(model, StateSpace):
        g = score(model, T)
        return g.llf, g
    post = model.smooth(T)
    return post.llf, post.score


def _names(model: Any) -> tuple[str, ...]:
    return _INWARD if isinstance(model, StateSpace) else _OUTWARD


def _flat(blocks: Any) -> FloatArray:
    return blocks.packed().flat if isinstance(blocks, Blocks) else np.asarray(blocks)


def by_differences(
    build: Build, x: FloatArray, i: int, step: float, model: Any, scores: Sequence[Any], edge: bool = False
) -> float:
    """Return ∂ℓ/∂x_i from the score and differences of what ``build`` makes around x, which is ``model``.

    The step is shortened where there is no model at its end, and where the halves of a difference are not alike: a
    parameter of 1e-8 is moved by less than one of 1. Where rounding is more of a difference than that, it is made
    longer. Where there is no model on one side, or x is at the ``edge`` of what is allowed, the other gives the slope.
    """

    def at(by: float) -> Any:
        there = x.copy()
        there[i] += by
        try:
            with np.errstate(all="ignore"):
                return build(there), there[i] - x[i]
        except (ValueError, ArithmeticError) as error:
            return error, 0.0

    best, error, longer, tries = (np.inf, 0.0), None, 0, 0
    zero = abs(x[i]) < _NOTHING
    while True:
        (there, up), (back, down) = at(step), at(2 * step if edge else -step)
        tries += 1
        last = tries > _SHORTER if zero else 0.1 * step < _NARROWEST * abs(x[i])
        failed = [m for m in (there, back) if isinstance(m, Exception)]
        if len(failed) == 1 and not edge and (last or zero):
            by = -step if there is failed[0] else step
            (there, up), (back, down) = at(by), at(2 * by)
            failed = [m for m in (there, back) if isinstance(m, Exception)]
        if failed:
            error = failed[0]
        else:
            bend, rough, value = _slope(scores, model, there, up, back, down)
            best = min(best, (bend * bend + rough, value))
            if bend <= _CURVED:
                if rough <= _CURVED or longer == _LONGER:
                    return best[1]
                longer, step = longer + 1, 100.0 * step
                continue
        if last or longer:
            if best[0] == np.inf and error is not None:
                raise error
            return best[1]
        step = 0.1 * (step if zero else min(step, max(abs(x[i]), 1e-3 * step)))


def _slope(
    scores: Sequence[Any], model: Any, there: Any, up: float, back: Any, down: float
) -> tuple[float, float, float]:
    """Return how unlike the slopes to two neighbours are, how much of them is rounding, and ⟨∂ℓ/∂blocks, slope⟩.

    The first two are shares of the last.

    The slope is that of the parabola through three models; entries count by what the likelihood makes of them, and
    what rounding leaves of a difference does not.
    """
    total, size, unlike, lost = 0.0, 0.0, 0.0, 0.0
    for name in _names(model):
        base, one, other = (getattr(m, name) for m in (model, there, back))
        if one is None or (one is base and other is base):  # replaced models share what has not changed
            continue
        here = np.zeros_like(_flat(one)) if base is None else _flat(base)
        first, second = (_flat(one) - here) / up, (_flat(other) - here) / down
        if not (first.any() or second.any()):
            continue
        slope = (up * second - down * first) / (up - down)
        rounding = 4 * np.finfo(float).eps * np.abs(here) / min(abs(up), abs(down))
        for s in scores:
            g = _flat(getattr(s, name))
            total += float(np.sum(g * slope))
            size += float(np.sum(np.abs(g) * np.abs(slope)))
            unlike += float(np.sum(np.abs(g) * np.maximum(np.abs(first - second) - rounding, 0.0)))
            lost += float(np.sum(np.abs(g) * np.where(slope == 0.0, 0.0, rounding)))
    return (unlike / size, lost / size, total) if size else (0.0, 1.0, 0.0)


def _along(gradient: Any, model: Any, change: dict[str, Any]) -> float:
    """Return ⟨∂ℓ/∂blocks, change⟩ over all series; a change is an array or a sequence of blocks."""
    total = 0.0
    for name, given in change.items():
        if name not in _names(model):
            raise ModelError(f"derivative(theta) has {name!r}, which is none of {', '.join(_names(model))}")
        own = getattr(gradient, name)
        mine, step = _flat(own), _change(given, own)
        if step.size != mine.shape[-1]:
            raise ShapeError(f"derivative(theta) has {step.size} numbers for {name}, which has {mine.shape[-1]}")
        total += float(np.sum(mine * step))
    return total


def _change(given: Any, own: Any) -> FloatArray:
    """Flatten the change of the blocks ``own`` to one vector; a root's slice of a stacked phi is ignored."""
    if isinstance(given, Blocks):
        return _flat(given)
    stacked = isinstance(given, np.ndarray) and given.dtype != object
    if isinstance(own, Blocks) and own.cols is not None and len(given) == len(own):
        used = own.rows * own.cols > 0
        given = given[used] if stacked else [block for block, here in zip(given, used) if here]
    if stacked:
        return given.reshape(-1)
    return np.concatenate([np.ravel(block) for block in given if block is not None] or [np.zeros(0)])
