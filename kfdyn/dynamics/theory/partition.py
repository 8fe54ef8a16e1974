"""Hinges split over mass-less bodies: the univariate treatment of a vector measurement (PART).

A universal joint is two pins with a mass-less body between them. In the filter, a vector measurement T(k) is taken in
part by part at successive nodes without process noise. Neither changes anything but the size of the divisions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.dynamics.theory.hinge_partition import Partition
from kfdyn.dynamics.theory.output_split import Parts, share_out, split_node
from kfdyn.errors import ModelError, ShapeError, shown
from kfdyn.estimation import StateSpace, Tree
from kfdyn.estimation.model.state_space import expect_model
from kfdyn.multibody import FlexibleSystem, System
from kfdyn.multibody.calls.arguments import expect_system
from kfdyn.multibody.kinds import expect_open

Groups = Sequence[Sequence[Sequence[int]] | None]


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
    expect_model(ss)
    if correlated not in ("raise", "block", "decorrelate"):
        raise ModelError(f"correlated must be 'raise', 'block' or 'decorrelate', not {correlated!r}")
    if groups is not None and not isinstance(groups, Sequence | np.ndarray):
        raise ShapeError(f"groups must be a sequence over the nodes, got {shown(groups)}")
    if groups is not None and len(groups) != len(ss):
        raise ShapeError(
            f"groups has {len(groups)} entries, but there are {len(ss)} nodes; give one (or None) for each"
        )
    if not isinstance(transitions, Mapping | None):
        raise ModelError(f"transitions must map nodes to arrays, as in {{2: [phi]}}, got {shown(transitions)}")
    given = {} if transitions is None else dict(transitions)
    for k in given:
        if not isinstance(k, int | np.integer) or not 0 <= k < len(ss):
            raise ModelError(f"transitions names node {shown(k)}, but there are only the nodes 0 to {len(ss) - 1}")
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
    blocks = [block for parts in nodes for block in parts.Q]
    whole = np.array([len(block) for block in blocks]) == ss.n[owner]
    split = StateSpace(
        Tree(parent, names),
        [step for parts in nodes for step in parts.phi],
        [block for parts in nodes for block in parts.H],
        blocks,
        [block for parts in nodes for block in parts.R],
        xi=_placed(ss, ss.xi, nodes, inward=False),
        eta=_placed(ss, ss.eta, nodes, inward=True),
        vectors=None if ss.vectors is None else ss.vectors[owner] & whole,
    )
    return Partition(ss, split, body, base, owner, [parts.mix for parts in nodes])


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
    expect_open(system, "succession")
    groups = []
    for n, hinge in zip(np.diff(system.places.v_start).tolist(), system.places.hinges):
        modes = [list(range(hinge.nv, n))] if n > hinge.nv else []  # first: the body's own, the hinge is behind them
        groups.append(modes + [[i] for i in reversed(range(hinge.nv))])
    return groups


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
    expect_system(system)
    found = {}
    for k, (n, m) in enumerate(zip(system.modes.tolist(), system.hinge_v.tolist())):
        if n and m:
            found[k] = [np.eye(n + 6)[n:]] + [np.eye(6)] * (m - 1)
    return found
