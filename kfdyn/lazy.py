"""Lazy imports: a package imports its names when they are first used."""

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

_CLOCK = [time.time_ns()]


def imported_at() -> int:
    """Return when the package was first imported, in nanoseconds: a file changed since may not be what runs."""
    return _CLOCK[0]


def on_first_use(
    package: str, *names_of: Mapping[str, Iterable[str]], rooms: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make the ``__getattr__``, ``__dir__`` and names of a package that imports lazily.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    *names_of : mapping of str to iterable of str
        The names, by the module within the package that has them.
    rooms : iterable of str
        Modules available by their own names.

    Returns
    -------
    callable, callable, list of str
        The package's ``__getattr__`` and ``__dir__``, and the names, sorted; ``__all__`` is the package's own affair.
    """
    module_of = {name: module for given in names_of for module, names in given.items() for name in names}
    own = vars(sys.modules[package])

    def find(name: str) -> Any:
        if name in module_of:
            value = own[name] = getattr(import_module(f"{package}.{module_of[name]}"), name)
            return value
        if name in rooms:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def listed() -> list[str]:
        """Return the public names and those every module has."""
        return sorted({*own["__all__"], *rooms, *(name for name in own if name.startswith("__"))})

    return find, listed, sorted(module_of)


def public_in(room: str) -> dict[str, tuple[str, ...]]:
    """Return the names that the whole package has of a room, by the module within the room that has them."""
    package, _, inside = room.partition(".")
    names = vars(sys.modules[package])["_NAMES_OF"].items()
    return {module.removeprefix(f"{inside}."): own for module, own in names if module.startswith(f"{inside}.")}
