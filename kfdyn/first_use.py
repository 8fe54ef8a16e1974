"""Tasks done once: load the compiler, announce compilation, and find a place to keep compiled code."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

_said: list[str] = []


class Folders(NamedTuple):
    """Folders whose compiled code is run, the one that takes new code or None, and what is wrong with others.

    ``trouble`` is in words, with a cure; empty if nothing is.
    """

    trusted: list[Path]
    kept_in: Path | None
    trouble: str


def folders() -> Folders:
    """Find where compiled code is kept: KFDYN_CACHE_DIR, or beside other caches of the user's.

    Compiled code is run, so only folders are used that nobody but this user and root can write. One that can be read
    and not written, as root makes it in an image, serves as it is.
    """
    trusted: list[Path] = []
    kept_in, trouble = None, ""
    for place, mode in _places():
        with suppress(OSError):
            place.mkdir(parents=True, exist_ok=True, mode=mode)
        try:
            reason = distrusted(place.stat())
        except OSError:
            continue
        if reason:
            trouble = trouble or f"{place} is not used, since it {reason}"
        elif os.access(place, os.R_OK | os.X_OK):
            trusted.append(place)
            if kept_in is None and os.access(place, os.W_OK):
                kept_in = place
    if kept_in is None and not trouble:
        what = f"{trusted[0]} cannot be written" if trusted else "there is no folder to keep it in"
        trouble = f"{what}; set KFDYN_CACHE_DIR to one that can be written"
    return Folders(trusted, kept_in, trouble)


def _places() -> list[tuple[Path, int]]:
    """Return candidates and the mode each is made with: others may read, but not the temporary one."""
    asked = os.environ.get("KFDYN_CACHE_DIR")
    if asked:
        return [(Path(asked), 0o755)]
    places = []
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    with suppress(RuntimeError):  # nobody's home
        places.append((Path(home) / "kfdyn" if home else Path.home() / ".cache" / "kfdyn", 0o755))
    user = os.getuid() if hasattr(os, "getuid") else "user"
    with suppress(FileNotFoundError):  # no place for temporary files either
        places.append((Path(tempfile.gettempdir()) / f"kfdyn-{user}", 0o700))
    return places


def distrusted(told: os.stat_result) -> str:
    """Say why somebody else may have written a file or a folder, with a cure; empty if only this user and root can."""
    if not hasattr(os, "geteuid"):
        return ""
    if told.st_uid not in (0, os.geteuid()):
        return f"belongs to another user (uid {told.st_uid}): set KFDYN_CACHE_DIR to a folder of your own"
    return "can be written by others: `chmod go-w` it" if told.st_mode & 0o022 else ""


def compiling(name: str, stale: bool, again: bool) -> None:
    """Say on the standard error stream, once in a process, what is compiled, why, and whether it is kept.

    ``stale``: it is not, since the package's files are no longer what was imported. ``again``: it was kept once, when
    these were others. The environment's KFDYN_QUIET silences it.
    """
    found = folders()
    why = "again, since kfdyn or NumPy has changed" if again else "for its first use on this machine"
    if stale:
        text = "for this process alone: files of kfdyn have changed since it was imported, so begin a new process"
    elif found.kept_in is None:
        text = f"for this process alone: {found.trouble}"
    elif found.trouble:
        text = f"{why}; {found.trouble}"
    else:
        text = f"{why}; it is kept in {found.kept_in} (`kfdyn warm` compiles ahead of time)"
    _say("compiling", f"{name} {text}")


def not_kept(place: Path, error: OSError) -> None:
    """Say, once in a process, that compiled code could not be written there."""
    told = f"in {place} ({error.strerror or error}): every process will compile it again; make room there"
    _say("what was compiled cannot be kept", f"{told}, or set KFDYN_CACHE_DIR to another folder")


def _say(what: str, more: str) -> None:
    if what in _said or os.environ.get("KFDYN_QUIET"):
        return
    _said.append(what)
    with suppress(OSError, ValueError, AttributeError):  # no such stream, or it is closed
        print(f"kfdyn: {what} {more}", file=sys.stderr, flush=True)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl-C wait until the block is done: half an import would leave a compiler that never works again."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is None:
        yield
        return
    waiting: list[tuple[Any, ...]] = []
    before = signal.signal(signal.SIGINT, lambda *args: waiting.append(args))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if waiting and callable(before):
            before(*waiting[0])
