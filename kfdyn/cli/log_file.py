"""A robot's log in columns: times, readings and torques of every hinge, from a CSV file as loggers write it."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kfdyn.arrays import Array
from kfdyn.errors import ModelError

if TYPE_CHECKING:
    from kfdyn.multibody import System

#: Seconds of the units that times come in.
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

_TIMES = ("t", "time", "timestamp")
_GAPS = ("", "nan", "na", "n/a", "null", "none")
_BETWEEN = ":_./ "  # between q and the name of a hinge
_ROUNDING, _UNEVEN = 1e-3, 0.25  # of a step: what no note is worth, and what is refused
_LONGEST = 10.0  # seconds a step, beyond which times are in another unit
_FASTEST = 100.0  # rad/s, beyond which angles are in degrees


class LogFile(NamedTuple):
    """Step, q (N, nv), v or None, tau (N−1, nv), and what was noticed and mended."""

    dt: float
    q: Array
    v: Array | None
    tau: Array
    notes: list[str]


def read_log(path: Path, system: System, unit: str = "s", degrees: bool = False) -> LogFile:
    """Read the columns of each hinge; rows that are missing become gaps."""
    if system.nq != system.nv:
        raise ModelError(f"{path}: a log in columns is of a tree whose hinges are angles and slides; use kf.motion")
    columns = _columns(path)
    times = [name for name in columns if name.lower() in _TIMES]
    if len(times) != 1:
        raise ModelError(f"{path}: there must be one column 't' of times; there are {', '.join(columns)}")
    t = _numbers(path, times[0], columns[times[0]]) * UNITS[unit]
    dt, rows, notes = _grid(path, t)
    scale = np.pi / 180.0 if degrees else 1.0
    turns = np.array([name.split("[")[0] in _revolute(system) for name in system.dof_names])

    def of(what: str, needed: bool) -> Array | None:
        found = [_find(columns, what, name) for name in system.dof_names]
        missing = [f"{what}:{name}" for name, one in zip(system.dof_names, found) if one is None]
        if missing and (needed or len(missing) < len(found)):
            raise ModelError(f"{path}: columns {', '.join(missing)} are missing; there are {', '.join(columns)}")
        return None if missing else np.stack([_numbers(path, name, columns[name]) for name in found if name], axis=1)

    q, v, tau = of("q", True), of("v", False), of("tau", True)
    assert q is not None and tau is not None
    bad = np.argwhere(~np.isfinite(tau[:-1]))
    if bad.size:
        row, column = bad[0].tolist()
        raise ModelError(
            f"{path}: tau:{system.dof_names[column]} has a gap in row {row + 1}; fill it, as what was ordered is known"
        )
    for name, column in zip(system.dof_names, q.T):
        if np.isnan(column).all():
            raise ModelError(f"{path}: q:{name} has no readings")
    q = np.where(turns, scale * q, q)
    speed = np.nanquantile(np.abs(np.diff(q[:, turns], axis=0)), 0.99) / dt if turns.any() else 0.0
    if speed > _FASTEST:
        raise ModelError(f"{path}: hinges turn by {speed:.3g} rad/s; are angles in degrees? Then give --degrees")
    held = np.searchsorted(rows, np.arange(rows[-1]), side="right") - 1
    return LogFile(
        dt, _spread(q, rows), None if v is None else _spread(np.where(turns, scale * v, v), rows), tau[held], notes
    )


def _revolute(system: System) -> set[str]:
    return {body.hinge_name for body in system.bodies if body.hinge.nv and body.hinge.screws[:, :3].any()}


def _columns(path: Path) -> dict[str, list[str]]:
    """Cells by the names of the header; lines that begin with # are remarks."""
    try:
        lines = [line for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip(" \t,;")]
    except UnicodeDecodeError:
        raise ModelError(f"{path} is no text; write the log as CSV") from None
    lines = [line for line in lines if not line.startswith("#")]
    if len(lines) < 11:
        raise ModelError(f"{path}: a header and ten rows are the least; there are {len(lines)} lines")
    between = max(",;\t", key=lines[0].count)
    header, *rows = ([cell.strip() for cell in row] for row in csv.reader(lines, delimiter=between))
    for k, row in enumerate(rows):
        if len(row) != len(header):
            raise ModelError(f"{path}: row {k + 1} has {len(row)} cells under {len(header)} names")
    twice = sorted({name for name in header if name and header.count(name) > 1})
    if twice:
        raise ModelError(f"{path}: columns {', '.join(twice)} stand there twice")
    return {name: list(cells) for name, cells in zip(header, zip(*rows)) if name}


def _find(columns: dict[str, list[str]], what: str, name: str) -> str | None:
    return next((what + mark + name for mark in _BETWEEN if what + mark + name in columns), None)


def _numbers(path: Path, name: str, cells: list[str]) -> Array:
    out = np.full(len(cells), np.nan)
    for k, cell in enumerate(cells):
        if cell.lower() not in _GAPS:
            try:
                out[k] = float(cell)
            except ValueError:
                raise ModelError(f"{path}: {name} in row {k + 1} is {cell!r}; write a number, or nothing") from None
    return out


def _grid(path: Path, t: Array) -> tuple[float, Array, list[str]]:
    """Step, places of the rows among even steps, and notes."""
    steps = np.diff(t)
    bad = np.flatnonzero(~(steps > 0.0))
    if bad.size:
        k = int(bad[0])
        raise ModelError(f"{path}: times must rise; row {k + 2} follows {t[k]:.9g} with {t[k + 1]:.9g}")
    middle = float(np.median(steps))
    counts = np.maximum(np.round(steps / middle), 1.0)
    dt = float((t[-1] - t[0]) / counts.sum())
    if dt > _LONGEST:
        raise ModelError(f"{path}: steps of {dt:.3g} s; if times are in another unit, give --time-unit ms, us or ns")
    uneven = np.abs(steps - counts * dt) / dt
    worst, notes = int(uneven.argmax()), []
    if uneven[worst] > _UNEVEN:
        raise ModelError(
            f"{path}: times must rise by even steps of {dt:.3g} s, or by several; row {worst + 2} comes after "
            f"{steps[worst]:.3g} s: resample the log"
        )
    if uneven[worst] > _ROUNDING:
        notes.append(f"times are uneven by up to {100.0 * uneven[worst]:.2g} % of a step, and are taken as even")
    lost = int(counts.sum()) - len(steps)
    if lost:
        notes.append(f"{lost} rows are missing; their readings are gaps, their torques those of the row before")
    return dt, np.concatenate([[0], np.cumsum(counts)]).astype(int), notes


def _spread(x: Array, rows: Array) -> Array:
    out = np.full((rows[-1] + 1, x.shape[1]), np.nan)
    out[rows] = x
    return out
