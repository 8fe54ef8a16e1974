"""The file that a system was read from, so that peers can be asked about the same robot."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple


class Origin(NamedTuple):
    """The description behind a system.

    Attributes
    ----------
    format : {"urdf", "mjcf"}
    path : Path or None
        The file; None if a string was read.
    data : bytes
        What stood there when it was read.
    floating_base : bool
        Whether the root links of a URDF were put on free hinges.

    Examples
    --------
    >>> import kfdyn as kf
    >>> arm = kf.load(kf.save_urdf(kf.models.double_pendulum()))
    >>> arm.origin.format, arm.origin.path, arm.origin.floating_base
    ('urdf', None, False)
    >>> kf.models.double_pendulum().origin is None
    True
    """

    format: Literal["urdf", "mjcf"]
    path: Path | None
    data: bytes
    floating_base: bool

    def file(self) -> Path | None:
        """Return the file, if it still is what was read."""
        if self.path is None:
            return None
        try:
            return self.path if self.path.read_bytes() == self.data else None
        except OSError:
            return None
