"""Find the first caller outside of the package, for warnings; a call by the package itself, as of a fit, has none."""

from __future__ import annotations

import sys
from types import FrameType

from kfdyn.estimation.precision.cancellation import is_of

_HERE = __name__.rpartition(".")[0]
_PACKAGE = _HERE.partition(".")[0]


def caller() -> FrameType | None:
    """The first frame that is none of this folder's; None if it is the package's."""
    frame = sys._getframe(1)
    while frame.f_back and (is_of(frame, _HERE) or is_of(frame, "functools")):
        frame = frame.f_back
    return None if is_of(frame, _PACKAGE) else frame


def depth(frame: FrameType) -> int:
    """How many calls up a frame is, for the caller of this function."""
    count, at = 1, sys._getframe(1)
    while at is not None and at is not frame:
        count, at = count + 1, at.f_back  # type: ignore[assignment]
    return count
