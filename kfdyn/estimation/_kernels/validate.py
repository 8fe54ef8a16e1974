"""Is every block a covariance? Symmetry and positive semi-definiteness, node by node, compiled."""

import numpy as np
from numba import njit

OK, ASYMMETRIC, INDEFINITE = 0, 1, 2


@njit(cache=True, nogil=True, error_model="numpy")
def check_covariances(flat, offsets, sizes, tol):
    """First node whose block is no covariance, as (node, code, value); symmetrises the others in place.

    A block is scaled to a correlation matrix, so that the verdict does not depend on units, and reduced by
    Cholesky steps with diagonal pivoting: rank deficiency is fine, a pivot below −tol is not, nor is a
    covariance that no variance supports.
    """
    largest = 0
    for k in range(sizes.size):
        largest = max(largest, sizes[k])
    work = np.empty((largest, largest))
    for k in range(sizes.size):
        n = sizes[k]
        block = flat[offsets[k] : offsets[k + 1]].reshape(n, n)
        top = 0.0
        for i in range(n):
            top = max(top, abs(block[i, i]))
        for i in range(n):
            for j in range(i):
                size = max(abs(block[i, j]), abs(block[j, i]))
                if abs(block[i, j] - block[j, i]) > tol * max(size, top):
                    return k, ASYMMETRIC, abs(block[i, j] - block[j, i])
                mean = 0.5 * (block[i, j] + block[j, i])
                block[i, j] = mean
                block[j, i] = mean
        value = _indefiniteness(block, work, n, tol)
        if value != 0.0:
            return k, INDEFINITE, value
    return -1, OK, 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _indefiniteness(block, work, n, tol):
    """0 if the block is positive semi-definite to rounding, else a pivot or correlation that shows it is not."""
    for i in range(n):
        if block[i, i] < 0.0:
            return block[i, i]
    for i in range(n):
        for j in range(n):
            scale = np.sqrt(block[i, i]) * np.sqrt(block[j, j])
            if scale > 0.0:
                work[i, j] = block[i, j] / scale
            elif block[i, j] == 0.0:
                work[i, j] = 0.0
            else:
                return -abs(block[i, j])
    for _ in range(n):
        pivot, at = 0.0, -1
        for i in range(n):
            if work[i, i] < -tol:
                return work[i, i]
            if work[i, i] > pivot:
                pivot, at = work[i, i], i
        if pivot <= tol:
            for i in range(n):
                for j in range(n):
                    if abs(work[i, j]) > np.sqrt(tol) * n:  # |q_ij| ≤ sqrt(q_ii q_jj) with both below tol
                        return -abs(work[i, j])
            return 0.0
        for i in range(n):
            if i != at:
                factor = work[i, at] / pivot
                for j in range(n):
                    if j != at:
                        work[i, j] -= factor * work[at, j]
        for i in range(n):
            work[i, at] = 0.0
            work[at, i] = 0.0
    return 0.0
