"""Read XML from untrusted files: bounded, iterative, with line numbers; and the numbers in its attributes.

Document type declarations are refused, and with them every entity, internal or external. A file is read
piece by piece; what a piece may hold is limited, so hostile files fail early and in little memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from kfdyn.errors import KfdynError, ModelError

MAX_BYTES = 64 << 20  # a file; a chain of 10^5 links has some 40 MB
MAX_TOKEN = 1 << 20  # one tag with all its attributes, or one comment
MAX_DEPTH = 256  # elements inside elements; a robot needs ten
MAX_SUBTREE = 10_000  # elements kept below one child of the root
MAX_ELEMENTS = 3_000_000  # in the file
CHUNK = 1 << 18


@dataclass(slots=True)
class Element:
    """A tag, its attributes, the kept elements inside it, and the line where it begins."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)

    def find(self, tag: str) -> Element | None:
        """First child with this tag, or None."""
        return next((child for child in self.children if child.tag == tag), None)


def read_elements(
    data: bytes, source: str, keep: Callable[[str], bool], encoding: str | None = None
) -> Iterator[Element]:
    """Yield the root's start (without children), then each child of the root as soon as it is complete.

    Parameters
    ----------
    data
        The file.
    source
        Its name, for messages.
    keep
        Which tags to keep below the root's children; the others are passed over with all they hold.
    encoding
        Overrides the file's own declaration.

    Notes
    -----
    Cost O(bytes); memory is that of one child of the root. Nothing recurses.

    Examples
    --------
    >>> [e.tag for e in read_elements(b"<robot><link/><joint/></robot>", "text", lambda tag: True)]
    ['robot', 'link', 'joint']
    """
    if len(data) > MAX_BYTES:
        raise ModelError(f"{source}: larger than {MAX_BYTES >> 20} MiB; a robot's description is far smaller")
    reader = _Reader(source, keep, encoding)
    for start in range(0, max(len(data), 1), CHUNK):
        piece = data[start : start + CHUNK]
        reader.feed(piece, start + CHUNK >= len(data))
        yield from reader.complete
        reader.complete.clear()


class _Reader:
    """Expat's events, gathered to elements on an explicit stack."""

    def __init__(self, source: str, keep: Callable[[str], bool], encoding: str | None) -> None:
        self.source, self.keep = source, keep
        self.complete: list[Element] = []
        self.stack: list[Element] = []
        self.depth = self.skipped = self.fed = self.count = self.held = 0  # skipped: depth of what is passed over
        self.parser = parser = expat.ParserCreate(encoding)
        parser.buffer_text = False
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.StartDoctypeDeclHandler = self.refuse
        parser.EntityDeclHandler = self.refuse
        parser.ExternalEntityRefHandler = self.refuse

    def fault(self, message: str) -> ModelError:
        return ModelError(f"{self.source}:{self.parser.CurrentLineNumber}: {message}")

    def feed(self, piece: bytes, last: bool) -> None:
        try:
            self.parser.Parse(piece, last)
        except ModelError:
            raise
        except expat.ExpatError as error:
            text = expat.ErrorString(error.code)
            raise ModelError(
                f"{self.source}:{error.lineno}: not well-formed XML ({text}); is the file whole?"
            ) from None
        except (ValueError, LookupError) as error:  # an encoding that Python does not know, or of many bytes
            raise self.fault(f"cannot be decoded ({error}); save the file as UTF-8") from None
        self.fed += len(piece)
        if not last and self.fed - self.parser.CurrentByteIndex > MAX_TOKEN:
            raise self.fault(f"a tag or comment longer than {MAX_TOKEN >> 20} MiB; no robot needs one")

    def refuse(self, *_: object) -> int:
        raise self.fault("document types and entities are not read; remove the <!DOCTYPE ...> declaration")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        self.count += 1
        if self.depth > MAX_DEPTH:
            raise self.fault(f"elements nested deeper than {MAX_DEPTH}")
        if self.count > MAX_ELEMENTS:
            raise self.fault(f"more than {MAX_ELEMENTS} elements")
        if self.skipped:
            return
        if self.depth > 2 and not self.keep(tag):
            self.skipped = self.depth
            return
        element = Element(tag, attributes, self.parser.CurrentLineNumber)
        if self.depth == 1:
            self.complete.append(element)
            return
        if self.depth == 2:
            self.held = 0
        else:
            self.held += 1
            if self.held > MAX_SUBTREE:
                raise self.fault(f"more than {MAX_SUBTREE} elements in one <{self.stack[0].tag}>")
            self.stack[-1].children.append(element)
        self.stack.append(element)

    def end(self, tag: str) -> None:
        depth, self.depth = self.depth, self.depth - 1
        if self.skipped:
            if depth == self.skipped:
                self.skipped = 0
            return
        if depth >= 2:
            element = self.stack.pop()
            if depth == 2:
                self.complete.append(element)


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
