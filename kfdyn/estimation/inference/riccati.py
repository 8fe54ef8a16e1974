"""The Riccati recursion: everything about a model that no measurement can change."""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np

from kfdyn.errors import ModelError, ShapeError, SingularError
from kfdyn.estimation.inference.filter_covariances import (
    BoolArray,
    Method,
    Riccati,
    common_sizes,
    covariances_to_fill,
    finished,
    gather_kernels,
    matrix_sizes,
)
from kfdyn.estimation.inference.square_root import RootFailure, run_roots
from kfdyn.estimation.model.blocks import Blocks
from kfdyn.estimation.model.overflow import out_of_range
from kfdyn.estimation.model.state_space import StateSpace, expect_proper
from kfdyn.estimation.precision.exact_outputs import output_below_rounding

_CACHED_PATTERNS = 2  # patterns of missing measurements kept with a model, the newest
_CACHE_LOCK = Lock()  # a model may be used by several threads at once


def riccati(ss: StateSpace, observed: BoolArray | None = None, method: Method = "block") -> Riccati:
    """Run the Riccati gather of a model, leaves to roots.

    Kept with the model, so that any number of measurement vectors pays for it once.

    Parameters
    ----------
    ss : StateSpace
        The model.
    observed : ndarray of bool, shape (Σm_k,), optional
        Which outputs are measured; all if not given.
    method : {"block", "univariate", "square_root"}
        How a vector measurement is processed: by the Cholesky factor of D(k), or output by output with scalar
        divisions only (PART: mass-less bodies). Same answers. "square_root" carries their factors, at up to
        four times the cost (``kfdyn bench forms``), for models in which variances differ by more than 1e10.

    Returns
    -------
    Riccati
        P, P⁺, D, G and what follows from them.

    Raises
    ------
    SingularError
        If D(k) is not positive definite; names the node and what would cure it.
    ModelError
        If a covariance is too large or too small for a double; names the node where that begins.

    Notes
    -----
    O(N) time and memory: about 3n³ + O(n²m) flops a node. Where R is small beside D, a step of refinement gives P⁺ the
    digits of the Joseph form. Sources: R86 (8.2)–(8.9), SKO "riccati-gather".

    Examples
    --------
    >>> import numpy as np
    >>> ss = StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)))
    >>> riccati(ss).D[1]
    array([[1.]])
    """
    if method not in ("block", "univariate", "square_root"):
        raise ModelError(f"method must be 'block', 'univariate' or 'square_root', not {method!r}")
    seen = None
    if observed is not None:
        seen = np.asarray(observed)
        if seen.shape != (ss.n_outputs,) or seen.dtype != bool:
            raise ShapeError(
                f"observed must be an array of bool with shape ({ss.n_outputs},), one entry for each output; "
                f"got {seen.dtype} with shape {seen.shape}"
            )
        seen = None if seen.all() else seen
    expect_proper(ss, "its covariances")
    key = method, None if seen is None else seen.tobytes()
    result = ss._cache.get(key)
    if result is None:
        result = _run(ss, np.ones(ss.n_outputs, dtype=bool) if seen is None else seen.copy(), method)
        with _CACHE_LOCK:
            ss._cache[key] = result
            while len(ss._cache) > _CACHED_PATTERNS:
                del ss._cache[next(iter(ss._cache))]
    return result


def _run(ss: StateSpace, seen: BoolArray, method: Method) -> Riccati:
    if method == "square_root":
        return _run_roots(ss, seen)
    sizes, gather = matrix_sizes(ss), gather_kernels()
    found, flats = covariances_to_fill(ss, seen)
    way = "scalar" if ss.common.most_outputs <= 1 else method
    how = gather.ways["tiled" if sizes.tiled is not None and method == "block" else way]
    work = np.empty(gather.size(ss.common.most_states, ss.common.most_outputs))
    failed = int(gather.run(sizes, how, ss.address, flats, work))
    if failed >= 0:
        raise _not_positive(ss, failed, ss.Q.like(flats.P), method, seen)
    return _beyond_rounding(finished(Riccati, ss, found, flats, common_sizes(ss)), method)


def _beyond_rounding(cov: Riccati, method: Method) -> Any:
    """The covariances, if every D is more than rounding."""
    with np.errstate(all="ignore"):  # what overflows there is no verdict
        failed = output_below_rounding(cov, method)
    if failed is not None:
        raise _not_positive(cov.ss, failed, cov.P, method, cov.observed)
    return cov


def _run_roots(ss: StateSpace, seen: BoolArray) -> Riccati:
    try:
        found = run_roots(ss, seen)
    except RootFailure as failure:
        raise _not_positive(ss, failure.output, failure.P, "square_root") from None
    return _beyond_rounding(found, "square_root")


def _roots_can(ss: StateSpace, seen: BoolArray | None, node: int, output: int) -> bool:
    """Tell whether the square-root form finds the variance of an output that the covariance form took for zero."""
    try:
        found = run_roots(ss, np.ones(ss.n_outputs, dtype=bool) if seen is None else seen)
        with np.errstate(all="ignore"):
            failed = output_below_rounding(found, "square_root")
    except RootFailure as failure:
        failed = failure.output
    except ModelError:  # out of a double's range on the way
        return False
    if failed is None:
        return True
    order = np.empty(len(ss), dtype=np.int64)
    order[ss.tree.order] = np.arange(len(ss))
    other = int(np.searchsorted(ss.arrays.output, failed, side="right")) - 1
    return bool(order[other] > order[node]) or (other == node and failed > ss.arrays.output[node] + output)


def _not_positive(
    ss: StateSpace, failed: int, covariances: Blocks, method: Method, seen: BoolArray | None = None
) -> SingularError | ModelError:
    """The error of an output (stacked) that is no more than rounding, where P of its node is what it is."""
    node = int(np.searchsorted(ss.arrays.output, failed, side="right")) - 1
    output, P, where = failed - int(ss.arrays.output[node]), covariances[node], ss.tree.label(node)
    which = f"output {output} of {where}" if ss.m[node] > 1 else where
    why = out_of_range(ss.H[node][output], P)
    if why is not None:
        return ModelError(f"{which}: its innovation variance {why}")
    if not ss.H[node][output].any():
        why = "its row of H is zero, so it measures nothing; remove the output or correct H"
    elif method != "square_root" and _roots_can(ss, seen, node, output):
        return SingularError(
            f"{which}: its innovation variance is positive, but so small beside what cancels in it that the covariance "
            "form has lost all its digits. Use method='square_root', and if Q or R is singular or nearly so, give "
            "Q_factor or R_factor; if a prior is very wide, make it flat",
            node,
            output,
        )
    else:
        why = (
            "the outputs outboard of it (or before it at the same node) already determine it exactly, or nothing it "
            "depends on has any variance; give a node outboard of it a process covariance Q, or this output a noise R"
        )
    message = f"{which}: its innovation variance is 0, so D = H P H* + R is not positive definite: {why}"
    return SingularError(message, node, output)
