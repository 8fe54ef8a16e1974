"""Where hinges, springs, modes, bodies and frames of a system that bends are, by their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, TreeError, shown
from kfdyn.multibody.coordinates.expansion import Expansion
from kfdyn.multibody.flexible.body import FlexibleBody, Shape
from kfdyn.multibody.flexible.joint import Motor

if TYPE_CHECKING:
    from kfdyn.multibody.system import System

Index = NDArray[np.int64]


class FlexibleLookup:
    """What a system that bends finds by names."""

    name: str
    n_bodies: int
    body_names: tuple[str, ...]
    hinge_names: tuple[str, ...]
    springs: dict[str, str]
    modes: Index
    q_start: Index
    v_start: Index
    hinge_q: Index
    hinge_v: Index
    tree: System
    attached: dict[str, tuple[int, Shape]]
    _expansion: Expansion

    def _number(self, name: str, names: tuple[str, ...], what: str) -> int:
        if not isinstance(name, str) or name not in names:
            raise ModelError(f"system {self.name!r} has no {what} {shown(name)}; there are {', '.join(names)}")
        return names.index(name)

    def body_index(self, name: str) -> int:
        """Number of the named body."""
        return self._number(name, self.body_names, "body")

    def hinge_index(self, name: str) -> int:
        """Number of the named hinge, and of the body it carries."""
        return self._number(name, self.hinge_names, "hinge")

    def q_slice(self, hinge: str) -> slice:
        """Where the named hinge sits in q, or the spring ``hinge/spring`` of a flexible joint."""
        return self._slice(hinge, "q", self.q_start, self.hinge_q)

    def v_slice(self, hinge: str) -> slice:
        """Where the named hinge sits in v, a and tau, or the spring ``hinge/spring`` of a flexible joint."""
        return self._slice(hinge, "v", self.v_start, self.hinge_v)

    def _slice(self, hinge: str, what: str, start: Index, size: Index) -> slice:
        if hinge in self.springs:
            return self.mode_slice(self.springs[hinge], what == "v")
        k = self.hinge_index(hinge)
        self._expansion.expect_own(k, hinge, what)
        return slice(int(start[k]), int(start[k] + size[k]))

    def mode_slice(self, body: str, velocity: bool = False) -> slice:
        """Where the modes of a body sit in q, or in v."""
        k = self.body_index(body)
        end = int((self.v_start if velocity else self.q_start)[k + 1])
        return slice(end - int(self.modes[k]), end)

    def locate(self, frame: str) -> tuple[int, Array, Array]:
        """Body index of the tree, rotation and position of the named frame or body."""
        return self.tree.locate(frame)

    def carrier(self, frame: str) -> int:
        """Number of the body that carries the named frame, or that it is."""
        k = self.locate(frame)[0]
        return k if k < self.n_bodies else list(self.attached.values())[k - self.n_bodies][0]

    def attachments(self, k: int) -> list[int]:
        """Bodies of the tree that are the attachments to body k."""
        first = self.n_bodies
        return [first + i for i, (body, _) in enumerate(self.attached.values()) if body == k]


def expect_names(
    system: str, hinges: Iterable[str], springs: Mapping[str, str], flexible: Mapping[str, FlexibleBody]
) -> None:
    """Refuse a hinge that is named as a spring or a mode is: by that name both would be asked for."""
    taken = {spring: f"the spring of hinge {flexible[motor].rigid.hinge_name!r}" for spring, motor in springs.items()}
    for name, body in flexible.items():
        if not isinstance(body, Motor):
            taken |= {f"{name}/mode_{i + 1}": f"mode {i + 1} of body {name!r}" for i in range(body.n_modes)}
    for hinge in hinges:
        if hinge in taken:
            raise TreeError(f"system {system!r}: hinge {hinge!r} bears the name of {taken[hinge]}; give it another")
