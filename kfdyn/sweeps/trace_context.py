"""The tracing state of each thread: where code is written, and with which fast-math flags."""

import threading
from contextlib import contextmanager
from typing import Any

#: May be reassociated: short sums then use vector registers; NaN and infinity keep their meaning.
FAST = "contract reassoc nsz arcp"

#: For what cancels on purpose: there the order of the operations is the method.
IN_ORDER = "contract"

#: For lanes, which fill the registers as they are: only products and sums are fused.
LANEWISE = "contract nsz"


class _Tracing(threading.local):
    """Tracing state of a thread: the builder, None while no code is written, and the fast-math flags.

    ``machine``: the processor that it is written for, while some code is.
    ``unrolled``: loops over what Python knows are run and not written.
    """

    builder: Any = None
    machine: Any = None
    flags: str = LANEWISE
    unrolled: bool = False

    @property
    def depth(self):
        """Number of run-time branches around the place that is being written."""
        return 0 if self.builder is None else self.builder.depth

    @contextmanager
    def having(self, **what):
        """Use another builder, other flags or unrolled loops for a while."""
        before = {name: getattr(self, name) for name in what}
        vars(self).update(what)
        try:
            yield
        finally:
            vars(self).update(before)


tracing = _Tracing()


def unrolled():
    """Write straight-line code: loops and variables that Python can keep are Python's own."""
    return tracing.having(unrolled=True)


def arithmetic(flags):
    """Write operations with these fast-math flags; () is none."""
    return tracing.having(flags=flags or "")


def settled(depth):
    """Refuse to change a Python value of an outer depth inside a run-time branch."""
    if tracing.depth > depth:
        raise TypeError("a variable that Python holds cannot change where it is not known whether the code will run")
