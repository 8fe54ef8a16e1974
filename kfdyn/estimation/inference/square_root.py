"""The square-root form of the filter and the smoother: factors of covariances, never the covariances themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from kfdyn.estimation.inference.batching import as_rows, count_rows, over_rows
from kfdyn.estimation.inference.filter_covariances import (
    BoolArray,
    Riccati,
    SmoothedCovariances,
    common_sizes,
    covariances_to_fill,
    finished,
    frozen,
)
from kfdyn.estimation.model.blocks import Blocks, FloatArray
from kfdyn.estimation.model.covariance_factors import noise_roots, of_seen
from kfdyn.estimation.model.overflow import expect_finite_blocks
from kfdyn.estimation.model.state_space import StateSpace

_LARGEST_IN_LANES = 16  # states; of larger blocks, several side by side leave the nearest cache


@dataclass(frozen=True, eq=False)
class RootRiccati(Riccati):
    """Covariances of the filter in square-root form, for one model and one pattern of missing measurements.

    The attributes are those of :class:`Riccati`; P, P⁺ and D are products of their roots, so they are positive
    semi-definite whatever the rounding, and a variance may be 1e-30 of another.

    Attributes
    ----------
    P_root, P_plus_root : Blocks of (n_k, n_k)
        P^½, lower triangular, and P⁺^½, square.

    Examples
    --------
    >>> import kfdyn as kf
    >>> one = [[1.0]]
    >>> walk = kf.StateSpace.chain(one, one, one, one, x0=[0.0], P0=one, steps=50)
    >>> round(kf.riccati(walk, method="square_root").P_root[49].item() ** 2, 9)
    1.618033989
    """

    roots: Any = field(repr=False, default=None)
    by_roots: ClassVar[bool] = True

    @cached_property
    def P_root(self) -> Blocks:
        """P^½(k), lower triangular."""
        return self._unpacked(self.roots.P)

    @cached_property
    def P_plus_root(self) -> Blocks:
        """P⁺^½(k), square."""
        return self._unpacked(self.roots.P_plus)

    def _unpacked(self, stored: FloatArray) -> Blocks:
        """Blocks whose columns the sweeps keep one after the other, each as high as a register."""
        out, at = self.ss.Q.like(np.empty(self.ss.Q.flat.size)), self.roots.own_at
        for nodes, some in out.grouped():
            n = some.shape[1]
            high = (at[nodes[0] + 1] - at[nodes[0]]) // max(n, 1)
            columns = stored[at[nodes, None] + np.arange(n * high)].reshape(-1, n, high)[:, :, :n]
            out.flat[out.places(nodes, n * n)] = columns.transpose(0, 2, 1).reshape(nodes.size, -1)
        frozen(out.flat)
        return out

    @cached_property
    def smoothed(self) -> SmoothedCovariances:
        """Λ(k), a sum of squares by its own recursion, and S(k) by arrays (THEORY section 14)."""
        from kfdyn.estimation.recursions.square_root.smoothed_roots import scatter_roots, scatter_work

        ss, steps, S = self.ss, self._step_back(covariances=True), np.empty(self.ss.Q.flat.size)
        self.__dict__["_steps"] = steps.M, steps.M_aside  # Z is used up here
        work = np.empty(scatter_work(ss.common.most_states))
        scatter_roots(self.sizes, ss.address, self.roots, steps, S, work)
        blocks = ss.Q.like(frozen(S))
        expect_finite_blocks(ss.tree, "S", blocks, ss.tree.order[::-1])
        return SmoothedCovariances(self.Lambda, blocks)

    @cached_property
    def _steps(self) -> tuple[FloatArray, FloatArray]:
        """Return the maps of states from parents to children: M and M'."""
        steps = self._step_back(covariances=False)
        return steps.M, steps.M_aside

    def _step_back(self, covariances: bool) -> Any:
        from kfdyn.estimation.recursions.square_root.steps import Steps, step_back, step_work
        from kfdyn.sweeps import Tag

        ss, lanes, room = self.ss, _lanes(self.ss), self.roots.before.size
        of_roots = (self.roots.P_plus.size, room) if covariances else (0, 0)
        M = np.empty(int(self.roots.step_at[-1]))
        steps = Steps(M, np.empty(of_roots[0]), np.empty(room), np.empty(of_roots[1]))
        tags = lanes, self.sizes, Tag(1) if covariances else None
        work = np.empty(lanes * step_work(ss.common.most_states))
        step_back(*tags, ss.address, self.roots, steps, work)
        return steps

    def smooth_states(self, z: FloatArray, z_plus: FloatArray) -> FloatArray:
        """x̂ of a batch from the filter's z and z⁺, both (..., Σn_k)."""
        from kfdyn.estimation.recursions.square_root.smoothed_roots import Gaps, RootedRows, smooth_states

        ss, x = self.ss, np.empty(z.size)
        rows = RootedRows(as_rows(z), as_rows(z_plus), x, *self._steps)
        over_rows(
            count_rows(z.shape[:-1]),
            Gaps.size(ss.n_states, ss.common.most_states),
            lambda lanes, share: smooth_states(lanes, self.sizes, ss.address, self.roots, rows, share),
        )
        out = x.reshape(z.shape)
        expect_finite_blocks(ss.tree, "x̂", ss.state_blocks(out), ss.tree.order[::-1])
        return out


