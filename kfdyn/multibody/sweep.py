"""The outward sweep over a batch, in parts small enough to stay in cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.multibody.layout import Layout

Array = NDArray[np.float64]

# Bodies times configurations per part: about 240 bytes each, so a part is some 2 MB.
PART = 8192


class Swept(NamedTuple):
    """What the outward sweep leaves, world orientation, at each body's origin (R86 5.1-5.6).

    Attributes
    ----------
    R, p : (batch, n, 3, 3), (batch, n, 3)
        Pose of each body.
    H : (batch, nv, 6)
        Rows of the hinge maps.
    V, eta : (batch, n, 6)
        Velocity, and bias acceleration without gravity.
    """

    R: Array
    p: Array
    H: Array
    V: Array
    eta: Array

    @classmethod
    def empty(cls, layout: Layout, size: int) -> Swept:
        """Room for ``size`` configurations."""
        n, nv = len(layout.parent), len(layout.armature)
        shapes = ((n, 3, 3), (n, 3), (nv, 6), (n, 6), (n, 6))
        return cls(*(np.empty((size, *shape)) for shape in shapes))


def outward(layout: Layout, q: Array, v: Array) -> Iterator[tuple[slice, Swept]]:
    """Sweep q (batch, nq), v (batch, nv) part by part; only the bodies of ``layout.order`` are filled in.

    The arrays of one part are overwritten by the next: read them before going on.
    """
    from kfdyn.multibody import _kernels

    size = min(len(q), max(1, PART // len(layout.parent)))
    room = Swept.empty(layout, size)
    for start in range(0, len(q), max(size, 1)):
        part = slice(start, min(start + size, len(q)))
        swept = Swept(*(a[: part.stop - start] for a in room))
        _kernels.outward(layout, q[part], v[part], *swept)
        yield part, swept
