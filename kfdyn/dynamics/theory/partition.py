"""Hinges split over mass-less bodies: the univariate treatment of a vector measurement (PART).

A universal joint is two pins with a mass-less body between them. In the filter, a vector measurement T(k) is taken in
part by part at successive nodes without process noise. Neither changes anything but the size of the divisions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.dynamics.forest import expect_tree
from kfdyn.dynamics.parts import Parts, share_out, split_node
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation import Blocks, StateSpace, Tree
from kfdyn.estimation.riccati import Riccati, riccati
from kfdyn.multibody import FlexibleSystem, System

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Groups = Sequence[Sequence[Sequence[int]] | None]


class MergedCovariances(NamedTuple):
    """Quantities of whole hinges put together from those of their parts; lists over the nodes of the whole."""

    P: list[Array]
    P_plus: list[Array]
    D: list[Array]
    D_inverse: list[Array]
    G: list[Array]


@dataclass(frozen=True, eq=False)
class Partition:
    """A model whose outputs are split over mass-less nodes, and the way back.

    Attributes
    ----------
    whole, ss : StateSpace
        The model as given, and the split one.
    body, base : ndarray of int, shape (N,)
        Node of ``ss`` that is node k of ``whole`` (outermost, with its Q), and the innermost of its mass-less nodes
        (k itself if it has none), which hangs on ``body`` of the parent.
    owner : ndarray of int, shape (len(ss),)
        Node of ``whole`` that each node of ``ss`` is a part of.
    mix : list of (m_k, m_k) arrays
        W(k): the parts' outputs are W(k) T(k), a permutation or, where a full R was decorrelated, a triangular mix.

    Examples
    --------
    A ball joint as three pins; the parts know which body they belong to, and merge to the whole:

    >>> import numpy as np, kfdyn as kf
    >>> arm = kf.System([kf.Body("arm", np.diag([1.0, 2.0, 3.0, 4.0, 4.0, 4.0]), kf.Hinge.ball())])
    >>> split = kf.partition_hinges(kf.as_estimation(arm, arm.neutral()))
    >>> split.owner, split.merge().D[0].diagonal()
    (array([0, 0, 0]), array([1., 2., 3.]))
    """

    whole: StateSpace
    ss: StateSpace
    body: Index = field(repr=False)
    base: Index = field(repr=False)
    owner: Index = field(repr=False)
    mix: list[Array] = field(repr=False)

    def split_outputs(self, T: ArrayLike) -> Array:
        """Measurements of the parts, (..., Σm_k) to (..., Σm_k): W T, node by node; NaN stays where it belongs."""
        given = self.whole.check_outputs(T, "T", allow_nan=True)
        out = np.empty_like(given)
        for k, (at, W) in enumerate(zip(pairwise(self.whole.arrays.output), self.mix)):
            own = given[..., slice(*at)]
            missing = np.isnan(own)
            if missing.any() and not missing.all() and np.count_nonzero(W) > len(W):
                raise ModelError(
                    f"{self.whole.tree.label(k)} has a part of its outputs missing, but they were mixed to decorrelate "
                    'R; partition with correlated="block" to keep them together'
                )
            told = np.where(missing, 0.0, own) @ W.T
            told[(missing[..., None, :] & (W != 0)).any(axis=-1)] = np.nan
            out[..., slice(*at)] = told
        return out

    def merge_outputs(self, a: ArrayLike) -> Array:
        """Accelerations of the whole from those of the parts, (..., Σm_k): W* a, node by node."""
        given = self.ss.check_outputs(a, "a")
        parts = [given[..., slice(*at)] @ W for at, W in zip(pairwise(self.whole.arrays.output), self.mix)]
        return np.concatenate(parts, axis=-1)

    def merge_states(self, parts: Blocks) -> list[Array]:
        """Quantities of the whole's nodes: x, λ, z, P, Λ and S are those of the nodes that carry the bodies."""
        return [parts[k] for k in self.body]

    def merge(self, covariances: Riccati | None = None) -> MergedCovariances:
        """P, P⁺, D, D⁻¹ and G of the whole from the Riccati solution of the parts.

        ::

            D̲⁻¹ = [[D⁻¹, 0], [0, 0]] + [−G*H_C*; 1] D⁻¹(k′) [−H_C G, 1]            PART (9)
            G̲   = [G, 0] + P⁺ H_C* D⁻¹(k′) [−H_C G, 1]                             PART (10)
            P̲⁺  = P⁺ − P⁺ H_C* D⁻¹(k′) H_C P⁺                                      PART (18)

        with H_C = H(k′) φ(k′,k), one part after the other. Hold for any R that has no blocks between the parts.

        Parameters
        ----------
        covariances : Riccati, optional
            Of ``ss``; computed if not given.
        """
        cov = riccati(self.ss) if covariances is None else covariances
        if cov.ss is not self.ss or not cov.observed.all():
            raise ModelError(
                "merge needs the Riccati solution of the split model, Partition.ss, with every output seen"
            )
        out = MergedCovariances([], [], [], [], [])
        for k, W in enumerate(self.mix):
            body = int(self.body[k])
            P_plus, D, G = cov.P_plus[body], cov.D[body], cov.G[body]
            D_inverse, carried = np.linalg.inv(D), np.eye(len(P_plus))
            for part in range(body + 1, int(self.base[k]) + 1):
                carried = self.ss.phi[part - 1] @ carried  # φ(k′,k)
                H_C, D_part = self.ss.H[part] @ carried, cov.D[part]
                reach = np.hstack([-H_C @ G, np.eye(len(H_C))])
                cross = D @ G.T @ H_C.T
                D = np.block([[D, cross], [cross.T, H_C @ G @ cross + D_part]])
                D_inverse = _bordered(D_inverse, reach, D_part)
                gain = np.linalg.solve(D_part, H_C @ P_plus).T
                G = np.hstack([G, np.zeros((len(G), len(H_C)))]) + gain @ reach
                P_plus = P_plus - gain @ H_C @ P_plus
            unmix = np.linalg.inv(W)
            parts = (cov.P[body], P_plus, unmix @ D @ unmix.T, W.T @ D_inverse @ W, G @ W)
            for own, value in zip(out, parts):
                own.append(value)
        return out


