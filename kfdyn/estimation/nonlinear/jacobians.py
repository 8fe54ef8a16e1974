"""Jacobians of functions of independent rows, all rows at once: by complex step, or by central differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.estimation.model.blocks import FloatArray

COMPLEX, DIFFERENCES, GIVEN = "complex step", "central differences", "given"

_TINY = 1e-30  # an imaginary step: nothing cancels, so it may be as small as one likes
_STEP = 6e-6  # the cube root of the rounding error, the best step of a central difference
_ROWS_AT_ONCE = 65536
_AGREE = 1e-5  # how closely complex steps must confirm differences, relative to the largest entry
_CONFIRMED = 64  # rows on which they are compared

#: (perturbation (rows, d), index of the row that each perturbs) -> rows (rows, r)
Perturbed = Callable[[Any, Any], Any]


class Differentiator:
    """Jacobians of one function; the first call decides how, and ``kind`` says so.

    Complex steps are exact to rounding, but silently wrong where a function takes moduli or drops imaginary parts.
    So they are used only if they agree with central differences at the first call.

    Parameters
    ----------
    kind : {"auto", "complex step", "central differences"}
        How to differentiate.

    Examples
    --------
    >>> at = np.array([[0.0], [1.0]])
    >>> sine = Differentiator()
    >>> sine(lambda d, row: np.sin(at[row] + d), 1, 2, None).ravel().round(6), sine.kind
    (array([1.      , 0.540302]), 'complex step')
    >>> modulus = Differentiator()
    >>> modulus(lambda d, row: np.abs(at[row] + 2 + d), 1, 2, None).ravel().round(6), modulus.kind
    (array([1., 1.]), 'central differences')
    """

    def __init__(self, kind: str = "auto") -> None:
        if kind not in ("auto", COMPLEX, DIFFERENCES):
            raise ModelError(f"jacobians must be 'auto', '{COMPLEX}' or '{DIFFERENCES}', got {kind!r}")
        self.kind = kind

    def __call__(self, function: Perturbed, size: int, rows: int, scale: FloatArray | None) -> FloatArray:
        """Differentiate at zero perturbation.

        Parameters
        ----------
        function : callable
            ``function(d, row)`` returns the rows ``row`` perturbed by d.
        size, rows : int
            Number of components of a perturbation, and of rows.
        scale : ndarray, shape (rows, size), optional
            Magnitudes of what is perturbed; differences step in proportion to them, 1 if not given.

        Returns
        -------
        ndarray, shape (rows, r, size)
        """
        if self.kind == "auto":
            self.kind = self._chosen(function, size, rows, scale)
        if self.kind == COMPLEX:
            return _complex_step(function, size, rows)
        return _central_differences(function, size, rows, scale)

    @staticmethod
    def _chosen(function: Perturbed, size: int, rows: int, scale: FloatArray | None) -> str:
        few = min(rows, _CONFIRMED)
        some = None if scale is None else scale[:few]
        differences = _central_differences(function, size, few, some)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                exact = _complex_step(function, size, few)
        except Exception:  # whatever a user's function does when it is given complex numbers
            return DIFFERENCES
        error = np.abs(exact - differences).max(initial=0.0)
        agree = np.isfinite(exact).all() and error <= _AGREE * max(np.abs(differences).max(initial=0.0), 1e-12)
        return COMPLEX if agree else DIFFERENCES


def _columns_at_once(size: int, rows: int) -> int:
    return max(1, min(size, _ROWS_AT_ONCE // max(rows, 1)))


def _complex_step(function: Perturbed, size: int, rows: int) -> FloatArray:
    parts = []
    for columns, row, d in _unit_steps(size, rows):
        value = np.asarray(function(1j * _TINY * d, row))
        if value.dtype.kind != "c":
            if columns.size and value.size:
                raise TypeError("the imaginary part was dropped")
            value = value.astype(complex)
        parts.append((value.imag / _TINY).reshape(columns.size, rows, -1))
    return np.ascontiguousarray(np.concatenate(parts).transpose(1, 2, 0))


def _central_differences(function: Perturbed, size: int, rows: int, scale: FloatArray | None) -> FloatArray:
    parts = []
    for columns, row, d in _unit_steps(size, rows):
        h = np.full((columns.size, rows), _STEP)
        if scale is not None:
            h *= np.maximum(np.abs(scale[:, columns].T), 1.0)
        step = d * h.reshape(-1, 1)
        difference = np.asarray(function(step, row)) - np.asarray(function(-step, row))
        parts.append((difference / (2.0 * h.reshape(-1, 1))).reshape(columns.size, rows, -1))
    return np.ascontiguousarray(np.concatenate(parts).transpose(1, 2, 0))


def _unit_steps(size: int, rows: int) -> Any:
    """Groups of columns: their numbers, the row of each step, and the unit perturbations."""
    width = _columns_at_once(size, rows)
    for first in range(0, size, width):
        columns = np.arange(first, min(first + width, size))
        row = np.tile(np.arange(rows), columns.size)
        d = np.zeros((columns.size * rows, size))
        d[np.arange(len(d)), np.repeat(columns, rows)] = 1.0
        yield columns, row, d