class RootFailure(Exception):
    """An innovation that is no more than rounding of its root; ``output`` is its stacked number."""

    def __init__(self, output: int, P: Blocks) -> None:
        super().__init__(output)
        self.output, self.P = output, P


def run_roots(ss: StateSpace, seen: BoolArray) -> RootRiccati:
    """Run the gather of the roots; raises RootFailure where some D(k) is singular."""
    from kfdyn.estimation.recursions.square_root.square_root import gather_roots, gather_work

    sizes, seen = common_sizes(ss), seen.copy()
    places, (Q_root, R_root) = _layout(ss, sizes), noise_roots(ss)
    P_root, P_plus_root = np.empty((2, int(places.own_at[-1])))
    before = np.empty(int(places.before_at[-1]))
    roots = places._replace(Q=Q_root, R=of_seen(ss, R_root, seen), P=P_root, P_plus=P_plus_root, before=before)
    found, flats = covariances_to_fill(ss, seen)
    work = np.empty(gather_work(ss.common.most_states, ss.common.most_outputs))
    failed = gather_roots(sizes, ss.address, flats, roots, work)
    if failed >= 0:
        raise RootFailure(int(failed), ss.Q.like(flats.P))
    return finished(RootRiccati, ss, found, flats, sizes, roots)


def _lanes(ss: StateSpace) -> Any:
    """Return the number of nodes that go side by side."""
    from kfdyn.sweeps import Checks, Tag
    from kfdyn.sweeps.compiler.driver import machine

    return Tag(1 if Checks.on or ss.common.most_states > _LARGEST_IN_LANES else machine().lanes)


def _layout(ss: StateSpace, sizes: Any) -> Any:
    """Lay out the factors of a model's nodes and the children that go side by side; the last five arrays are empty."""
    from kfdyn.estimation.recursions.square_root.layout import Roots, kinds, lay_out

    N, lanes = len(ss), _lanes(ss)
    count = kinds(lanes, sizes.n is not None, ss.common.most_states)
    (own, before, step), first = np.empty((3, N + 1), dtype=int), np.empty(N, dtype=bool)
    members, starts, none = np.empty(N, dtype=int), np.empty(count + 1, dtype=int), np.empty(0)
    roots = Roots(own, before, step, first, members, starts, none, none, none, none, none)
    lay_out(lanes, sizes, ss.address, roots, np.zeros(N, dtype=int), np.zeros(count, dtype=int))
    return roots
