"""Loop: two frames, or a frame and the world, that must move together along some of six rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.multibody.parts.body import IDENTITY, placement

ROWS = {"point": (3, 4, 5), "axis": (0, 1, 3, 4, 5), "pose": (0, 1, 2, 3, 4, 5)}


@dataclass(frozen=True, eq=False, init=False)
class Loop:
    """Close a loop, or make contact: frame_b does not move against frame_a along the given rows.

    ::

        rows of [R_a*(ω_b − ω_a);  R_a*(v_b − v_a − ω_a × (p_b − p_a))] = 0

    Parameters
    ----------
    frame_a, frame_b : str or None
        Bodies or frames of the system. One of them may be None: the world, at ``anchor``.
    rows : {"point", "axis", "pose"} or sequence of int
        Which of the six rows [angular; linear], in the axes of frame_a, are held. "point" holds the origins together,
        "pose" everything, "axis" all but the turn about z, as a pin does. Three angular rows align the frames; two
        align the axis of the third; one row i, with i, j, k in cyclic order, keeps axis j of frame_a at a right angle
        to axis k of frame_b, as the cross of a universal joint does.
    anchor : Pose, (rotation, position) or position (3,), optional
        Where in the world the missing frame is. Without one only rates are held, wherever the frame is;
        :func:`kfdyn.simulate` then anchors it where its motion begins, if the rows are rates of positions: all three of
        a kind, or linear ones along the world's axes (``frame_a`` None). Others, such as the sideways row of a skate
        or a wheel, hold rates for good: they are non-holonomic.
    rolling : str, optional
        Of a contact with the world: the body that rolls. The contact is where the frame is, which some other body
        carries (the axle, or what leans with the disc but does not spin), and the point of this body that happens to be
        there does not move along the rows. Held as rates.
    name : str, optional
        For messages; the frames' names if not given.

    Notes
    -----
    Rows may be redundant (a planar four-bar linkage closed at a point, in space), which no method minds. Contacts are
    bilateral: nothing lets go, and there are no friction cones. Source: SKO "cut-joint", THEORY section 12.

    Examples
    --------
    A foot on the ground, and a pin that closes a linkage:

    >>> import kfdyn as kf
    >>> kf.Loop(None, "foot", rows="pose", anchor=[0.0, 0.1, 0.0])
    Loop(frame_a=None, frame_b='foot', rows=(0, 1, 2, 3, 4, 5))
    >>> kf.Loop("rocker_end", "coupler_end", rows="axis").rows
    (0, 1, 3, 4, 5)

    A wheel that does not slip, touching the ground at a frame of the car below its axle:

    >>> kf.Loop(None, "below_the_axle", rows="point", rolling="wheel").holds_positions
    False
    """

    frame_a: str | None
    frame_b: str | None
    rows: tuple[int, ...]
    anchor: tuple[Array, Array] | None = field(repr=False)
    name: str = field(repr=False)
    rolling: str | None = field(repr=False)

    def __init__(
        self,
        frame_a: str | None,
        frame_b: str | None = None,
        rows: str | Sequence[int] = "pose",
        anchor: Any = None,
        name: str | None = None,
        rolling: str | None = None,
    ) -> None:
        ends = [end for end in (frame_a, frame_b) if end is not None]
        if not ends or not all(isinstance(end, str) for end in ends):
            raise ModelError(f"a loop needs the names of two frames, or of one and the world, got {frame_a!r:.40}")
        if frame_a == frame_b:
            raise ModelError(f"a loop from frame {frame_a!r} to itself holds nothing; name two frames")
        label = name or (f"{ends[0]!r} to {ends[1]!r}" if len(ends) == 2 else f"{ends[0]!r} to the world")
        if anchor is not None and len(ends) == 2:
            raise ModelError(f"loop {label}: it joins two frames of the system and takes no anchor in the world")
        if rolling is not None and (anchor is not None or len(ends) == 2):
            raise ModelError(
                f"loop {label}: what rolls touches the world wherever the frame is; name one frame, and give no anchor"
            )
        put = object.__setattr__
        put(self, "frame_a", frame_a)
        put(self, "frame_b", frame_b)
        put(self, "rows", _rows(rows, label))
        put(self, "anchor", None if anchor is None else _anchor(anchor, label))
        put(self, "name", label)
        put(self, "rolling", rolling)

    @property
    def holds_positions(self) -> bool:
        """True if it closes on positions, and not on rates alone."""
        return self.anchor is not None or (self.frame_a is not None and self.frame_b is not None)

    def moves_with(self, frame: str) -> str:
        """The body or frame whose motion is held at one of its frames: the frame's own, or what rolls there."""
        return self.rolling or frame

    @property
    def angular(self) -> tuple[int, ...]:
        """Its angular rows."""
        return tuple(row for row in self.rows if row < 3)

    def anchored(self, rotation: Array, position: Array) -> Loop:
        """The same contact, anchored in the world; (B, 3, 3) and (B, 3) anchor each state of a batch of its own."""
        loop = Loop(self.frame_a, self.frame_b, self.rows, None, self.name)
        object.__setattr__(loop, "anchor", (rotation, position))
        return loop


def _rows(rows: str | Sequence[int], label: str) -> tuple[int, ...]:
    if isinstance(rows, str):
        if rows not in ROWS:
            raise ModelError(f"loop {label}: rows must be {', '.join(map(repr, ROWS))} or numbers 0 to 5, got {rows!r}")
        return ROWS[rows]
    try:
        numbers = tuple(int(row) for row in rows)
    except (TypeError, ValueError):
        raise ModelError(f"loop {label}: rows must be numbers 0 to 5, got {rows!r:.60}") from None
    if not numbers or len(set(numbers)) < len(numbers) or not set(numbers) <= set(range(6)):
        raise ModelError(f"loop {label}: rows must be different numbers from 0 to 5, at least one, got {numbers}")
    return numbers


def _anchor(anchor: Any, label: str) -> tuple[Array, Array]:
    if isinstance(anchor, tuple) and len(anchor) == 2:
        rotation, position = anchor
    else:
        rotation, position = IDENTITY, anchor
    return placement(rotation, position, f"loop {label}: anchor")
