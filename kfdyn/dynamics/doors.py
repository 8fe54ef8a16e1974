"""The compiled doors of dynamics, and the threads that go through them."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from kfdyn.estimation.sweeps import threads
from kfdyn.multibody import System

Door = Callable[..., bool]

# Bodies times configurations a thread must have before waking it pays: some 0.1 ms of work.
_LEAST = 4096
# A part starts where a machine vector of configurations would.
_ROWS = 8


class _Doors:
    """The compiled functions of ``_kernels/doors``, each compiled when first asked for, for its one signature.

    What numba's ``compile`` returns is called without its dispatcher, which would look at the type of every argument.
    So Python must have looked: a door reads whatever it is given as what its signature says.
    """

    def __getattr__(self, name: str) -> Door:
        module = import_module(f"kfdyn.dynamics._kernels.doors.{name}")
        door: Door = getattr(module, name).compile(module.SIGNATURE)
        setattr(self, name, door)
        return door


DOORS = _Doors()
_pool: list[ThreadPoolExecutor] = []
_preparing = Lock()


def address_of(system: System) -> int:
    """Where the doors find the system: the address of a table of addresses, made when first asked for.

    One number instead of a Layout, since each array that Python hands to compiled code costs 50 ns; and behind it what
    the sweeps would otherwise work out of the layout in every call.
    """
    if not system.address:
        from kfdyn.dynamics._kernels.doors import prepare

        with _preparing:
            if not system.address:
                index, real, slots = prepare(system.layout)
                table = np.array([system.n_bodies, system.nv, slots, *map(_at, (*system.layout, index, real))])
                system.keep(_at(table), table, index, real)
    return system.address


def _at(array: NDArray[np.generic]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def over_rows(rows: int, bodies: int, sweep: Callable[[int, int], bool]) -> bool:
    """Call ``sweep(first, last)`` until all rows are done, in threads where there is enough to do; all must be True.

    The doors release the interpreter lock and write disjoint rows, so the result does not depend on the number of
    threads. They are kept from call to call: starting one takes as long as a thousand forward dynamics.
    """
    workers = min(threads(), rows * bodies // _LEAST, rows // _ROWS)
    if workers < 2:
        return rows == 0 or sweep(0, rows)
    step = -(-rows // (workers * _ROWS)) * _ROWS
    others = [_helpers().submit(sweep, at, min(at + step, rows)) for at in range(step, rows, step)]
    done = [sweep(0, step), *(other.result() for other in others)]  # wait for all of them, whatever the first says
    return all(done)


def _helpers() -> ThreadPoolExecutor:
    if not _pool:
        _pool.append(ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="kfdyn"))
    return _pool[0]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.clear)  # a forked process has none of its parent's threads
