"""The square-root form of the filter and the smoother: roots of covariances, never the covariances themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from kfdyn.estimation.blocks import Blocks, FloatArray, IntArray, offsets_of
from kfdyn.estimation.overflow import expect_finite_blocks
from kfdyn.estimation.riccati import BoolArray, Riccati, SmoothedCovariances, common_sizes, frozen
from kfdyn.estimation.roots import noise_roots, of_seen
from kfdyn.estimation.state_space import StateSpace
from kfdyn.estimation.sweeps import count_rows


class _Scattered(NamedTuple):
    """What the scatter of the roots leaves for states: P(s)^½, Y, Y'; and S (empty if not wanted)."""

    after: FloatArray
    back: FloatArray
    aside: FloatArray
    S: FloatArray


class Layout(NamedTuple):
    """Where the (n_p, n_p) and (n_k, n_p) blocks of each child begin, and whether it was its parent's first child."""

    before_at: IntArray
    step_at: IntArray
    first: BoolArray


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

    P_root: Blocks = field(repr=False, default=None)  # type: ignore[assignment]
    P_plus_root: Blocks = field(repr=False, default=None)  # type: ignore[assignment]
    before: FloatArray = field(repr=False, default=None)  # type: ignore[arg-type]
    layout: Layout = field(repr=False, default=None)  # type: ignore[assignment]

    @cached_property
    def smoothed(self) -> SmoothedCovariances:
        """Λ(k), a sum of squares by its own recursion, and S(k) by arrays (THEORY section 14)."""
        S = self.ss.Q.like(frozen(self._scattered.S))
        expect_finite_blocks(self.ss.tree, "S", S, self.ss.tree.order[::-1])
        return SmoothedCovariances(self.Lambda, S)

    @cached_property
    def _scattered(self) -> _Scattered:
        return self._arrays(covariances=True)

    @cached_property
    def _steps(self) -> _Scattered:
        """The part that states need, without the roots of S if those have not been asked for."""
        return self._scattered if "_scattered" in self.__dict__ else self._arrays(covariances=False)

    def _arrays(self, covariances: bool) -> _Scattered:
        from kfdyn.estimation.recursions.square_root import scatter_roots, scatter_work

        ss, x, layout = self.ss, self.ss.arrays, self.layout
        wanted = ss.Q.flat.size if covariances else 0
        result = _Scattered(
            np.empty(self.before.size), np.empty(int(layout.step_at[-1])), np.empty(self.before.size), np.empty(wanted)
        )
        scatter_roots(
            self.sizes.n, x.order, x.parent, x.state, x.phi, x.phi_at, x.Q_at, *layout, self.P_plus_root.flat,
            self.before, *result, np.empty(wanted), np.empty(wanted), np.empty(scatter_work(ss.common.most_states)),
        )  # fmt: skip
        return result

    def smooth_states(self, z: FloatArray, z_plus: FloatArray) -> FloatArray:
        """x̂ of a batch from the filter's z and z⁺, both (..., Σn_k)."""
        from kfdyn.estimation.recursions.square_root import smooth_states

        ss, steps = self.ss, self._steps
        x = np.empty(z.size)
        smooth_states(
            self.sizes.n, ss.arrays.order, ss.arrays.parent, ss.arrays.state, *self.layout,
            steps.after, steps.back, steps.aside, count_rows(z.shape[:-1]), np.ascontiguousarray(z).reshape(-1),
            np.ascontiguousarray(z_plus).reshape(-1), x, np.empty(ss.n_states + ss.common.most_states + 1),
        )  # fmt: skip
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
    from kfdyn.estimation.recursions.square_root import gather_roots, gather_work

    x, sizes, layout = ss.arrays, common_sizes(ss), layout_of(ss)
    P_root, R_root = noise_roots(ss)
    P_root, P_plus_root = P_root.copy(), np.empty_like(P_root)
    before, P, P_plus = np.empty(int(layout.before_at[-1])), np.empty_like(P_root), np.empty_like(P_root)
    D, L, G = np.empty_like(R_root), np.empty_like(R_root), np.empty_like(ss.H.flat)
    failed = gather_roots(
        sizes.n, x.order, x.parent, x.state, x.output, x.phi, x.phi_at, x.H, x.H_at, x.Q_at, x.R,
        of_seen(ss, R_root, seen), x.R_at, seen, layout.before_at, P_root, P_plus_root, before, P, P_plus, D, L, G,
        np.empty(gather_work(ss.common.most_states, ss.common.most_outputs)), sizes.m,
    )  # fmt: skip
    if failed >= 0:
        raise RootFailure(int(failed), ss.Q.like(P))
    for array in (P_root, P_plus_root, P, P_plus, D, L, G):
        frozen(array)
    gains = Blocks(G, ss.n, ss.m, ss.H.offsets)
    roots = (ss.Q.like(P_root), ss.Q.like(P_plus_root))
    result = RootRiccati(
        ss, frozen(seen.copy()), ss.Q.like(P), ss.Q.like(P_plus), ss.R.like(D), ss.R.like(L), gains, sizes, *roots,
        before, layout,
    )  # fmt: skip
    for name, blocks in (("P", result.P), ("D", result.D), ("P⁺", result.P_plus), ("G", result.G)):
        expect_finite_blocks(ss.tree, name, blocks, ss.tree.order)
    return result


def layout_of(ss: StateSpace) -> Layout:
    """The layout of a model's children, in the order in which the gather takes them."""
    tree = ss.tree
    above = np.where(tree.parent >= 0, ss.n[tree.parent], 0)
    first = np.zeros(len(ss), dtype=bool)
    if tree.is_chain:
        first[:] = tree.parent >= 0
    else:
        inner = tree.order[tree.parent[tree.order] >= 0][::-1]
        earliest = np.full(len(ss), -1)
        earliest[tree.parent[inner]] = inner  # the last one written is the first in order
        first[earliest[earliest >= 0]] = True
    return Layout(offsets_of(above * above), offsets_of(above * ss.n), first)
