"""Read XML from untrusted files: bounded, iterative, with line numbers.

Document type declarations are refused, and with them every entity, internal or external. A file is read
piece by piece; what a piece may hold is limited, so hostile files fail early and in little memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from kfdyn.errors import ModelError

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
