"""The sum of all numbers of a buffer, in vector registers."""

import kfdyn._kernels.compiler  # isort: skip  # noqa: F401

from numba import njit, types

from kfdyn._kernels.sizes import SWEEP
from kfdyn.estimation._kernels.emit import emitted, loop
from kfdyn.estimation._kernels.values import local


@njit(**SWEEP)
def total(flat):
    """Σ x: not finite if any x is not."""
    return _total(flat)


@emitted(types.float64)
def _total(flat):
    s = local(0.0)
    for i in loop(flat.size):
        s += flat[i]
    return s
