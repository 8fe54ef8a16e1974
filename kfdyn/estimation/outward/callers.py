"""Who asks for an answer, and so is told of the digits that it lacks: not the package itself, as a fit does."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

_PACKAGE, _HERE = (str(Path(__file__).parents[i]) for i in (2, 0))


def caller() -> FrameType | None:
    """The first frame that is none of these files'; None if it is the package's."""
    frame = sys._getframe(1)
    while frame.f_back and (frame.f_code.co_filename.startswith(_HERE) or "functools" in frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame.f_code.co_filename.startswith(_PACKAGE) else frame


def depth(frame: FrameType) -> int:
    """How many calls up a frame is, for the caller of this function."""
    count, at = 1, sys._getframe(1)
    while at is not None and at is not frame:
        count, at = count + 1, at.f_back  # type: ignore[assignment]
    return count
