"""Where hinges, bodies and frames of a system are, by their names."""

from __future__ import annotations

from collections.abc import Mapping

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, shown
from kfdyn.multibody.coordinates.expansion import Expansion
from kfdyn.multibody.parts.body import Body, Frame
from kfdyn.multibody.parts.system_validation import hint


class Lookup:
    """What a system of rigid bodies finds by names."""

    __slots__ = ()

    name: str
    bodies: tuple[Body, ...]
    body_names: tuple[str, ...]
    frames: Mapping[str, Frame]
    _expansion: Expansion
    _frame: dict[str, tuple[int, Array, Array]]
    _hinge: dict[str, int]

    def v_slice(self, hinge: str) -> slice:
        """Where the named hinge sits in v, a and tau."""
        k = self._own(hinge, "v")
        start = int(self._expansion.v_start[k])
        return slice(start, start + self.bodies[k].hinge.nv)

    def q_slice(self, hinge: str) -> slice:
        """Where the named hinge sits in q."""
        k = self._own(hinge, "q")
        start = int(self._expansion.q_start[k])
        return slice(start, start + self.bodies[k].hinge.nq)

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
        if not isinstance(body, str) or body not in self._frame or body in self.frames:
            raise ModelError(f"system {self.name!r} has no body {shown(body)}" + hint(body, self.body_names))
        return self._frame[body][0]

    def locate(self, frame: str) -> tuple[int, Array, Array]:
        """Body index, rotation (3, 3) and position (3,) of the named frame or body."""
        if not isinstance(frame, str) or frame not in self._frame:
            raise ModelError(f"system {self.name!r} has no body or frame {shown(frame)}" + hint(frame, self._frame))
        return self._frame[frame]

    def carrier(self, frame: str) -> int:
        """Index of the body that carries the named frame, or that it is."""
        return self.locate(frame)[0]
