"""What happens once: the compiler is loaded whole, says that it compiles, and finds a place to keep what it made."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_said: list[str] = []


def folder() -> Path | None:
    """Where compiled code is kept: KFDYN_CACHE_DIR, or beside other caches of the user's; None if nowhere."""
    asked = os.environ.get("KFDYN_CACHE_DIR")
    if asked:
        places = [Path(asked)]
    else:
        home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
        places = []
        with suppress(RuntimeError):  # nobody's home
            places.append(Path(home) / "kfdyn" if home else Path.home() / ".cache" / "kfdyn")
        user = os.getuid() if hasattr(os, "getuid") else "user"
        with suppress(FileNotFoundError):  # no place for temporary files either
            places.append(Path(tempfile.gettempdir()) / f"kfdyn-{user}")
    for place in places:
        try:
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
            own = not hasattr(os, "getuid") or place.stat().st_uid == os.getuid()
            if own and os.access(place, os.W_OK):
                return place
        except OSError:
            continue
    return None


def compiling(stale: bool) -> None:
    """Say on the standard error stream, once in a process, that code is compiled, and whether it is on disk then.

    ``stale``: it is not, since the package's files are no longer what was imported. The environment's KFDYN_QUIET
    silences it.
    """
    if stale:
        text = "for this process alone: files of kfdyn have changed since it was imported, so begin a new process"
    elif folder() is None:
        text = (
            "for this machine, again in every process: there is no folder to keep it in; "
            "set KFDYN_CACHE_DIR to one that can be written"
        )
    else:
        text = "for this machine, once; `kfdyn warm` does it ahead of time"
    _say("compiling", text)


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