def partition_hinges(
    ss: StateSpace,
    groups: Groups | None = None,
    *,
    transitions: Mapping[int, ArrayLike | Sequence[ArrayLike]] | None = None,
    correlated: Literal["raise", "block", "decorrelate"] = "raise",
) -> Partition:
    """Split every node with several outputs into a succession of nodes, all but the outermost without mass.

    ::

        φ(p,k) = φ(p,k′) φ(k′,k),   H(k) = [H(k″); H(k′) φ(k′,k)],   Q(k′) = 0        PART (5)

    P(k), Λ(k) and every estimate at the bodies stay what they were (Lemmas 2.1, 3.3, 4.1); with one output for each
    part, the filter divides by scalars only. In estimation this is ``kalman_filter(..., method="univariate")``.

    Parameters
    ----------
    ss : StateSpace
        The model; of a robot, ``as_estimation(system, q, v)``.
    groups : sequence over the nodes, optional
        ``groups[k]`` lists the outputs of each part, outermost part first: ``[[2], [0, 1]]``; None for one output
        each in their own order, which is also the default. See :func:`succession` for robots.
    transitions : mapping from node to array (parts − 1, n_k, n_k) or sequence of arrays, optional
        φ(k′,k), φ(k″,k′), ...: where the mass-less bodies sit. The identity where not given. They may lead to fewer
        states, of which alone later parts and the parent may ask: see :func:`behind_modes`.
    correlated : {"raise", "block", "decorrelate"}
        What to do where R(k) couples different parts, which no succession of nodes can: refuse; keep the coupled
        parts together as one; or measure N⁻¹T with R = N r N*, r diagonal.

    Returns
    -------
    Partition
        ``ss``, the split model, and the maps between its quantities and those of the whole.

    Notes
    -----
    O(N). η goes to the innermost part, so that the parts' innovations are those of the univariate filter.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> from kfdyn.dynamics import as_estimation
    >>> arm = kf.System([kf.Body("arm", np.diag([1.0, 2.0, 3.0, 4.0, 4.0, 4.0]), kf.Hinge.ball())])
    >>> whole = as_estimation(arm, arm.neutral(), [0.1, 0.2, 0.3])
    >>> split = partition_hinges(whole)
    >>> split.ss
    StateSpace(3 nodes, states 18 (6 each), outputs 3 (1 each), R = 0)
    >>> filt = kf.kalman_filter(split.ss, split.split_outputs([1.0, 1.0, 1.0]))
    >>> a = split.merge_outputs(kf.bryson_frazier(split.ss, filt).a)
    >>> bool(np.allclose(a, kf.forward_dynamics(arm, arm.neutral(), [0.1, 0.2, 0.3], [1.0, 1.0, 1.0])))
    True
    """
    if correlated not in ("raise", "block", "decorrelate"):
        raise ModelError(f"correlated must be 'raise', 'block' or 'decorrelate', not {correlated!r}")
    if groups is not None and len(groups) != len(ss):
        raise ShapeError(
            f"groups has {len(groups)} entries, but there are {len(ss)} nodes; give one (or None) for each"
        )
    given = {} if transitions is None else dict(transitions)
    for k in given:
        if not 0 <= k < len(ss):
            raise ModelError(f"transitions names node {k}, but there are only the nodes 0 to {len(ss) - 1}")
    nodes = [
        split_node(
            ss,
            k,
            share_out(ss, k, None if groups is None else groups[k], correlated),
            given.get(k),
            decorrelate=correlated == "decorrelate",
        )
        for k in range(len(ss))
    ]
    count = np.array([len(parts.H) for parts in nodes], dtype=np.int64)
    base = np.cumsum(count) - 1
    body = base - count + 1
    parent = np.arange(1, count.sum() + 1)  # each part on the next one inward, the innermost on the parent's body
    parent[base] = np.where(ss.tree.parent >= 0, body[ss.tree.parent], -1)
    owner = np.repeat(np.arange(len(ss)), count)
    names = [
        (ss.tree.names[k] if ss.tree.names else str(k)) + "'" * int(i - body[k]) for i, k in enumerate(owner.tolist())
    ]
    split = StateSpace(
        Tree(parent, names),
        [step for parts in nodes for step in parts.phi],
        [block for parts in nodes for block in parts.H],
        [block for parts in nodes for block in parts.Q],
        [block for parts in nodes for block in parts.R],
        xi=_placed(ss, ss.xi, nodes, inward=False),
        eta=_placed(ss, ss.eta, nodes, inward=True),
    )
    return Partition(ss, split, body, base, owner, [parts.mix for parts in nodes])


