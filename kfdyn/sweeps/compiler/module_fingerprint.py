"""Hash a module as it was imported: the code of its functions, and its constants.

The source on disk may differ from the module that was imported: the file has changed since, Python took an old
``.pyc`` (it compares only size and seconds), or somebody assigned another constant. Compiled code is made from what was
imported, so that is hashed as well.
"""

import hashlib
from functools import cache, cached_property, partial
from importlib import import_module
from types import CodeType, FunctionType

_PLAIN = (int, float, complex, str, bytes, type(None), type(...))

# Of a class, what says nothing about what it does.
_IDLE = ("__doc__", "__module__", "__annotations__", "__firstlineno__", "__static_attributes__", "__dict__")


@cache
def fingerprint(name):
    """Return bytes that change if the module of this name does; None if there is none."""
    try:
        module = import_module(name)  # now rather than by what is compiled, so that it is known
    except ImportError:
        return None
    found, names = Findings(name), vars(module)
    # Into a package that imports its names when they are asked for come others' in the course of time.
    lazy = hasattr(module, "__path__") and "__getattr__" in names
    for key in sorted(names):
        if not key.startswith("__"):
            found.add(names[key], key, own=lazy)
    return found.digest()


class Findings:
    """The hash of a module: each function, each class of its own and each constant once."""

    def __init__(self, module):
        self.module, self.made, self.seen = module, hashlib.sha256(), set()

    def digest(self):
        """Return the hash."""
        return self.made.digest()

    def add(self, value, name="", own=False):
        """Add a value by its name and content; ``own``: only what this module defines.

        Lists, and objects without a method ``facts``, are skipped because they are mutable.
        """
        kind = type(value)
        if kind is FunctionType:
            if value.__module__ == self.module or (value.__closure__ and not own):
                self._function(value, name)
        elif isinstance(value, type):
            if value.__module__ == self.module:
                self._class(value, name)
        elif hasattr(value, "__wrapped__"):
            self.add(value.__wrapped__, name, own)
        elif not own:
            self._constant(value, kind, name)

    def _constant(self, value, kind, name):
        if isinstance(value, _PLAIN):
            self._say(name, repr(value))
        elif isinstance(value, tuple):
            plain = [x for x in value if isinstance(x, _PLAIN)]
            self._say(name, kind.__name__, len(value), plain)
            for x in value if len(plain) < len(value) else ():
                self.add(x)
        elif kind in (set, frozenset):
            self._say(name, sorted(map(repr, value)) if all(isinstance(x, _PLAIN) for x in value) else len(value))
        elif kind is dict:
            for key, x in value.items():
                if isinstance(key, _PLAIN):
                    self.add(x, f"{name} {key!r}")
        elif kind is partial:
            for x in (value.func, value.args, value.keywords):
                self.add(x, name)
        elif hasattr(kind, "facts"):
            self._say(name, kind.__name__)
            for x in value.facts():
                self.add(x, name)

    def _function(self, function, name):
        if id(function) in self.seen:
            return
        self.seen.add(id(function))
        self._code(function.__code__, name)
        for x in (function.__defaults__, function.__kwdefaults__, *map(_content, function.__closure__ or ())):
            if x is not None:
                self.add(x, name)

    def _code(self, code, name):
        plain = [x for x in code.co_consts if isinstance(x, _PLAIN)]
        self._say(name, code.co_name, code.co_names, code.co_varnames, code.co_flags, plain)
        self.made.update(code.co_code)
        self.made.update(code.co_exceptiontable)
        for x in code.co_consts if len(plain) < len(code.co_consts) else ():
            if isinstance(x, CodeType):
                self._code(x, name)
            elif not isinstance(x, _PLAIN):
                self._constant(x, type(x), name)

    def _class(self, kind, name):
        if id(kind) in self.seen:
            return
        self.seen.add(id(kind))
        self._say(name, [base.__name__ for base in kind.__bases__])
        for key, value in vars(kind).items():
            if key in _IDLE:
                continue
            if isinstance(value, property):
                parts = (value.fget, value.fset)
            elif isinstance(value, classmethod | staticmethod):
                parts = (value.__func__,)
            elif isinstance(value, cached_property):
                parts = (value.func,)
            else:
                parts = (value,)
            for part in parts:
                self.add(part, key)

    def _say(self, *what):
        self.made.update(repr(what).encode("utf-8", "surrogatepass"))


def _content(cell):
    try:
        return cell.cell_contents
    except ValueError:  # nothing yet
        return None
