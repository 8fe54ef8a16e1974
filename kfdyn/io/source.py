"""Open a description from a file or a string, and tell its format by its content."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import NamedTuple

from kfdyn.errors import ModelError
from kfdyn.io.xml_reader import MAX_BYTES, Element, read_elements


class Source(NamedTuple):
    """The bytes of a description, a name for messages, and the file they came from if any."""

    name: str
    data: bytes
    path: Path | None
    encoding: str | None

    def root(self) -> Element:
        """Return the start of the root element; its tag says which format this is."""
        return next(read_elements(self.data, self.name, lambda tag: False, self.encoding))


def open_source(source: str | bytes | os.PathLike[str]) -> Source:
    """Read a path, or take a string that begins with ``<`` (white space apart) for the description itself."""
    if isinstance(source, bytes):
        return Source("<bytes>", _declaration_first(source), None, None)
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<"):
        try:
            # The string is decoded already, whatever encoding its declaration names.
            return Source("<string>", _declaration_first(source.lstrip("\ufeff").encode()), None, "utf-8")
        except UnicodeEncodeError as error:
            raise ModelError(
                f"<string>: character {error.start} is a lone surrogate, which no XML file holds"
            ) from None
    if not isinstance(source, str | os.PathLike):
        kind = type(source).__name__
        cure = "; kf.io.from_mujoco_model takes one that MuJoCo has compiled" if kind == "MjModel" else ""
        raise ModelError(f"load needs a path or a string of XML, got {kind}{cure}")
    if "\0" in os.fspath(source):
        raise ModelError(f"{os.fspath(source)[:60]!r} is neither a path nor XML; XML begins with '<'")
    return _read_file(Path(source))


def expect_no_page(source: Source) -> None:
    """Refuse an HTML page by its name: what a browser saves of a site that shows the file."""
    if re.match(
        rb"(\xef\xbb\xbf)?\s*(<!--.*?-->\s*)*<(!doctype\s+)?html\b", source.data[:4096], re.IGNORECASE | re.DOTALL
    ):
        raise ModelError(
            f"{source.name}: is an HTML page, no robot; save the file itself (where a site shows it, its 'raw' form)"
        )


def _read_file(path: Path) -> Source:
    info = path.stat()  # a missing file stays the FileNotFoundError that callers expect
    if not stat.S_ISREG(info.st_mode):
        raise ModelError(f"{path}: not a regular file; give the .urdf or .xml file itself")
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)  # the size may lie, as it does in /proc
    if len(data) > MAX_BYTES:
        raise ModelError(f"{path}: larger than {MAX_BYTES >> 20} MiB; a robot's description is far smaller")
    return Source(path.name, _declaration_first(data), path, None)


def _declaration_first(data: bytes) -> bytes:
    """Move blank lines before an XML declaration behind it, where XML allows them; lines keep their numbers."""
    return re.sub(rb"\A(\s+)(<\?xml[^>]{0,200}\?>)", rb"\2\1", data, count=1)
