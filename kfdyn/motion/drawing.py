"""A motion over time: positions, velocities and forces of each hinge, with bands of two standard deviations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kfdyn.errors import ModelError, ShapeError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST = 6  # dofs that are drawn if nobody names them
_COLORS = ("#1f6f8b", "#99622d", "#3d7a3a")


def draw_columns(
    columns: Sequence[tuple[str, np.ndarray, np.ndarray, np.ndarray | None]], names: Sequence[str], dofs: Sequence[int]
) -> Figure:
    """Draw a grid: a row a dof, a column each of (title, times, values (N, nv), deviations or None)."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        len(dofs), len(columns), figsize=(3.4 * len(columns), 1.0 + 1.3 * len(dofs)), squeeze=False, sharex=True,
        layout="constrained",
    )  # fmt: skip
    for row, i in zip(axes, dofs):
        for axis, color, (title, t, value, deviation) in zip(row, _COLORS * 3, columns):
            axis.plot(t, value[:, i], color=color, linewidth=1.3)
            if deviation is not None:
                low, high = value[:, i] - 2 * deviation[:, i], value[:, i] + 2 * deviation[:, i]
                axis.fill_between(t, low, high, color=color, alpha=0.25, linewidth=0)
            axis.margins(x=0)
            axis.grid(alpha=0.25)
            if i == dofs[0]:
                axis.set_title(title, fontsize=10)
            if i == dofs[-1]:
                axis.set_xlabel("time (s)")
        row[0].set_ylabel(names[i], fontsize=9)
    return figure


def chosen(names: Sequence[str], hinges: Any) -> list[int]:
    """Places of the dofs to draw, the first ones if nobody names them."""
    if hinges is None:
        return list(range(min(_MOST, len(names))))
    wanted = [hinges] if isinstance(hinges, str) else list(hinges)
    out = [i for want in wanted for i, name in enumerate(names) if want in (name, name.split(".")[0], i)]
    if not out:
        raise ModelError(f"no dof is named {hinges!r}; there are {', '.join(names)}")
    return out


def draw_motion(post: Any, hinges: Any = None) -> Figure:
    """Draw a motion as a filter or a smoother found it."""
    model = post.model
    if post.x.ndim != 2:
        raise ShapeError("one figure draws one motion; take an entry of the batch")
    names = [name[2:-1] for name in model.state_names[: model.system.nv]]
    q, title = post.q, "position"
    if q.shape[1] != model.system.nv:  # of hinges that turn, what they moved since the start
        title = "moved since the start"
        q = model.states.minus(post.x, np.broadcast_to(post.x[0], post.x.shape))[:, : model.system.nv]
    known = post.cov is not None
    columns = [
        (title, post.t, q, post.std("q") if known else None),
        ("velocity", post.t, post.v, post.std("v") if known else None),
    ]
    force = getattr(post, "force", None)  # a filter does not know it
    if force is not None:
        columns.append(
            ("force nobody ordered", post.t[: len(force)], force, post.std("force") if known else None),
        )  # fmt: skip
    return draw_columns(columns, names, chosen(names, hinges))
