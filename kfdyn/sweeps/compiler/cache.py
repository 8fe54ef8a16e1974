"""Keep compiled code on disk under a name that says all it was made from, so it is never stale.

The name is a digest of every source file the code was written from (the module of the sweep and all modules of this
package that it imports, however far), of what was imported of them (:mod:`module_fingerprint`), the versions of
llvmlite and LLVM, Python's and NumPy's binary interfaces, the processor and what was asked. An edit, a ``git pull``,
an upgrade in place or another machine has another name; and a process that was there before the edit neither takes
nor leaves anything. Files are written whole and then named, so two processes never see half of one; where nothing can
be written, nothing is. What is loaded is run: files and folders are taken that nobody but this user and root can
write, and no others (:func:`~kfdyn.first_use.distrusted`).
"""

import hashlib
import os
import re
import stat
import sys
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np

from kfdyn.first_use import distrusted, folders, not_kept
from kfdyn.lazy import imported_at
from kfdyn.sweeps.compiler.module_fingerprint import fingerprint

_IMPORT = re.compile(r"^\s*(?:from\s+(kfdyn[\w.]*)\s+import\s+(\([^)]*\)|[^\n]*)|import\s+(kfdyn[\w.]*))", re.MULTILINE)
_NAME = re.compile(r"(\w+)(?:\s+as\s+\w+)?")
_ROOT = Path(__file__).parents[3]  # what the package is in
_ASKED = 12  # letters of a name that say what was asked
_TICK = 10_000_000  # nanoseconds by which the times of files may be behind the clock


def digest(module, *facts):
    """Return the name of code written by a module, given all else it depends on; None if that cannot be known.

    It begins with a digest of what was asked, which is the same when sources have changed (:func:`had_before`).

    It cannot be known of a module that is not of this package: whatever else it imports, or a function made in another
    has taken along, may be another number tomorrow. Nor is it known while files change: of what was there before, this
    process has imported some and not the rest. Such code is compiled once a process and kept nowhere.
    """
    if not ours(module):
        return None
    made, names = hashlib.sha256(), sorted(closure(module))
    for name in names:
        source, runs = _read(name)[0], fingerprint(name)
        if source is None or runs is None:
            return None
        made.update(name.encode() + b"\0" + source + b"\0" + runs)
    if changed(names):  # looked at last: so it was not while they were read, either
        return None
    made.update(np.__version__.encode())
    asked = repr((module, facts, sys.implementation.cache_tag, object.__basicsize__)).encode()
    made.update(asked)
    return f"{hashlib.sha256(asked).hexdigest()[:_ASKED]}{made.hexdigest()[:40]}"


def ours(module):
    """Return True if a module is of this package."""
    return module.partition(".")[0] == __name__.partition(".")[0]


def changed(names):
    """Return True if a file of these modules may have changed since the package was imported.

    A clock that is wrong, here or where the files are, can tell of a change that was none. Nobody can set back when a
    file was last changed in any way (``st_ctime``); one that has no times is in an archive, which has. A time that is
    still to come tells nothing: a change after the import has one between then and now.
    """
    since, now = imported_at() - _TICK, time.time_ns()
    for name in names:
        try:
            told = os.stat(_source(name)[2])
        except OSError:
            return True
        if any(since <= when <= now for when in (told.st_mtime_ns, told.st_ctime_ns)):
            return True
    return False


def closure(module):
    """Return the names of all modules of this package that a module imports, directly or not, and its own."""
    found, left = set(), [module]
    while left:
        name = left.pop()
        if name in found:
            continue
        found.add(name)
        left += _read(name)[1]
    return found


@cache
def _read(name):
    """Return the source of a module and the modules of this package that it imports; (None, none) if not known."""
    source = _source(name)[0]
    if source is None:  # a script or a notebook
        return None, frozenset()
    text, named = source.decode(), set()
    for whence, what, whole in _IMPORT.findall(text):
        base = whence or whole
        named.add(base)
        if _source(base)[1]:
            named |= {f"{base}.{part}" for part in _NAME.findall(what)}
    if "__getattr__" in text:  # a package that imports its modules when they are asked for: any of them
        files = _ROOT.joinpath(*name.split(".")).glob("*.py")
        named |= {f"{name}.{file.stem}" for file in files if file.stem != "__init__"}
    if "kfdyn" in named:  # all of it, so that nobody knows what
        return None, frozenset()
    return source, frozenset(other for other in named if _source(other)[0] is not None)


@cache
def _source(name):
    """Return the source of a module of this package or None, whether it is a package, and its file or archive."""
    place = _ROOT.joinpath(*name.split("."))
    for file in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
        with suppress(OSError):
            source = __spec__.loader.get_data(str(file))
            return source, file.name == "__init__.py", getattr(__spec__.loader, "archive", file)
    return None, False, None


def load(name):
    """Return the code of this name, or None."""
    for place in folders().trusted if name is not None else ():
        with suppress(OSError), open(place / f"{name}.o", "rb") as file:
            told = os.fstat(file.fileno())  # of what was opened, whatever has this name by now
            if not stat.S_ISREG(told.st_mode) or distrusted(told):
                continue
            check, code = file.read(32), file.read()
            if code and _check(name, code) == check:
                return code
    return None


def had_before(name):
    """Return True if the same was asked for and kept when the sources were others."""
    found = (place.glob(f"{name[:_ASKED]}*.o") for place in folders().trusted)
    return any(file.stem != name for files in found for file in files)


def save(name, code):
    """Keep code under this name; a failure is told, not raised."""
    place = folders().kept_in if name is not None else None
    if place is None:
        return
    try:
        handle, half = tempfile.mkstemp(dir=place, prefix=".writing-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_check(name, code) + code)
            os.chmod(half, 0o644)  # whoever may look into the folder may use it
            os.replace(half, place / f"{name}.o")
        except OSError:
            os.unlink(half)
            raise
    except OSError as error:
        not_kept(place, error)


def _check(name, code):
    """Return the head of a file: code under another name is not what was asked for."""
    return hashlib.sha256(name.encode() + code).digest()
