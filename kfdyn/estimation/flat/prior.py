"""Find the flat states, and the finite model their columns are taken from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kfdyn.estimation.inference.riccati import riccati
from kfdyn.estimation.model.blocks import FloatArray, IntArray
from kfdyn.estimation.model.overflow import expect_finite_blocks
from kfdyn.estimation.model.state_space import StateSpace
from kfdyn.estimation.operators.model_operators import Operators

TOGETHER = 16  # flat components at a time, where all would take memory


class Columns(NamedTuple):
    """The flat components δ of a model, counted within each tree of the forest.

    Trees share no node, so one vector holds a column of each: component i of all trees is row i. ``place`` (trees, d)
    is where a component lies in the stacked state, −1 for none; ``of_state`` and ``of_output`` tell the tree.
    """

    place: IntArray
    of_state: IntArray
    of_output: IntArray

    @property
    def most(self) -> int:
        """Most components that a tree has."""
        return self.place.shape[1]

    def rows(self, size: int) -> FloatArray:
        """One in each component's place, (d, Σn)."""
        out = np.zeros((self.most, size))
        for i, place in enumerate(self.place.T):
            out[i, place[place >= 0]] = 1.0
        return out


def columns_of(ss: StateSpace) -> Columns:
    """Count the flat components of each tree."""
    assert ss.flat is not None
    tree = ss.tree
    number = np.full(len(tree), -1)
    roots = np.array(tree.roots)
    number[roots] = np.arange(roots.size)
    if roots.size == 1:
        number[:] = 0
    else:
        for k in tree.order[::-1].tolist():
            if number[k] < 0:
                number[k] = number[tree.parent[k]]
    of_state, of_output = np.repeat(number, ss.n), np.repeat(number, ss.m)
    owner = of_state[ss.flat]
    counts = np.bincount(owner, minlength=roots.size)
    place = np.full((roots.size, int(counts.max(initial=0))), -1)
    order = np.argsort(owner, kind="stable")
    starts = np.concatenate([[0], np.cumsum(counts)])
    place[owner[order], np.arange(order.size) - starts[owner[order]]] = ss.flat[order]
    return Columns(place, of_state, of_output)


def finite_model(ss: StateSpace, s: FloatArray | None = None) -> tuple[StateSpace, FloatArray]:
    """The model with a finite variance s² for each flat state, and s stacked (0 elsewhere), found unless it is given.

    Any finite variance may be added to an infinite one. It keeps D regular where a flat state is measured without
    noise; s² is what the measurements could resolve at best if nothing else were unknown, so that it does not drown
    what the data say, in any units.
    """
    assert ss.flat is not None
    s = _scales(ss) if s is None else s
    Q = ss.Q.flat.copy()
    nodes = np.searchsorted(ss.arrays.state, ss.flat, side="right") - 1
    within = ss.flat - ss.arrays.state[nodes]
    Q[ss.Q.offsets[nodes] + within * (ss.n[nodes] + 1)] += s[ss.flat] ** 2
    inner = StateSpace.trusted(ss.tree, ss.n, ss.m, ss.phi, ss.H.flat, Q, ss.R.flat, vectors=ss.vectors)
    return inner, s


def _scales(ss: StateSpace) -> FloatArray:
    assert ss.flat is not None
    plain = StateSpace.trusted(ss.tree, ss.n, ss.m, ss.phi, ss.H.flat, ss.Q.flat, ss.R.flat)
    op, columns = Operators(plain), columns_of(ss)
    some = (columns.place[:, i : i + TOGETHER] for i in range(0, columns.most, TOGETHER))
    with np.errstate(over="ignore"):  # refused below
        rows = [(op.H @ op.phi).forward(columns._replace(place=own).rows(ss.n_states)) ** 2 for own in some]
    square = np.concatenate([np.empty((0, ss.n_outputs)), *rows])
    expect_finite_blocks(ss.tree, "the square of what T sees of a flat prior", ss.output_blocks(square), ss.tree.order)
    spread = riccati(plain, np.zeros(ss.n_outputs, dtype=bool)).D  # with nothing seen it is the covariance of T
    variance = spread.diagonals()
    weight = np.where(variance > 0.0, 1.0 / np.where(variance > 0.0, variance, 1.0), 0.0)
    s = np.zeros(ss.n_states)
    for seen, place in zip(square, columns.place.T):
        information = np.bincount(columns.of_output, seen * weight, minlength=place.size)
        exact = np.bincount(columns.of_output, seen, minlength=place.size)
        value = np.where(information > 0.0, information, np.where(exact > 0.0, exact, 1.0))
        s[place[place >= 0]] = 1.0 / np.sqrt(value[place >= 0])
    return s
