"""Where code is written, and with which liberties: one place for each thread, which all proxies write to."""

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
    """Where this thread writes code: the builder, None while it writes none; and the liberties of its arithmetic.

    ``machine``: the processor that it is written for, while some code is.
    ``unrolled``: loops over what Python knows are run and not written.
    """

    builder: Any = None
    machine: Any = None
    flags: str = LANEWISE
    unrolled: bool = False

    @property
    def depth(self):
        """How many branches that are not known until the code runs stand around what is being written."""
        return 0 if self.builder is None else self.builder.depth

    @contextmanager
    def having(self, **what):
        """Another builder, other liberties, or unrolled loops, for a while."""
        before = {name: getattr(self, name) for name in what}
        vars(self).update(what)
        try:
            yield
        finally:
            vars(self).update(before)


tracing = _Tracing()


def unrolled():
    """Write straight-line code: variables and loops that Python can keep are Python's own."""
    return tracing.having(unrolled=True)


def arithmetic(flags):
    """Write numbers' operations with these liberties; () is none."""
    return tracing.having(flags=flags or "")


def settled(depth):
    """Make sure that what was made at this depth may change here."""
    if tracing.depth > depth:
        raise TypeError("a variable that Python holds cannot change where it is not known whether the code will run")
