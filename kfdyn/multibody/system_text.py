"""A system shown: its sizes and a few of its bodies, as text and as a table of a notebook."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kfdyn.multibody.system import System

_MOST = 12  # bodies that are shown one by one


def as_text(system: System) -> str:
    """The sizes, and a line for each of the first bodies."""
    roots = int((system.parent < 0).sum())
    head = f"System {system.name!r}: {system.n_bodies} bodies, {system.nv} dofs, mass {system.mass:.6g} kg"
    if roots > 1:
        head += f", {roots} trees"
    head += "".join(f", {what}" for what in system.joined)
    if system.is_specialised:
        head += ", specialised"
    return head + "".join(_lines(system))


def as_html(system: System) -> str:
    """The sizes and a few bodies, for a notebook."""
    from kfdyn.short_tables import html_table, rows_shown

    mass = system.open_tree.layout.mass

    def row(k: int) -> tuple[object, ...]:
        body = system.bodies[k]
        return body.name, body.parent or "the world", body.hinge_name, body.hinge.kind, float(mass[k])

    head = ("body", "on", "hinge", "kind", "mass [kg]")
    return html_table(as_text(system).partition("\n")[0], head, rows_shown(system.n_bodies, row))


def _lines(system: System) -> Iterable[str]:
    shown = system.bodies if system.n_bodies <= _MOST else system.bodies[: _MOST - 1]
    for body, mass in zip(shown, system.open_tree.layout.mass):
        yield f"\n  {body.name}: {body.hinge.kind} on {body.parent or 'the world'}, {mass:.4g} kg"
    if len(shown) < system.n_bodies:
        yield f"\n  ... and {system.n_bodies - len(shown)} more"
