"""A time series as a tree without branches: step k's parent is step k + 1."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import KfdynError, ModelError, ShapeError
from kfdyn.estimation.model.blocks import FloatArray, even, real_array
from kfdyn.estimation.model.packing import Packed, Shared, parent_blocks
from kfdyn.estimation.model.tree import Tree


class Chain(NamedTuple):
    """The arguments of a StateSpace."""

    parent: Tree
    phi: Packed | Shared
    H: FloatArray
    Q: FloatArray | Packed | Shared
    R: FloatArray
    xi: FloatArray | None


def as_chain(
    F: ArrayLike | None,
    H: ArrayLike,
    Q: ArrayLike | None,
    R: ArrayLike,
    x0: ArrayLike | None,
    P0: ArrayLike | None,
    inputs: ArrayLike | None,
    steps: int | None,
) -> Chain:
    """Stack the matrices of a time series node by node; see :meth:`StateSpace.chain` for their shapes."""
    if x0 is not None and P0 is None:
        raise ModelError(
            "x0 is given without P0, the covariance of step 0: give P0 too (zeros if x0 is known exactly), or neither "
            "for a flat prior, under which nothing is known of step 0"
        )
    prior = None if P0 is None else _matrix(P0, "P0")
    maps, noise_of = _matrix(H, "H"), _matrix(R, "R")
    width = maps.shape[-1:] if prior is None else prior.shape[-1:]
    mean = np.zeros(width) if x0 is None else np.atleast_1d(real_array(x0, "x0"))
    n = mean.size
    first = np.zeros((n, n)) if prior is None else prior
    if mean.ndim != 1 or first.shape != (n, n):
        raise ShapeError(f"x0 must have shape (n,) and P0 (n, n); got {mean.shape} and {first.shape}")
    given = {
        "H": (maps, 0),
        "R": (noise_of, 0),
        "F": (np.zeros((0, n, n)) if F is None else _matrix(F, "F"), 1),
        "Q": (np.zeros((0, n, n)) if Q is None else _matrix(Q, "Q"), 1),
    }
    for name, (value, _) in given.items():
        if value.ndim not in (2, 3):
            raise ShapeError(f"{name} must be one matrix or a stack of matrices, got shape {value.shape}")
    lengths = {name: value.shape[0] + extra for name, (value, extra) in given.items() if value.ndim == 3}
    if steps is None and not lengths:
        raise ShapeError("every matrix is time-invariant, so the number of steps is unknown; give steps=N")
    if steps is not None and not isinstance(steps, int | np.integer):
        raise ShapeError(f"steps must be a whole number, got {steps!r}")
    N = int(steps) if steps is not None else next(iter(lengths.values()))
    for name, length in lengths.items():
        if length != N:
            raise ShapeError(
                f"{name} has {length - given[name][1]} entries, but {N} steps need {N - given[name][1]}: "
                "F and Q belong to the N-1 edges, H and R to the N steps"
            )
    if N < 1:
        raise ShapeError(f"a time series needs at least one step, got {N}")
    stack = {
        name: value if value.ndim == 3 else np.broadcast_to(value, (N - extra, *value.shape))
        for name, (value, extra) in given.items()
    }
    known_by = "H" if P0 is None else "P0" if x0 is None else "x0"
    for name in ("F", "Q"):
        if stack[name].shape[1:] != (n, n):
            raise ShapeError(f"{name} has blocks of shape {stack[name].shape[1:]}, but {known_by} says n = {n}")
    xi = None
    if inputs is not None or mean.any():
        xi = np.zeros((N, n))
        xi[0] = mean
    if xi is not None and inputs is not None:
        u = real_array(inputs, "inputs")
        if u.shape != (N - 1, n):
            raise ShapeError(f"inputs must have shape {(N - 1, n)}, one row for each edge; got {u.shape}")
        xi[1:] = u
    tree, sizes = Tree.chain(N), even(N, n)
    phi: Packed | Shared = Shared(stack["F"][:1], np.zeros(N, np.uint8))
    noise: FloatArray | Packed | Shared = first[None]
    if given["F"][0].ndim == 3:
        phi = Packed(stack["F"].flatten(), parent_blocks(tree, sizes)[0], sizes)
    if given["Q"][0].ndim == 3:
        noise = Packed(np.concatenate([first.ravel(), stack["Q"].ravel()]), sizes, sizes)
    elif N > 1:
        which = np.ones(N, np.uint8)
        which[0] = 0
        noise = Shared(np.stack([first, stack["Q"][0]]), which)
    return Chain(tree, phi, stack["H"], noise, stack["R"], None if xi is None else xi.ravel())


@contextmanager
def told_of_edges() -> Iterator[None]:
    """Say in errors of a StateSpace what the caller of a chain knows: Q of node 0 is his P0, of node k his Q[k − 1]."""
    try:
        yield
    except KfdynError as error:
        told = re.sub(
            r"^(model \d+: )?Q of node (\d+)",
            lambda m: (m[1] or "") + (f"Q[{int(m[2]) - 1}]" if int(m[2]) else "P0"),
            str(error),
        )
        raise type(error)(told) from None


def _matrix(value: ArrayLike, name: str) -> FloatArray:
    """The array of a matrix or of many; a number is a matrix (1, 1)."""
    array = real_array(value, name)
    return array.reshape(1, 1) if array.ndim == 0 else array