def succession(system: System) -> list[list[list[int]]]:
    """Groups that split every hinge of a robot into its single degrees of freedom, as its axes follow one another.

    The first degree of freedom is next to the parent, the last next to the body (PART section 2), so the last comes
    first here. The modes of a body that bends are its own, one group before those of its hinge.

    Parameters
    ----------
    system : System
        The robot.

    Returns
    -------
    list of list of list of int
        ``groups`` of :func:`partition_hinges`.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> arm = kf.System([kf.Body("arm", np.eye(6), kf.Hinge.universal())])
    >>> succession(arm)
    [[[1], [0]]]
    """
    if isinstance(system, FlexibleSystem):  # modes first: they are the body's own, the hinge is behind them
        hinges, modes = system.hinge_v.tolist(), system.modes.tolist()
        return [
            [[m + i for i in range(n)]] * (n > 0) + [[i] for i in reversed(range(m))] for m, n in zip(hinges, modes)
        ]
    expect_tree(system, "succession")
    return [[[i] for i in reversed(range(body.hinge.nv))] for body in system.bodies]


def behind_modes(system: FlexibleSystem) -> dict[int, list[Array]]:
    """Transitions that leave the modes of bodies that bend behind: [0, 1], from their n + 6 states to six.

    With :func:`succession` this is PART's split of modes from hinge: the hinge is at a mass-less node of six states, as
    a rigid body's is, and only the modes pay for their number.

    Parameters
    ----------
    system : FlexibleSystem
        The robot; of a rigid one there is nothing to leave behind.

    Returns
    -------
    dict of int to list of arrays
        ``transitions`` of :func:`partition_hinges`.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> from kfdyn.dynamics import behind_modes, partition_hinges, succession
    >>> rod = kf.beam("rod", 1.0, 2.0, bending=(0.0, 50.0), modes=3, hinge=kf.Hinge.revolute([0, 1, 0]))
    >>> arm = kf.FlexibleSystem([rod])
    >>> whole = kf.as_estimation(arm, arm.neutral())
    >>> split = partition_hinges(whole, succession(arm), transitions=behind_modes(arm))
    >>> whole.n, whole.m, split.ss.n, split.ss.m
    (array([9]), array([4]), array([9, 6]), array([3, 1]))
    """
    found = {}
    for k, (n, m) in enumerate(zip(system.modes.tolist(), system.hinge_v.tolist())):
        if n and m:
            found[k] = [np.eye(n + 6)[n:]] + [np.eye(6)] * (m - 1)
    return found


def _placed(ss: StateSpace, u: Array | None, nodes: Sequence[Parts], inward: bool) -> Array | None:
    """A stacked input at the bodies (ξ), or moved inward to the innermost parts (η: φ*(k′,k) η(k′) = η(k))."""
    if u is None:
        return None
    pieces = [np.zeros((*u.shape[:-1], 0))]
    for k, (own, parts) in enumerate(zip(ss.state_blocks(u), nodes)):
        sizes = [len(Q) for Q in parts.Q]
        if not inward:
            pieces += [own, np.zeros((*u.shape[:-1], sum(sizes[1:])))]
            continue
        moved = own @ np.linalg.pinv(parts.carried) if sizes[-1] < sizes[0] else _solved(parts.carried, own)
        if np.abs(moved @ parts.carried - own).max(initial=0.0) > 1e-9 * np.abs(own).max(initial=0.0):
            raise ModelError(f"transitions of {ss.tree.label(k)} leave states behind in which η is not 0; keep them")
        pieces += [np.zeros((*u.shape[:-1], sum(sizes[:-1]))), moved]
    return np.concatenate(pieces, axis=-1)


def _solved(carried: Array, own: Array) -> Array:
    return np.asarray(np.linalg.solve(carried.T, own[..., None])[..., 0])


def _bordered(inverse: Array, reach: Array, D_part: Array) -> Array:
    """PART (9): the inverse of D grown by one part."""
    m = len(inverse)
    out = reach.T @ np.linalg.solve(D_part, reach)
    out[:m, :m] += inverse
    return out
