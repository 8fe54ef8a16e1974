"""Check what a user gives for a model: sizes of blocks, finite numbers, covariances, stacked vectors, flat states."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.errors import ModelError, ShapeError, TreeError
from kfdyn.estimation.model.blocks import Blocks, FloatArray, IntArray, alike, offsets_of, products, real_array
from kfdyn.estimation.model.overflow import sum_is_finite
from kfdyn.estimation.model.packing import BlockInput, Packed, pack, parent_blocks, variances
from kfdyn.estimation.model.tree import Tree

Mask = NDArray[np.bool_]

_MANY = 64  # blocks: fewer are looked at in less time than it takes to load compiled code
_CLEARLY_POSITIVE = 1e-12  # a pivot of elimination above this part of its variance: far above what rounding leaves of 0
_PSD_TOLERANCE = 1e-10  # of a variance: far above the rounding of a computed G Q G*, far below a modelling error
_TURNED_TOLERANCE = 2e-12  # of a vector's variances: what was turned may have lost 1e-12 of them already


def matrices(
    tree: Tree, name: str, given: BlockInput, rows: IntArray | None, cols: IntArray, rule: str, check: bool = True
) -> tuple[FloatArray, IntArray]:
    """Pack and check matrices of ``cols`` columns and, if given, ``rows`` rows; return them, flat, and their rows."""
    packed = pack(tree, name, given)
    rows = packed.row_counts() if rows is None else rows
    expect_size(tree, name, packed, rows, cols, rule)
    if check:
        expect_finite(tree, name, packed)
    return packed.spread(), rows


def covariances(
    tree: Tree,
    name: str,
    given: BlockInput,
    size: IntArray | None,
    rule: str,
    alike: int | None = None,
    check: bool = True,
    vectors: Mask | None = None,
) -> tuple[FloatArray, IntArray]:
    """Pack and check covariances; return them, flat, and their sizes. ``alike`` is the size of all, if it is known."""
    if vectors is None and (size is None or alike == 1):
        flat = variances(given, len(tree))
        if flat is not None:
            return flat, np.ones(flat.size, np.int64) if size is None else size
    packed = pack(tree, name, given)
    size = packed.row_counts() if size is None else size
    expect_size(tree, name, packed, size, size, rule)
    if vectors is not None and (size[vectors] % 3).any():
        k = int(np.flatnonzero(vectors & (size % 3 > 0))[0])
        raise ShapeError(
            f"vectors says that the state of {tree.label(k)} is made of vectors of three components, but it has "
            f"{size[k]}; leave that node out of vectors, a mask over the nodes"
        )
    if check:
        expect_covariance(tree, name, packed, vectors)
    return packed.spread(), size


def transitions(tree: Tree, name: str, given: BlockInput, n: IntArray, rule: str, check: bool = True) -> Blocks:
    """Pack and check φ(p(k), k), which has no rows at a root; a block that many nodes share is stored once."""
    above, starts = parent_blocks(tree, n)
    packed = pack(tree, name, given, skip_roots=n)
    expect_size(tree, name, packed, above, n, rule)
    if check:
        expect_finite(tree, name, packed)
    return Blocks(packed.flat, above, n, starts if packed.which is None else packed.starts())


def stacked_vector(
    tree: Tree, value: ArrayLike, name: str, starts: IntArray, what: str, allow_nan: bool = False
) -> tuple[FloatArray, bool]:
    """Return stacked states or outputs (..., Σ) as float64, and whether one look has told that all of it is finite.

    ``starts`` (N + 1,) is where each node begins; NaN is refused unless it is allowed, infinity always.
    """
    array, size = real_array(value, name), int(starts[-1])
    if array.ndim == 0 or array.shape[-1] != size:
        raise ShapeError(
            f"{name} has shape {array.shape}, but its last axis must stack the {size} {what} of the "
            f"{len(tree)} nodes in node order: shape (..., {size})"
        )
    if sum_is_finite(array):
        return array, True
    bad = np.isinf(array) if allow_nan else ~np.isfinite(array)
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        node = int(np.searchsorted(starts, at[-1], side="right")) - 1
        cure = "; mark a missing measurement by NaN" if allow_nan else ""
        raise ModelError(f"{name}{list(at)} ({tree.label(node)}) is {array[at]}, not a finite number{cure}")
    return array, False


def expect_size(tree: Tree, name: str, packed: Packed, want_rows: IntArray, want_cols: IntArray, rule: str) -> None:
    """Refuse the first block whose shape is not the one wanted."""
    rows, cols = packed.rows, packed.cols
    if packed.which is not None:
        own, wanted = (alike(rows), alike(cols)), (alike(want_rows), alike(want_cols))
        if own == wanted and None not in own:
            return
        rows, cols = packed.shapes
    if (rows is want_rows or (rows == want_rows).all()) and (cols is want_cols or (cols == want_cols).all()):
        return
    rows, cols = packed.shapes
    k = int(np.flatnonzero((rows != want_rows) | (cols != want_cols))[0])
    raise ShapeError(
        f"{name} of {tree.label(k)} has shape ({rows[k]}, {cols[k]}) but must {rule}: "
        f"shape ({want_rows[k]}, {want_cols[k]})"
    )


def expect_finite(tree: Tree, name: str, packed: Packed) -> None:
    """Refuse the first block with an entry that is NaN or infinite."""
    if sum_is_finite(packed.flat):
        return
    finite = np.isfinite(packed.flat)
    if not finite.all():
        at = int(np.argmin(finite))
        k = packed.node(int(np.searchsorted(offsets_of(products(packed.rows, packed.cols)), at, side="right")) - 1)
        raise ModelError(
            f"{name} of {tree.label(k)} has an entry that is {packed.flat[at]}; every entry must be finite"
        )


def expect_covariance(tree: Tree, name: str, packed: Packed, vectors: Mask | None = None) -> None:
    """Refuse the first block that is not finite, symmetric, positive semi-definite; symmetrise the rounding of others.

    Each block is scaled to a correlation matrix first, so that the verdict does not depend on units. ``vectors`` are
    nodes whose components form vectors of three, of one unit each: a small variance may be what rotation left of a
    large one, a rounding error of it.
    """
    flat, sizes = packed.flat, packed.rows
    if alike(sizes) == 1:  # variances: their sign is all there is to check
        expect_finite(tree, name, packed)
        wrong = np.flatnonzero(flat < 0.0)
        if wrong.size:
            raise _not_semidefinite(tree, name, packed.node(int(wrong[0])), flat[wrong[0]])
        return
    if sizes.size >= _MANY and surely_covariances(flat, sizes):
        return
    expect_finite(tree, name, packed)
    turned = np.full(sizes.size, vectors is not None)
    if vectors is not None:
        np.logical_and.at(turned, np.arange(len(tree)) if packed.which is None else packed.which, vectors)
    blocks = Blocks(flat, sizes, sizes)
    for nodes, stack in blocks.grouped():
        n = stack.shape[1]
        if n == 0:
            continue
        used = np.flatnonzero(stack.any(axis=(1, 2)))
        if used.size < len(nodes):
            nodes, stack = nodes[used], stack[used]
        skew = stack - stack.transpose(0, 2, 1)
        if skew.any():
            by = np.abs(skew).max(axis=(1, 2))
            wrong = np.flatnonzero(by > _PSD_TOLERANCE * np.abs(stack).max(axis=(1, 2)))
            if wrong.size:
                raise ModelError(
                    f"{name} of {tree.label(packed.node(int(nodes[wrong[0]])))} is not symmetric (entries differ by "
                    f"{by[wrong[0]]:.3g}); a covariance is"
                )
            stack = 0.5 * (stack + stack.transpose(0, 2, 1))
            flat[blocks.places(nodes, n * n)] = stack.reshape(nodes.size, n * n)
        wrong = np.flatnonzero(_indefinite(stack, turned[nodes]))
        if wrong.size:
            k, values = packed.node(int(nodes[wrong[0]])), np.linalg.eigvalsh(stack[wrong[0]])
            raise _not_semidefinite(tree, name, k, values[0], values[-1])


def surely_covariances(flat: FloatArray, sizes: IntArray) -> bool:
    """Tell whether all blocks are surely finite covariances: one compiled look, which makes them exactly symmetric."""
    surely_semidefinite, Checks, Tag, lanes, least_tiled = _compiled()
    size = alike(sizes)
    if Checks.on or size is None or not 1 < size < least_tiled:
        return bool(surely_semidefinite(Tag(1), None, flat, sizes, np.empty(int(sizes.max()) ** 2)))
    return bool(surely_semidefinite(Tag(lanes), Tag(size), flat, sizes, np.empty(lanes * size * size)))


@cache
def _compiled() -> Any:
    """The sweep, whether indices are checked, tags, lanes, tiles: an import at each call would take longer."""
    from kfdyn.estimation.recursions.linalg.covariances import LEAST_TILED, surely_semidefinite
    from kfdyn.sweeps import Checks, Tag
    from kfdyn.sweeps.compiler.driver import machine

    return surely_semidefinite, Checks, Tag, machine().lanes, LEAST_TILED


def _not_semidefinite(tree: Tree, name: str, k: int, lowest: float, size: float = 0.0) -> ModelError:
    cure = ""
    if lowest > -_PSD_TOLERANCE * size:
        cure = "; if it is one but for rounding, StateSpace takes a factor of it as Q_factor or R_factor"
    return ModelError(
        f"{name} of {tree.label(k)} is not positive semi-definite (lowest eigenvalue {lowest:.3g}); "
        f"a covariance must be: correct its entries{cure}"
    )


def _indefinite(stack: FloatArray, turned: Mask) -> Mask:
    """Mark the symmetric matrices (count, n, n) that have an eigenvalue below zero by more than rounding.

    One factorisation of all of them, raised by what rounding may make of 0, tells whether there is any. If so,
    eigenvalues tell which, of those that elimination does not find to be positive definite.
    """
    n = stack.shape[1]
    wrong = np.zeros(len(stack), dtype=bool)
    with suppress(np.linalg.LinAlgError):
        np.linalg.cholesky(stack)
        return wrong
    with np.errstate(all="ignore"):  # of what is doubtful
        unit, tolerance = _units(stack, turned)
        scaled = stack / (unit[:, :, None] * unit[:, None, :])
        try:
            np.linalg.cholesky(scaled + tolerance[:, None, None] * np.eye(n))
        except np.linalg.LinAlgError:
            pass
        else:
            return wrong
        left = stack.copy()
        doubtful = np.zeros(len(stack), dtype=bool)
        floor = _CLEARLY_POSITIVE * np.diagonal(stack, axis1=1, axis2=2)
        for i in range(n):
            pivot = left[:, i, i]
            bad = ~(pivot > floor[:, i])
            doubtful |= bad
            factor = left[:, i + 1 :, i] / np.where(bad, 1.0, pivot)[:, None]
            left[:, i + 1 :, i + 1 :] -= factor[:, :, None] * left[:, None, i, i + 1 :]
    asked = np.flatnonzero(doubtful)
    if asked.size:
        wrong[asked] = np.linalg.eigvalsh(scaled[asked])[:, 0] < -tolerance[asked]
    return wrong


def _units(stack: FloatArray, turned: Mask) -> tuple[FloatArray, FloatArray]:
    """Units in which the eigenvalues of covariances are judged, and what rounding may make of one that is 0."""
    variance = np.diagonal(stack, axis1=1, axis2=2)
    # one that is not positive has no unit of its own; those of the others may be far larger
    other = np.minimum(1.0, np.abs(stack).max(axis=(1, 2)))[:, None]
    units, tolerance = (
        np.sqrt(np.where(variance > 0, variance, other)),
        np.full(len(stack), _PSD_TOLERANCE * variance.shape[1]),
    )
    if turned.any():
        whole = vector_deviations(stack[turned])
        units[turned], tolerance[turned] = np.where(whole > 0, whole, 1.0), _TURNED_TOLERANCE
    return units, tolerance


def vector_deviations(stack: FloatArray) -> FloatArray:
    """√ of the variances summed over each vector of three, for each of its components, (count, n)."""
    variance = np.abs(np.diagonal(stack, axis1=1, axis2=2))
    return np.repeat(np.sqrt(variance.reshape(len(stack), -1, 3).sum(axis=2)), 3, axis=1)


def vector_nodes(tree: Tree, vectors: ArrayLike | None) -> Mask | None:
    """Nodes whose states are made of vectors, as a mask (N,); None if there is none."""
    if vectors is None:
        return None
    which = np.asarray(vectors)
    if which.dtype != bool or which.shape not in ((), (len(tree),)):
        raise ShapeError(
            f"vectors must be True, False, or a mask with one bool for each of the {len(tree)} nodes; got "
            f"{which.dtype} of shape {which.shape}"
        )
    return np.full(len(tree), which) if which.any() else None


def flat_states(tree: Tree, n: IntArray, state: IntArray, flat: Mapping[int, Any]) -> IntArray | None:
    """Places of the flat states in a stacked state, increasing; None if there is none.

    ``flat`` gives True or a mask for each node; False, or a mask of nothing else, says that the node has no such state.
    """
    if not isinstance(flat, Mapping):
        raise ModelError(
            "flat must map nodes to True or to masks of their states, as {3: True} or {3: [True, False]}; got "
            f"{type(flat).__name__} {flat!r:.60}"
        )
    found = [np.zeros(0, dtype=np.int64)]
    for k, mask in flat.items():
        if not isinstance(k, int | np.integer) or not 0 <= k < len(tree):
            raise TreeError(f"flat names node {k!r}; the nodes are 0 to {len(tree) - 1}")
        which = np.asarray(mask)
        if which.dtype != bool or which.shape not in ((), (int(n[k]),)):
            raise ShapeError(
                f"flat[{k}] must be True, or a mask with one bool for each of the {n[k]} states of "
                f"{tree.label(int(k))}; got {which.dtype} of shape {which.shape}"
            )
        found.append(state[k] + np.flatnonzero(np.broadcast_to(which, (int(n[k]),))))
    places = np.sort(np.concatenate(found))
    return places if places.size else None


def expect_generator(rng: np.random.Generator) -> None:
    """Refuse anything but a numpy Generator, legacy states and seeds included."""
    if not isinstance(rng, np.random.Generator):
        raise ModelError(f"rng must be a numpy Generator (np.random.default_rng(seed)), not {type(rng).__name__}")


def draw_axes(n: int | None) -> tuple[int, ...]:
    """Leading axes of n draws: (n,), or none for a single draw."""
    if n is None:
        return ()
    if not isinstance(n, int | np.integer) or n < 0:
        raise ShapeError(f"n must be a number of draws, 0 or more (or None for a single draw), got {n!r}")
    return (int(n),)
