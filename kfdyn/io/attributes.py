"""Read numbers and names from an element's attributes; errors name file, line, element and cure."""

from __future__ import annotations

import math
import re

from kfdyn.errors import KfdynError, ModelError
from kfdyn.io.xml_reader import Element

Vector = tuple[float, ...]

ZERO = (0.0, 0.0, 0.0)
LONGEST = 400  # characters of an attribute that holds numbers; three of 17 digits have some 80
LARGEST = 1e30  # of a length, mass, angle; products of a few of them stay far from overflow
UNLIMITED = 1.7e308  # at and beyond this a limit is none: other tools write the largest double
# float() would also take '1_000' and digits of other scripts, which no other reader of URDF does.
NUMBER = r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:inf|infinity|nan))"
NUMBERS = {
    count: re.compile(r"\s*" + r"\s+".join([NUMBER] * count) + r"\s*", re.ASCII | re.IGNORECASE) for count in (1, 3)
}


class ElementReader:
    """Reads what is inside one named element, ``owner``; ``notes`` gathers what is odd but harmless."""

    def __init__(self, source: str, owner: Element, notes: list[str]) -> None:
        self.source, self.owner, self.notes = source, owner, notes

    @property
    def owned(self) -> str:
        """The owner in words: joint 'elbow'."""
        name = self.owner.attributes.get("name")
        return f"<{self.owner.tag}>" if name is None else f"{self.owner.tag} {name[:100]!r}"

    def fault(self, message: str, element: Element | None = None, kind: type[KfdynError] = ModelError) -> KfdynError:
        """Make an error that says where it is."""
        element = element or self.owner
        inside = "" if element is self.owner else f"<{element.tag}> of "
        return kind(f"{self.source}:{element.line}: {inside}{self.owned}: {message}")

    def only(self, tag: str) -> Element | None:
        """Return the element's one child with this tag; of several the first counts, which is noted."""
        found = [child for child in self.owner.children if child.tag == tag]
        if len(found) > 1:
            note = f"line {found[1].line}: {self.owned} has several <{tag}>; the first counts"
            if note not in self.notes[-10:]:
                self.notes.append(note)
        return found[0] if found else None

    def origin(self, element: Element) -> tuple[Vector, Vector]:
        """Return xyz and rpy of the element's <origin>."""
        origin = element.find("origin")
        return self.vector(origin, "xyz", ZERO), self.vector(origin, "rpy", ZERO)

    def nonnegative(self, element: Element, key: str, default: float) -> float:
        """Return a number that must not be negative."""
        value = self.scalar(element, key, default, infinite=key in ("velocity", "effort"))
        if value < 0:
            raise self.fault(f"{key} {value:.6g} is negative; give its size", element)
        return value

    @staticmethod
    def unlimited(value: float) -> float:
        """Return ±inf for what other tools write for it."""
        return math.copysign(math.inf, value) if abs(value) >= UNLIMITED else value

    def scalar(self, element: Element, key: str, default: float | None = None, infinite: bool = False) -> float:
        """Return one number."""
        text = element.attributes.get(key)
        if text is None:
            if default is None:
                raise self.fault(f"has no {key}='...'; give a number", element)
            return default
        return self._numbers(element, key, text, 1, infinite)[0]

    def vector(self, element: Element | None, key: str, default: Vector) -> Vector:
        """Return three numbers."""
        text = None if element is None else element.attributes.get(key)
        if element is None or text is None:
            return default
        return self._numbers(element, key, text, 3, False)

    def _numbers(self, element: Element, key: str, text: str, count: int, infinite: bool) -> Vector:
        match = NUMBERS[count].fullmatch(text) if len(text) <= LONGEST else None
        if match is None:
            cure = "expand xacro first" if "$" in text else "numbers are separated by blanks and have a decimal point"
            wanted = "a number" if count == 1 else f"{count} numbers"
            raise self.fault(f"{key}={text[:60]!r} is not {wanted}; {cure}", element)
        values = tuple(map(float, match.groups()))
        for value in values:
            if not -LARGEST <= value <= LARGEST and (not infinite or value != value):
                size = f"larger than {LARGEST:g}" if math.isfinite(value) else "not finite"
                raise self.fault(f"{key}={text[:60]!r} is {size}; give a number in metres, kilograms, radians", element)
        return values
