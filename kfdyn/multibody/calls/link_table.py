"""Bodies as sweeps read them: in frames turned to their axes, with bounds of what is outboard."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.multibody.calls.layout import Layout, Numbers

Index = NDArray[np.int64]

#: Of a rotation's entries: less is rounding.
_NOTHING = 1e-15

#: Bodies outboard of one that are very many: the bound of their moment of inertia, which grows with their number's
#: cube, says little then.
_MANY = 1000


def link_table(layout: Layout, index: dict[str, Index]) -> dict[str, Array]:
    """Choose the bodies' frames, describe the bodies in them, and bound what is outboard of each."""
    n, body = len(index["parent"]) - 1, index["body"][1:]
    S = np.concatenate([np.eye(3)[None], _frames(layout, index)])
    own, up = S[1:], S[index["parent"][1:]]
    R = up.transpose(0, 2, 1) @ layout.rotation[body] @ own
    # R = Rz(a) Rx(alpha) Rz(b) of revolute hinges
    revolute = index["kind"][1:] == 0
    twisted = revolute & (np.abs(R[:, 0, 2]) > _NOTHING)
    index["twisted"][1:] = twisted
    r = np.where(twisted, np.hypot(R[:, 0, 2], R[:, 1, 2]), 1.0)
    c, s = np.where(twisted, -R[:, 1, 2] / r, 1.0), np.where(twisted, R[:, 0, 2] / r, 0.0)
    offset = np.arctan2(-(c * R[:, 0, 1] + s * R[:, 1, 1]), c * R[:, 0, 0] + s * R[:, 1, 0])
    tilt = np.stack([R[:, 2, 2], s * R[:, 0, 2] - c * R[:, 1, 2]], axis=1)
    index["loose"] = _loose(layout, index)
    links = {
        "rotation": R.reshape(n, 9), "twist": np.stack([c, s], axis=1), "tilt": tilt, "offset": offset,
        "frame": own.reshape(n, 9),
    }  # fmt: skip
    below = {**links, **own_numbers(layout, index, S)}
    table = {name: np.concatenate([np.zeros((1, *value.shape[1:])), value]) for name, value in below.items()}
    table["frame"][0] = np.eye(3).ravel()
    return table


def own_numbers(layout: Layout | Numbers, index: dict[str, Index], S: Array) -> dict[str, Array]:
    """Return the numbers in which robots of one topology may differ, (..., n, size) by name, in frames S (n + 1, 3, 3).

    Masses, mass centres, moments of inertia, positions and rotors of the layout may have leading axes.
    """
    body = index["body"][1:]
    back, up_back = S[1:].transpose(0, 2, 1), S[index["parent"][1:]].transpose(0, 2, 1)
    J, m = back @ layout.J[..., body, :, :] @ S[1:], layout.mass[..., body]
    p = (back @ layout.com[..., body, :, None])[..., 0]
    position = (up_back @ layout.position[..., body, :, None])[..., 0]
    armature = np.zeros((*layout.armature.shape[:-1], len(body)))
    moves = index["v_end"][1:] > index["v"][1:]
    armature[..., moves] = layout.armature[..., index["v"][1:][moves]]
    upper = J[..., [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
    # J = j + x g* + g x* + y h* + h y* with j = J_zz, g = (., J_xy, J_xz), h = (0, ., J_yz): cheap to turn
    split = upper.copy()
    split[..., 0], split[..., 3] = 0.5 * (upper[..., 0] - upper[..., 5]), 0.5 * (upper[..., 3] - upper[..., 5])
    moment = np.abs(upper[..., [0, 3, 5]]).sum(axis=-1)
    all_mass, all_moment = _bounds(index, m, moment, position)
    return {
        "position": position, "moment": upper, "first": m[..., None] * p, "mass": m, "split": split,
        "armature": armature, "all_mass": all_mass, "all_moment": all_moment,
    }  # fmt: skip


def _frames(layout: Layout, index: dict[str, Index]) -> Array:
    """The bodies' frames in the layout's: z the axis, x the common normal with the axis of the child looked at."""
    body, looks = index["body"][1:], index["looks_at"][1:]
    n, revolute = len(body), index["kind"][1:] == 0
    frames = np.tile(np.eye(3), (n, 1, 1))
    if not revolute.any():
        return frames
    k, child = body[revolute], looks[revolute]
    z = layout.screws[layout.v_start[k], :3]
    z = z / np.sqrt((z * z).sum(axis=1, keepdims=True))
    has = child >= 0
    axis = layout.screws[np.where(has, layout.v_start[child], 0), :3]
    other = (layout.rotation[child] @ axis[:, :, None])[:, :, 0]
    x = np.where(has[:, None], np.cross(z, other), 0.0)
    vague = (x * x).sum(axis=1) < _NOTHING * _NOTHING  # parallel axes, or none: any x will do
    x = np.where(vague[:, None], np.where(np.abs(z[:, :1]) < 0.7, [[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]]), x)
    for _ in range(2):  # twice is enough, even if x was made of rounding
        x = x / np.sqrt((x * x).sum(axis=1, keepdims=True))
        x = x - (x * z).sum(axis=1, keepdims=True) * z
    x = x / np.sqrt((x * x).sum(axis=1, keepdims=True))
    frames[revolute] = np.stack([x, np.cross(z, x), z], axis=2)
    return frames


def _loose(layout: Layout, index: dict[str, Index]) -> Index:
    """1 if something outboard of a body slides, so that its bound says little; 2 if very many bodies are."""
    parent, kind, end = index["parent"].tolist(), index["kind"].tolist(), index["end"].tolist()
    loose = [0] * len(parent)
    slides = np.concatenate([[0], np.cumsum(layout.screws[:, 3:].any(axis=1))])
    first, last = index["v"].tolist(), index["v_end"].tolist()
    for t in range(len(parent) - 1, 0, -1):
        p = parent[t]
        moved = kind[t] == 4 or loose[t] > 0 or (1 <= kind[t] <= 2 and slides[last[t]] > slides[first[t]])
        if end[t] - t > _MANY:
            loose[p] = 2
        elif moved and loose[p] == 0:
            loose[p] = 1
    return np.array(loose)


def _bounds(index: dict[str, Index], mass: Array, moment: Array, position: Array) -> tuple[Array, Array]:
    """Mass outboard (..., n), and a bound of its moment of inertia about the hinge point where nothing slides."""
    masses, moments, reach = ([0.0, *_columns(x)] for x in (mass, moment, (position * position).sum(axis=-1)))
    parent = index["parent"].tolist()
    for t in range(len(parent) - 1, 0, -1):
        p, away = parent[t], masses[t] * reach[t]
        masses[p] = masses[p] + masses[t]
        moments[p] = moments[p] + moments[t] + 2.0 * (moments[t] * away) ** 0.5 + away
    if not mass.shape[-1]:
        return mass, moment
    return np.stack(masses[1:], axis=-1), np.stack(moments[1:], axis=-1)


def _columns(x: Array) -> list[Any]:
    """Numbers of each body: Python's own, which are the quickest, or arrays where there are leading axes."""
    return x.tolist() if x.ndim == 1 else list(np.moveaxis(x, -1, 0))
