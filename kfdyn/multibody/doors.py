"""Compiled doors to fused sweeps, and the threads that go through them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from kfdyn._kernels.crew import CREW
from kfdyn._kernels.threads import threads
from kfdyn.multibody.system import System

Door = Callable[..., bool]

# Bodies times configurations a thread must have before waking it pays: some 0.1 ms of work.
_LEAST = 4096
# Configurations done at a time: few enough to stay in the cache between the look at them and the sweep, and for the
# threads to end nearly together.
_BLOCK = 128
# Numbers that a sweep may want for each body, dof and slot: forward dynamics and what needs less find room enough.
_OF_BODY, _OF_DOF, _OF_SLOT = 48, 16, 32
# A block starts where a machine vector of configurations would.
_LANES = 4


class Doors:
    """The compiled functions of a package of doors, each compiled when first asked for, for its one signature.

    What numba's ``compile`` returns is called without its dispatcher, which would look at the type of every argument.
    So Python must have looked: a door reads whatever it is given as what its signature says.
    """

    def __init__(self, package: str) -> None:
        self._package = package

    def __getattr__(self, name: str) -> Door:
        if name.startswith("_"):  # somebody looks what this is, such as doctest
            raise AttributeError(name)
        module = import_module(f"{self._package}.{name}")
        door: Door = getattr(module, name).compile(module.SIGNATURE)
        setattr(self, name, door)
        return door


DOORS = Doors("kfdyn.multibody._kernels.doors")
_preparing = Lock()


def address_of(system: System) -> int:
    """Where the doors find the system: the address of a table of addresses, made when first asked for.

    One number instead of a Layout, since each array that Python hands to compiled code costs 50 ns. Behind it is what
    the sweeps would otherwise work out of the layout in every call, and room to work in.
    """
    if not system.address:
        with _preparing:
            if not system.address:
                table, *behind = _prepared(system)
                system.keep(_at(table), table, *behind)
    return system.address


def _prepared(system: System) -> tuple[NDArray[np.generic], ...]:
    """The table of a system (see ``_kernels/doors/table.py``), and the arrays behind it."""
    from kfdyn.multibody._kernels.fused.prepare import prepare

    layout = system.layout
    index, real, slots, snaps = prepare(layout)
    sizes = (system.n_bodies, system.nq, system.nv, slots, snaps)
    room = np.empty(7 + _LANES * (_OF_BODY * (system.n_bodies + 1) + _OF_DOF * system.nv + _OF_SLOT * (slots + 1)))
    tables = (index, real, layout.screws, layout.armature)
    table = np.array([*sizes, *map(_at, tables), 0, _at(room), room.size], dtype=np.int64)
    return table, *tables, room


def _at(array: NDArray[np.generic]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def over_rows(rows: int, system: System, sweep: Callable[[int, int, int], bool]) -> bool:
    """Call ``sweep(rows, block, counter)`` in as many threads as there is work for; all must be True.

    Each call does blocks of rows until none is left, those of several threads by way of a counter that they share: one
    that wakes late does less. The doors release the interpreter lock and write disjoint rows, so the result does not
    depend on the number of threads.
    """
    workers = min(rows * system.n_bodies // _LEAST, rows // _LANES)
    workers = min(workers, threads()) if workers > 1 else 1
    if workers < 2:
        return rows == 0 or sweep(rows, min(rows, _BLOCK), 0)
    counter = np.zeros(1, dtype=np.int64)
    block = min(_BLOCK, max(rows // (8 * workers * _LANES), 1) * _LANES)
    work = partial(_holding, (system, counter), sweep, rows, block, _at(counter))
    return all(CREW.share(work, workers))


def _holding(kept: object, sweep: Callable[..., bool], *shared: int) -> bool:
    """Sweep; ``kept`` is what the addresses are of, since a thread may go on when its caller has been interrupted."""
    return sweep(*shared)
