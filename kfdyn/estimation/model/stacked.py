"""States and outputs stacked node by node: viewed as blocks, and checked, with errors that name the node."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.model.arrays import Arrays
from kfdyn.estimation.model.blocks import Blocks, FloatArray, IntArray, real_array
from kfdyn.estimation.model.overflow import sum_is_finite
from kfdyn.estimation.model.sizes import Common
from kfdyn.estimation.model.tree import Tree


class Stacked:
    """What a model knows of vectors (..., Σn_k) of states and (..., Σm_k) of outputs."""

    tree: Tree
    n: IntArray
    m: IntArray
    n_states: int
    n_outputs: int
    arrays: Arrays
    common: Common

    def state_blocks(self, flat: FloatArray) -> Blocks:
        """View a stacked state (..., Σn_k) node by node."""
        return Blocks(flat, self.n, offsets=self.arrays.state)

    def output_blocks(self, flat: FloatArray) -> Blocks:
        """View a stacked output (..., Σm_k) node by node."""
        return Blocks(flat, self.m, offsets=self.arrays.output)

    def check_states(self, value: ArrayLike, name: str) -> FloatArray:
        """Value as float64 (..., Σn_k), finite, else an error that names it."""
        return self._check_stacked(value, name, self.n_states, "states")[0]

    def check_outputs(self, value: ArrayLike, name: str, *, allow_nan: bool = False) -> FloatArray:
        """Value as float64 (..., Σm_k), finite (or NaN where allowed), else an error that names it.

        Where all N nodes have m outputs, (..., N, m) is taken as well, a row for each node.
        """
        return self.checked_outputs(value, name, allow_nan)[0]

    def checked_outputs(self, value: ArrayLike, name: str, allow_nan: bool) -> tuple[FloatArray, bool]:
        """What :meth:`check_outputs` returns, and whether a look has told that all of it is finite."""
        if not isinstance(value, np.ndarray) or value.ndim != 1:
            N, m = len(self.tree), self.common.m
            if m and N > 1 and np.shape(value)[-2:] == (N, m):  # not where (N, 0) is a batch of nothing
                value = real_array(value, name)
                value = value.reshape(*value.shape[:-2], N * m)
        return self._check_stacked(value, name, self.n_outputs, "outputs", allow_nan)

    def _check_stacked(
        self, value: ArrayLike, name: str, size: int, what: str, allow_nan: bool = False
    ) -> tuple[FloatArray, bool]:
        array = real_array(value, name)
        if array.ndim == 0 or array.shape[-1] != size:
            raise ShapeError(
                f"{name} has shape {array.shape}, but its last axis must stack the {size} {what} of the "
                f"{len(self.tree)} nodes in node order: shape (..., {size})"
            )
        if sum_is_finite(array):
            return array, True
        bad = np.isinf(array) if allow_nan else ~np.isfinite(array)
        if bad.any():
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            starts = self.arrays.state if what == "states" else self.arrays.output
            node = int(np.searchsorted(starts, at[-1], side="right")) - 1
            cure = "; mark a missing measurement by NaN" if allow_nan else ""
            raise ModelError(f"{name}{list(at)} ({self.tree.label(node)}) is {array[at]}, not a finite number{cure}")
        return array, False
