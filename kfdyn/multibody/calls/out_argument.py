"""Where answers go: a caller's own array, if it can be written to as it stands, or by way of a new one."""

from __future__ import annotations

from typing import Any

import numpy as np

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError


def straight(out: Any, shape: tuple[int, ...], *given: Any) -> Array | None:
    """``out`` as compiled code can write to it, or None: it is not such an array, or a part of what is given.

    Rows are answered while others are still to be read, so that nothing that is given may change meanwhile.
    """
    if not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray):
        return None
    plain = np.asarray(out)  # a memory map, for example, is seen as an array
    flags = plain.flags
    if plain.shape != shape or plain.dtype != np.float64 or not (flags.c_contiguous and flags.behaved):
        return None
    if any(isinstance(x, np.ndarray) and np.may_share_memory(plain, x) for x in given):
        return None
    return plain


def filled(out: Any, answer: Array) -> Array:
    """``answer``, or ``out`` with its numbers in it; refuse what cannot hold them."""
    if out is None or answer is out:
        return answer
    if not isinstance(out, np.ndarray):
        raise ModelError(f"out must be an array of NumPy's to write the answer to, got {type(out).__name__}")
    if isinstance(out, np.ma.MaskedArray):
        raise ModelError("out must be an array without a mask, which would hide the answer; give its data, out.data")
    if out.shape != answer.shape:
        raise ShapeError(f"out must have the shape of the answer, {answer.shape}, got {out.shape}")
    if out.dtype.kind != "f" or out.dtype.itemsize != 8:
        raise ModelError(f"out must be an array of float64, got {out.dtype}")
    if not out.flags.writeable:
        raise ModelError("out cannot be written to: it is read-only; give a copy of it")
    if _overlaps_itself(out):
        raise ModelError("out must have memory of its own for every number of the answer; rows of it share theirs")
    np.copyto(out, answer)
    return out


def _overlaps_itself(out: Array) -> bool:
    """Whether some entries may be the same memory: an axis does not step over all that the smaller steps reach."""
    if not out.size:
        return False
    reach = out.itemsize
    for step, extent in sorted((abs(step), extent) for step, extent in zip(out.strides, out.shape) if extent > 1):
        if step < reach:
            return True
        reach += step * (extent - 1)
    return False
