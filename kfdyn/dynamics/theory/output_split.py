"""One node's outputs shared out over its parts: which goes where, decorrelated where asked, at which points."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError, as_list, shown
from kfdyn.estimation import StateSpace
from kfdyn.multibody.parts.body import as_floats

ROUNDING = 1e-12  # of a matrix, what leaving states behind may miss of it


class Parts(NamedTuple):
    """The succession of nodes that one node becomes, outermost (the body itself) first; PART (5).

    ``phi`` lead from each part to the next, the last to the parent (None at a root); ``H`` (m_i, n_i), ``Q``
    (n_i, n_i), ``R`` (m_i, m_i); ``carried`` (n_i, n) is φ from the body to the innermost part; ``mix`` (m, m) is W.
    """

    phi: list[Array | None]
    H: list[Array]
    Q: list[Array]
    R: list[Array]
    carried: Array
    mix: Array


def split_node(ss: StateSpace, k: int, groups: list[list[int]], given: Any, decorrelate: bool) -> Parts:
    """Split node k: H(k′) = H_C φ⁻¹(k′,k), Q(k′) = 0, and φ(p,k′) = φ(p,k) φ⁻¹(k′,k)."""
    n = int(ss.n[k])
    W, R = mixing(ss.R[k], [i for group in groups for i in group], decorrelate)
    H, steps = W @ ss.H[k], _steps(ss, k, len(groups) - 1, given)
    out = Parts([], [], [], [], np.eye(n), W)
    carried, at = out.carried, 0
    for part, group in enumerate(groups):
        if part:
            out.phi.append(steps[part - 1])
            carried = steps[part - 1] @ carried
        rows = slice(at, at + len(group))
        at = rows.stop
        out.H.append(_behind(ss, k, H[rows], carried))
        out.Q.append(np.zeros((len(carried), len(carried))) if part else ss.Q[k])
        out.R.append(R[rows, rows])
    out.phi.append(_behind(ss, k, ss.phi[k], carried) if ss.tree.parent[k] >= 0 else None)
    return out._replace(carried=carried)


def share_out(ss: StateSpace, k: int, given: Sequence[Sequence[int]] | None, correlated: str) -> list[list[int]]:
    """Outputs of each part of node k, outermost first; a node without outputs is one part."""
    m = int(ss.m[k])
    try:
        groups = [[i] for i in range(m)] if given is None else [[operator.index(i) for i in part] for part in given]
    except TypeError:
        raise ModelError(
            f"groups of {ss.tree.label(k)} must be lists of numbers of outputs, as [[2], [0, 1]], got {shown(given)}"
        ) from None
    if sorted(i for group in groups for i in group) != list(range(m)) or not all(groups):
        rule = f"they must share out its outputs 0 to {m - 1}, each once" if m else "but it has no outputs; give []"
        raise ModelError(f"groups of {ss.tree.label(k)} are {given}; {rule}")
    if correlated != "decorrelate":
        for i, j in np.argwhere(ss.R[k]).tolist():
            one, two = (next(group for group in groups if index in group) for index in (i, j))
            if one is two:
                continue
            if correlated == "raise":
                raise ModelError(
                    f"{ss.tree.label(k)}: R couples its outputs {min(i, j)} and {max(i, j)}, which are in different "
                    'parts; put them in one group, or say correlated="block" or correlated="decorrelate"'
                )
            one.extend(two)
            groups = [group for group in groups if group is not two]
    return groups or [[]]


def mixing(R: Array, order: list[int], decorrelate: bool) -> tuple[Array, Array]:
    """W and W R W*: the outputs in their order, and multiplied by N⁻¹ of R = N r N* (r diagonal) if asked for.

    A pivot at the rounding of its own variance is 0: that output's noise is already that of the ones before it.
    """
    W = np.eye(len(order))[order]
    left = W @ R @ W.T
    if not decorrelate:
        return W, left
    rounding = 4 * len(order) * np.finfo(float).eps * np.diag(left)
    r = np.zeros(len(order))
    for j in range(len(order)):
        if left[j, j] > rounding[j]:
            r[j] = left[j, j]
            shared = left[j + 1 :, j] / r[j]
            W[j + 1 :] -= np.outer(shared, W[j])
            left[j + 1 :, j + 1 :] -= np.outer(shared, left[j, j + 1 :])
    return W, np.diag(r)


def _steps(ss: StateSpace, k: int, count: int, given: Any) -> list[Array]:
    """Transitions between the parts of node k, (n_i+1, n_i) each, of full rank and never to more states."""
    n = int(ss.n[k])
    if given is None:
        return [np.eye(n)] * count
    what = f"transitions of {ss.tree.label(k)}"
    steps = [as_floats(step, what) for step in as_list(given, what, "give one array for each step inward")]
    sizes = [n, *(len(step) if step.ndim == 2 else -1 for step in steps)]
    shapes = [step.shape for step in steps]
    if len(steps) != count or any(
        shape != (there, here) or not 0 < there <= here for shape, here, there in zip(shapes, sizes, sizes[1:])
    ):
        told = shapes[0] if len(set(shapes)) == 1 else shapes
        raise ShapeError(
            f"transitions of {ss.tree.label(k)} have shape {(len(steps), *told) if isinstance(told, tuple) else told}; "
            f"its {count + 1} parts need {(count, n, n)}, or fewer states from one part to the next"
        )
    if not all(np.isfinite(step).all() and np.linalg.matrix_rank(step) == len(step) for step in steps):
        raise ModelError(f"transitions of {ss.tree.label(k)} must be finite and invertible, as a rigid shift is")
    return steps


def _behind(ss: StateSpace, k: int, matrix: Array, carried: Array) -> Array:
    """The matrix times the inverse of ``carried``; where that leaves states behind, the matrix may not ask for them."""
    if carried.shape[0] == carried.shape[1]:
        return np.asarray(np.linalg.solve(carried.T, matrix.T).T, dtype=np.float64)
    out = np.asarray(matrix @ np.linalg.pinv(carried), dtype=np.float64)
    missed = float(np.abs(out @ carried - matrix).max(initial=0.0))
    if missed > ROUNDING * float(np.abs(matrix).max(initial=0.0)):
        raise ModelError(
            f"transitions of {ss.tree.label(k)} leave states behind that a later part or the parent asks for (by "
            f"{missed:.3g}); measure those first, or keep them"
        )
    return out
