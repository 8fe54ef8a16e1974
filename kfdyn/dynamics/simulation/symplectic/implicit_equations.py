"""Roots of x = g(x) near where they begin: iteration while it contracts, Newton's steps, and the path from no step.

Every way is held to the same test, Deuflhard's: a correction that is not at most half the one before says that the root
it goes to is not known to be the near one. Then the next way is taken, and the last one follows the root from s = 0,
where it is known, to s = 1. So a root that is found belongs to the state the step began with, and where none is found
the path has an end: the equations have no solution that this state leads to.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.errors import KfdynError

Mask = NDArray[np.bool_]

#: g(x, s): x (..., nv) and how much of the step is taken, s (..., 1) from 0 to 1; at s = 0 its root is known.
Update = Callable[[Array, Array], Array]
#: Length (...) of x (..., nv); of velocities, in the metric of the kinetic energy, which knows no units.
Length = Callable[[Array], Array]

MOST_CORRECTIONS = 60
CONTRACTION = 0.5  # each correction at most so much of the one before; then all of them are at most twice the first
# Of what x is the sum of: a correction that is nothing, and one that may be all that rounding allows. x itself is no
# measure of either, since near rest it is the small difference of forces that hold each other.
ROUNDING, STAGNANT = 1e-15, 1e-11
DIFFERENCE = 1e-7  # of the same: steps of the differences in Newton's matrix; √ε would do for errors alone
# First residuals that a root may be away: before its path must be followed, and after that. A residual is what a short
# step moves; a root many times as far away belongs to a step that is too long for its order to mean anything.
NEAR, FAR = 4.0, 16.0
SHORTEST = 1.0 / 512  # of the path


class NoNearRoot(KfdynError):
    """The path of the root ends, or leads far away; the message says where or how far."""


def settle(update: Update, length: Length, start: Array, terms: Array) -> Array:
    """Root (..., nv) of x = update(x, 1) on the branch that begins at ``start``, the root at s = 0, row by row.

    Parameters
    ----------
    update : callable(x, s)
        Gets the whole batch (..., nv) at once, with s (..., 1).
    length : callable(x)
        A norm (...) of its rows.
    start : (..., nv)
        Where the path begins.
    terms : (..., nv)
        Sizes of what ``update`` adds to ``start``, term by term: its rounding is a part of them, also where they add up
        to nothing.

    Returns
    -------
    (..., nv) array
        Row by row: what a row becomes does not depend on the others.

    Raises
    ------
    NoNearRoot
        If the path ends before s = 1, or leads further than 16 times the first residual.

    Notes
    -----
    Plain iteration costs one ``update`` a time. Newton's matrix costs nv of them, by differences, and is formed only
    where the iteration contracts slowly or not at all. Source: Deuflhard, "Newton Methods for Nonlinear Problems",
    Springer 2011, sections 2.1 (contraction) and 5.1 (paths).

    Examples
    --------
    x = 1 + x²/5 has two roots, (5 ∓ √5)/2, and the one that x = 1 leads to is the smaller:

    >>> one = np.ones((1, 1))
    >>> settle(lambda x, s: 1 + s * x**2 / 5, lambda x: np.abs(x[..., 0]), one, one).round(6)
    array([[1.381966]])

    x = 1 + x²/3 has none:

    >>> settle(lambda x, s: 1 + s * x**2 / 3, lambda x: np.abs(x[..., 0]), one, one)
    Traceback (most recent call last):
        ...
    kfdyn.dynamics.simulation.symplectic.implicit_equations.NoNearRoot: is lost at 75% of that
    """
    whole = np.ones((*start.shape[:-1], 1))
    every = np.ones(start.shape[:-1], dtype=bool)
    x, found = _correct(update, length, start, terms, whole, every, newton=False)
    if found.all():
        return x
    first = length(update(start, whole) - start)
    y, near = _correct(update, length, start, terms, whole, ~found, newton=True)
    near &= length(y - start) <= NEAR * first
    x, found = _where(near & ~found, y, x), found | near
    if not found.all():
        x = _follow(update, length, start, terms, x, found)
        away = length(x - start)
        if (away > FAR * first).any():
            times = (away / np.maximum(first, np.finfo(float).tiny)).max()
            raise NoNearRoot(f"lies {times:.3g} times as far away as a short step would put it")
    return x


def _correct(
    update: Update, length: Length, start: Array, terms: Array, s: Array, active: Mask, newton: bool
) -> tuple[Array, Mask]:
    """Correct x from ``start`` while corrections contract; the root, and where (...) it is one.

    A correction is the residual r = g(x) − x itself, or (1 − g')⁻¹ r. Corrections that become θ times the one before
    add up to 1/(1 − θ) times the next, so that the last one need not be made to be known.
    """
    x, residual = start, update(start, s) - start
    matrix = _matrix(update, x, s, residual, terms) if newton else None
    step = _solved(matrix, residual)
    before = length(step)
    going = active & np.isfinite(before)
    scale = length(start) + before + length(terms)
    found = going & (before <= ROUNDING * scale)
    for _ in range(MOST_CORRECTIONS):
        going = going & ~found
        if not going.any():
            break
        moved = _where(going, x + step, x)
        residual = update(moved, s) - moved
        step = _solved(matrix, residual)
        now = length(step)
        contracts = going & (now <= CONTRACTION * before)  # NaN does not
        last = contracts & (2 * now * now <= ROUNDING * scale * before)
        rounded = going & ~contracts & (before <= STAGNANT * scale)
        x = _where(contracts | rounded, moved, x)
        x = _where(last, x + step, x)
        found = found | last | rounded
        going = contracts & ~last
        if newton and (going & (now > 0.1 * before)).any():
            matrix = _matrix(update, x, s, residual, terms)
            step = _solved(matrix, residual)
            now = np.where(going, length(step), now)
        before = now if going.all() else np.where(going, now, before)
    return x, found


def _follow(update: Update, length: Length, start: Array, terms: Array, x: Array, found: Mask) -> Array:
    """Follow the roots that are not ``found`` yet from s = 0 to 1, in steps as long as Newton's corrections bear."""
    at, stride = np.zeros((*start.shape[:-1], 1)), np.full((*start.shape[:-1], 1), 0.25)
    path = start
    while not found.all():
        there = np.minimum(at + stride, 1.0)
        y, fine = _correct(update, length, path, terms, there, ~found, newton=True)
        path, at = _where(fine, y, path), _where(fine, there, at)
        stride = _where(fine, 2 * stride, stride / 2)
        ended = ~found & (stride[..., 0] < SHORTEST)
        if ended.any():
            raise NoNearRoot(f"is lost at {at[ended].min():.0%} of that")
        arrived = ~found & (at[..., 0] == 1.0)
        x, found = _where(arrived, path, x), found | arrived
    return x


def _where(rows: Mask, x: Array, y: Array) -> Array:
    """Rows (...) of x, the others of y, both (..., n)."""
    return x if rows.all() else np.where(rows[..., None], x, y)


def _matrix(update: Update, x: Array, s: Array, residual: Array, terms: Array) -> Array:
    """1 − ∂g/∂x (..., nv, nv) by differences of the residual r: −∂r/∂x."""
    size = (np.abs(x) + np.abs(residual) + np.abs(terms)).max(-1, keepdims=True)
    delta = DIFFERENCE * np.where(size > 0, size, 1.0)
    columns = []
    for unit in np.eye(x.shape[-1]):
        moved = x + delta * unit
        columns.append((residual - (update(moved, s) - moved)) / delta)
    return np.stack(columns, axis=-1)


def _solved(matrix: Array | None, residual: Array) -> Array:
    """The correction: the residual, or matrix⁻¹ residual, NaN where there is none."""
    if matrix is None:
        return residual
    out = np.full_like(residual, np.nan)
    for row in np.ndindex(residual.shape[:-1]):
        try:
            out[row] = np.linalg.solve(matrix[row], residual[row])
        except np.linalg.LinAlgError:
            continue
    return out
