"""The sum of all numbers of a buffer, in vector registers."""

from numba import njit

from kfdyn.estimation._kernels.sizes import SWEEP


@njit(**SWEEP)
def total(flat):
    """Σ x: not finite if any x is not."""
    s = 0.0
    for i in range(flat.size):
        s += flat[i]
    return s
