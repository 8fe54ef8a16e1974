"""Find hinges, bodies and frames of a system by their names; and springs and modes, if it bends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, shown
from kfdyn.multibody.coordinates.expansion import Expansion
from kfdyn.multibody.parts.body import Frame
from kfdyn.multibody.parts.system_validation import hint


class Lookup:
    """Lookup of hinges, bodies and frames by name."""

    __slots__ = ()

    name: str
    n_bodies: int
    body_names: tuple[str, ...]
    frames: Mapping[str, Frame]
    _expansion: Expansion
    _frame: dict[str, tuple[int, Array, Array]]
    _hinge: dict[str, int]

    def v_slice(self, hinge: str) -> slice:
        """Return where the named hinge sits in v, a and tau."""
        k = self._own(hinge, "v")
        start = int(self._expansion.v_start[k])
        return slice(start, start + self._expansion.places.hinges[k].nv)

    def q_slice(self, hinge: str) -> slice:
        """Return where the named hinge sits in q."""
        k = self._own(hinge, "q")
        start = int(self._expansion.q_start[k])
        return slice(start, start + self._expansion.places.hinges[k].nq)

    def _own(self, hinge: str, what: str) -> int:
        """Index of a hinge that has coordinates of its own."""
        k = self.hinge_index(hinge)
        self._expansion.expect_own(k, hinge, what)
        return k

    def hinge_index(self, hinge: str) -> int:
        """Index of the named hinge, which is the index of the body it carries."""
        if not isinstance(hinge, str) or hinge not in self._hinge:
            raise ModelError(f"system {self.name!r} has no hinge {shown(hinge)}" + hint(hinge, self._hinge))
        return self._hinge[hinge]

    def body_index(self, body: str) -> int:
        """Index of the named body."""
        found = self._frame.get(body) if isinstance(body, str) and body not in self.frames else None
        if found is None or found[0] >= self.n_bodies:
            raise ModelError(f"system {self.name!r} has no body {shown(body)}" + hint(body, self.body_names))
        return found[0]

    def locate(self, frame: str) -> tuple[int, Array, Array]:
        """Body index, rotation (3, 3) and position (3,) of the named frame or body."""
        if not isinstance(frame, str) or frame not in self._frame:
            raise ModelError(f"system {self.name!r} has no body or frame {shown(frame)}" + hint(frame, self._frame))
        return self._frame[frame]

    def carrier(self, frame: str) -> int:
        """Index of the body that carries the named frame, or that it is."""
        return self.locate(frame)[0]


class FlexibleLookup(Lookup):
    """Lookup by name in a system that bends: springs and modes, too."""

    springs: dict[str, str]
    modes: NDArray[np.int64]
    attached: Mapping[str, tuple[int, Any]]

    def q_slice(self, hinge: str) -> slice:
        """Return where the named hinge sits in q, or the spring ``hinge/spring`` of a flexible joint."""
        return self.mode_slice(self.springs[hinge]) if hinge in self.springs else super().q_slice(hinge)

    def v_slice(self, hinge: str) -> slice:
        """Return where the named hinge sits in v, a and tau, or the spring ``hinge/spring`` of a flexible joint."""
        return self.mode_slice(self.springs[hinge], True) if hinge in self.springs else super().v_slice(hinge)

    def mode_slice(self, body: str, velocity: bool = False) -> slice:
        """Return where the modes of a body sit in q, or in v."""
        k, e = self.body_index(body), self._expansion
        end = int((e.v_start if velocity else e.q_start)[k + 1])
        return slice(end - int(self.modes[k]), end)

    def carrier(self, frame: str) -> int:
        """Number of the body that carries the named frame, or that it is."""
        k = self.locate(frame)[0]
        return k if k < self.n_bodies else list(self.attached.values())[k - self.n_bodies][0]

    def attachments(self, k: int) -> list[int]:
        """Bodies of the tree that are the attachments to body k."""
        first = self.n_bodies
        return [first + i for i, (body, _) in enumerate(self.attached.values()) if body == k]
