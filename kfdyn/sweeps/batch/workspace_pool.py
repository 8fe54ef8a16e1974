"""Lend a workspace, share a counter of rows between threads, and align the stack."""

from kfdyn.sweeps.compiler.ir import BIT, BYTE, INT, VOID, Type, vector
from kfdyn.sweeps.control_flow import if_, if_else
from kfdyn.sweeps.memory import REAL, pointer
from kfdyn.sweeps.trace_context import tracing
from kfdyn.sweeps.values import ir_of, now
from kfdyn.sweeps.variables import local

_EXCHANGED = Type("{i64, i1}")


def borrowed(model, count):
    """A workspace of ``count`` floats, for a body that runs where there is one: ``for memory in borrowed(...)``.

    It is the model's own, or, if that is too small or taken, a new one. A new one costs time, and a great deal where it
    is large: the system zeroes it page by page.
    """
    build, busy = tracing.builder, model.busy.data
    address, new, free = local(model.workspace), local(0), local(False)
    for _ in if_(model.floats >= count):
        # one step that no thread comes between
        done = build.value(_EXCHANGED, f"cmpxchg {busy}, i64 0, i64 1 acq_rel acquire")
        free.set(build.value(BIT, f"extractvalue {done}, 1"))
    for _ in if_(~free):
        made = build.call("malloc", BYTE.as_pointer(), [ir_of(count * 8, INT)])
        new.set(build.cast("ptrtoint", made, INT))
        address.set(new)
    for _ in if_(now(address) != 0, likely=True):
        yield pointer(address)
        for own in if_else(new == 0):
            if own:
                build.line(f"store atomic i64 0, {busy} release, align 8")
            else:
                build.call("free", VOID, [pointer(new, BYTE).data])


def claimed(counter, at, block):
    """The row to go on with after the block from ``at`` on.

    Threads that share the work share a ``counter`` at that address, and each takes the next block; 0 is to be alone.
    """
    following = local(at + block)
    for _ in if_(counter != 0):
        place = pointer(counter, INT).data
        following.set(tracing.builder.value(INT, f"atomicrmw add {place}, i64 {block} acq_rel"))
    return following


def allowed(counter):
    """How many blocks may be taken in one call: what stands behind the counter. Alone, all of them."""
    most = local(2**62)
    for _ in if_(counter != 0):
        most.set(pointer(counter, INT)[1])
    return most


def align_stack():
    """Have the function put numbers for which it has no register where no cache line ends within one.

    The compiler aligns the stack only where a variable asks for it, so here is one.
    """
    if tracing.builder is not None:
        place = tracing.builder.alloca(vector(REAL, 8), align=64)
        tracing.builder.line(f'call void asm sideeffect "", "r"({place})')
