"""Describe a system in words: sizes, the tree with its hinges and masses, oddities."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kfdyn.io.load_result import Loaded, listed, not_obeyed
from kfdyn.multibody import Body, System
from kfdyn.multibody.calls.arguments import expect_system
from kfdyn.multibody.kinds import expect_rigid

DEEPEST = 16  # levels drawn as branches; beyond, the level is written as a number
WIDEST = 44  # characters of a column


def describe(system: System | Loaded, most: int = 80) -> str:
    """Describe a system for a terminal.

    Parameters
    ----------
    system : System or Loaded
        With a :class:`Loaded`, the notes of the file are among the warnings.
    most
        Bodies to list; the rest are counted.

    Returns
    -------
    str
        A headline, the tree (body, hinge, motion, place in v, limits of q, mass), warnings, and what
        :func:`kfdyn.simulate` ignores unless asked.

    Examples
    --------
    >>> from kfdyn.multibody.models import double_pendulum
    >>> print(describe(double_pendulum()))
    double pendulum: 2 bodies, 2 dofs, nq 2, mass 2 kg, gravity (0, 0, -9.81)
    <BLANKLINE>
    body       hinge     motion             v  mass
    world
    └ upper    shoulder  revolute, axis +y  0  1 kg
      └ lower  elbow     revolute, axis +y  1  1 kg
    """
    if not isinstance(system, Loaded):
        expect_system(system)
        system = Loaded(system, system.name)
    loaded = system
    system = loaded.system
    expect_rigid(system, "describe", "print(system) tells its bodies and modes")
    loaded = loaded.remarked(note for note in not_obeyed(system) if note not in loaded.quiet)
    lines = [_headline(system), "", *_table(system, most)]
    if system.n_bodies > most:
        rest = system.n_bodies - most
        lines.append(f"... and {rest} more bod{'y' if rest == 1 else 'ies'}")
    if system.frames:
        lines.append(f"frames: {listed(list(system.frames), 8)}")
    if loaded.world_frames:
        lines.append(f"fixed to the world: {listed(list(loaded.world_frames), 8)}")
    warnings = [*loaded.warnings, *_weightless(system), *_hollow(system), *_beyond(system)]
    lines += [f"warning: {text}" for text in warnings]
    return "\n".join([*lines, *(f"note: {text}" for text in loaded.quiet)])


def _headline(system: System) -> str:
    counts = [f"{system.n_bodies} bod{'y' if system.n_bodies == 1 else 'ies'}"]
    counts.append(f"{system.nv} dof{'' if system.nv == 1 else 's'}")
    roots = int((system.parent < 0).sum())
    if roots > 1:
        counts.append(f"{roots} trees")
    gravity = ", ".join(f"{g:.6g}" for g in system.gravity)
    return f"{system.name}: {', '.join(counts)}, nq {system.nq}, mass {system.mass:.6g} kg, gravity ({gravity})"


def _table(system: System, most: int) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [("body", "hinge", "motion", "v", "q", "mass"), ("world", "", "", "", "", "")]
    rows += [_row(system, k, branch) for k, branch in _drawn(system, most)]
    if not any(row[4] for row in rows[1:]):
        rows = [(*row[:4], *row[5:]) for row in rows]
    widths = [min(max(map(len, column)), WIDEST) for column in zip(*rows)]
    for row in rows:
        cells = [_cut(cell, width).ljust(width) for cell, width in zip(row, widths)]
        yield "  ".join(cells).rstrip()


def _drawn(system: System, most: int) -> Iterator[tuple[int, str]]:
    """Yield bodies outward, depth first, each with the branches drawn before its name."""
    children: list[list[int]] = [[] for _ in range(system.n_bodies + 1)]  # the last entry is the world's
    for k, parent in enumerate(system.parent):
        children[parent].append(k)
    stack = [(k, 0, "", k == children[-1][-1]) for k in reversed(children[-1])]
    for _ in range(min(most, system.n_bodies)):
        k, depth, before, last = stack.pop()
        drawn = depth < DEEPEST
        yield k, before + ("└ " if last else "├ ") if drawn else f"{before}{depth}: "
        inside = before + ("  " if last else "│ ") if drawn else before
        stack += [(j, depth + 1, inside, j == children[k][-1]) for j in reversed(children[k])]


def _row(system: System, k: int, branch: str) -> tuple[str, ...]:
    body = system.bodies[k]
    mass = f"{system.open_tree.layout.mass[k]:.4g} kg"
    return branch + body.name, body.hinge_name, _motion(body), _place(system, k), _limits(body), mass


def _place(system: System, k: int) -> str:
    """Place of a hinge in v, or the hinge it follows."""
    name = system.hinge_names[k]
    for coupling in system.couplings:
        if name in coupling.hinges and name not in coupling.named:
            return "follows " + " and ".join(coupling.named) if coupling.named else "locked"
    own = system.v_slice(name)
    start, end = own.start, own.stop
    return "" if start == end else str(start) if end == start + 1 else f"{start}..{end - 1}"


def _motion(body: Body) -> str:
    hinge = body.hinge
    if hinge.nv != 1:
        return hinge.kind
    axis = hinge.screws[0, :3] if hinge.screws[0, :3].any() else hinge.screws[0, 3:]
    return f"{hinge.kind}, axis {_axis(axis)}"


def _axis(axis: NDArray[np.float64]) -> str:
    nonzero = np.flatnonzero(axis)
    if len(nonzero) == 1:
        return ("+" if axis[nonzero[0]] > 0 else "-") + "xyz"[nonzero[0]]
    return "(" + ", ".join(f"{x:.3g}" for x in axis) + ")"


def _limits(body: Body) -> str:
    if body.hinge.nv != 1 or not np.isfinite([body.lower, body.upper]).any():
        return ""
    return f"{body.lower[0]:.4g} .. {body.upper[0]:.4g}"


def _weightless(system: System) -> Iterator[str]:
    """Hinges that move nothing with mass or inertia: their innovations variance D is 0."""
    heavy = np.array([body.inertia.any() for body in system.bodies])
    for k in system.open_tree.layout.order[::-1]:
        if system.parent[k] >= 0:
            heavy[system.parent[k]] |= heavy[k]
    idle = [b.hinge_name for b, h in zip(system.bodies, heavy) if not h and b.hinge.nv and not b.armature.all()]
    if idle:
        yield f"hinges that move no mass, so forward dynamics has no answer: {listed(idle)}"


def _hollow(system: System) -> Iterator[str]:
    """Bodies that resist turning and not moving, as no body does."""
    hollow = [b.name for b, m in zip(system.bodies, system.open_tree.layout.mass) if m == 0 and b.inertia.any()]
    if hollow:
        yield f"moments of inertia without a mass, used as they are: bodies {listed(hollow)}"


def _beyond(system: System) -> Iterator[str]:
    """Hinges of one dof whose limits leave the neutral configuration out."""
    neutral = system.expand(system.neutral())
    tree = system.open_tree
    out = [
        body.hinge_name
        for body in tree.bodies
        if body.hinge.nv == 1 and not body.lower[0] <= neutral[tree.q_slice(body.hinge_name)][0] <= body.upper[0]
    ]
    if out:
        yield f"the neutral configuration is beyond the limits of hinges {listed(out)}"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
