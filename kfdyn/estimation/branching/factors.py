"""Factor covariances that may be singular; refuse those that are almost singular.

A covariance whose correlations have an eigenvalue below 1e-14 for each row is taken to be singular, for its entries are
rounded. From there to 1e-10 its 16 digits leave few of that eigenvalue: a model that hangs on them is refused.
"""

from __future__ import annotations

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.estimation.model.blocks import Blocks, FloatArray
from kfdyn.estimation.model.tree import Tree

_RANK = 1e-14  # of a correlation matrix, for each row: a smaller eigenvalue is rounding
_CLEAR = 1e-10  # of the same, and of an output's noise beside what the branch adds to it: a smaller one is refused
_CLEAR_ALONE = 1e-21  # of the noise of a state that is a single number, where nothing is mixed


def branch_factors(W: Blocks, flat_roots: list[int]) -> Blocks:
    """Return B with B B* = W, (n, n), whose columns are zero where W is singular; the identity at a flat root."""
    out = np.empty_like(W.flat)
    for nodes, w in W.grouped():
        out[W.places(nodes, w[0].size)] = factor_of(w).reshape(nodes.size, -1)
    factors = W.like(out)
    for k in flat_roots:
        factors[k][...] = np.eye(int(W.rows[k]))
    return factors


def factor_of(cov: FloatArray) -> FloatArray:
    """Return B with B B* = cov (g, n, n), of orthogonal columns, zero where cov is singular.

    By eigenvalues in units of its own deviations: a Cholesky factor may mistake rounding for variance.
    """
    deviation = np.sqrt(np.maximum(np.diagonal(cov, axis1=1, axis2=2), 0.0))
    if cov.shape[1] == 1:
        return deviation[:, :, None]
    unit = np.where(deviation > 0.0, deviation, 1.0)
    value, vector = variances(cov / (unit[:, :, None] * unit[:, None, :]))
    return unit[:, :, None] * vector * np.sqrt(value)[:, None, :]


def variances(correlation: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues (g, n) of correlation matrices, 0 where one is singular, and eigenvectors (g, n, n)."""
    value, vector = np.linalg.eigh(correlation)
    return np.where(value > _RANK * value.shape[1], value, 0.0), vector


def expect_clear(tree: Tree, C: Blocks, W: Blocks, R: Blocks) -> None:
    """Refuse covariances that are all but singular, and observations that are all but exact."""
    for name, blocks in (("W", W), ("R", R)):
        for nodes, cov in blocks.grouped():
            if cov.shape[1] > 1:
                unit = np.sqrt(np.maximum(np.diagonal(cov, axis1=1, axis2=2), np.finfo(float).tiny))
                value = np.linalg.eigvalsh(cov / (unit[:, :, None] * unit[:, None, :]))
                bad = np.flatnonzero(((value > _RANK * cov.shape[1]) & (value < _CLEAR)).any(axis=1))
                if bad.size:
                    raise ModelError(
                        f"{tree.label(int(nodes[bad[0]]))}: {name} is all but singular: its correlations have an "
                        f"eigenvalue of {value[bad[0]].clip(_RANK).min():.0e}, of which its entries hold few digits; "
                        "give one that is singular (what has no variance is exact), or more variance there"
                    )
    for nodes, c in C.grouped():
        m, n = c.shape[1:]
        if m:
            noise = np.diagonal(R.flat[R.places(nodes, m * m)].reshape(-1, m, m), axis1=1, axis2=2)
            added = ((c @ W.flat[W.places(nodes, n * n)].reshape(-1, n, n)) * c).sum(axis=2)
            small = (noise > 0.0) & (noise < (_CLEAR if n > 1 else _CLEAR_ALONE) * added)
            bad = np.flatnonzero(small.any(axis=1))
            if bad.size:
                i = bad[0]
                a = int(np.argmax(small[i]))
                raise ModelError(
                    f"{tree.label(int(nodes[i]))}: the noise R of its observation {a} is {noise[i, a]:.0e}, next to "
                    f"nothing beside the variance {added[i, a]:.0e} that its branch adds; give R = 0, which is exact, "
                    f"or at least {(_CLEAR if n > 1 else _CLEAR_ALONE) * added[i, a]:.0e}"
                )
