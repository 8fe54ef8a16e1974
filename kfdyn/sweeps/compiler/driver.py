"""Compile: run a function that writes code, and turn what it wrote into a function of Python's.

It stands on llvmlite's binding alone, to optimise and to link, and uses no private name of it; :mod:`ir` writes.
"""

import ctypes
import ctypes.util
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from kfdyn.first_use import compiling, uninterrupted
from kfdyn.sweeps.compiler import cache
from kfdyn.sweeps.compiler.builder import Builder
from kfdyn.sweeps.compiler.cpython_abi import check_layout, python_function
from kfdyn.sweeps.compiler.ir import INT, Function, Module
from kfdyn.sweeps.compiler.wrapper import Model, inner_types, proxies, write_wrapper
from kfdyn.sweeps.trace_context import tracing
from kfdyn.sweeps.values import ir_of

_LOCK = threading.RLock()
_ready: list[object] = []
_KEPT = 2**21  # numbers, half of what the C library can be asked to keep


def _renew_locks():
    """Renew the locks in a forked process, whose holders it does not have."""
    _LOCK.release()
    modules = [module for name, module in sys.modules.items() if cache.ours(name)] if sys.version_info < (3, 12) else []
    for kind in {kind for module in modules for kind in vars(module).values() if isinstance(kind, type)}:
        for value in vars(kind).values():
            if isinstance(value, cached_property):
                value.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    # A fork waits until nothing is being compiled: a compiler that stands still in the middle never goes on.
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_renew_locks)


class Machine:
    """The processor that code is written for: target triple, name and features."""

    def __init__(self, triple, name, features):
        self.triple, self.name = triple, name
        self.features = ",".join(f"{'+' if there else '-'}{feature}" for feature, there in sorted(features.items()))
        self.has = {feature for feature, there in features.items() if there}
        self.target = llvm.Target.from_triple(triple)
        self.is_arm = triple.startswith(("aarch64", "arm64"))
        self.is_x86 = triple.startswith("x86_64")
        # How many doubles a register holds: two is what SSE and NEON have.
        self.register = 8 if "avx512f" in self.has else 4 if "avx" in self.has else 2
        # How many doubles are one machine vector: as many as leave a body its 32 or 16 registers.
        self.lanes = 8 if "avx512f" in self.has else 4
        # Whether an instruction multiplies and adds, and rounds once.
        self.fuses = "fma" in self.has or self.is_arm

    def target_machine(self, level=3):
        """Make a target machine; each engine owns one."""
        return self.target.create_target_machine(
            cpu=self.name, features=self.features, opt=level, reloc="static", codemodel="jitdefault", jit=True
        )

    def key(self):
        """Return what code depends on of the machine and the compiler."""
        return llvmlite.__version__, tuple(llvm.llvm_version_info), self.triple, self.name, self.features


def machine():
    """Return the processor this process runs on."""
    with _LOCK:
        if not _ready:
            with uninterrupted():
                _prepare()
                features = llvm.get_host_cpu_features()
                _ready.append(Machine(llvm.get_process_triple(), llvm.get_host_cpu_name(), features))
        return _ready[0]


def _prepare():
    """Register this processor and the C functions that code calls with LLVM."""
    check_layout()
    with suppress(RuntimeError):  # newer ones do so themselves
        llvm.initialize()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name in ("sin", "cos", "atan2", "sincos", "memset", "memcpy", "memmove", "malloc", "free"):
        if llvm.address_of_symbol(name) is None:  # not among what the process shows: look in the C libraries
            for library in ("c", "m"):
                found = getattr(ctypes.CDLL(ctypes.util.find_library(library)), name, None)
                if found is not None:
                    llvm.add_symbol(name, ctypes.cast(found, ctypes.c_void_p).value)
                    break
    # Results of a call are freed before the next. The C library would give such memory back to the system each time,
    # and to map it anew costs twice what a filter does; it keeps what is less than the largest block ever freed.
    np.empty(_KEPT)


class Code(NamedTuple):
    """Recipe of a compiled function.

    ``write`` writes it: it is called with what it sees of the ``arguments``, kinds of :mod:`wrapper`, and returns an
    integer, None for 0. ``module`` is the name of the module whose sources it is written from, ``key`` all else that it
    depends on; ``flags`` are the liberties of its arithmetic. ``vectorise``: lanes are for the compiler to find;
    ``level``, 1 to 3, is how hard it works. ``outer(module, name, inner, arguments)`` writes what is called.
    """

    name: str
    module: str
    key: Any
    write: Callable[..., Any]
    arguments: list[Any]
    flags: str
    vectorise: bool = False
    level: int = 2
    outer: Callable[..., None] = write_wrapper


def compiled(code):
    """Return the function, from the cache if it is there."""
    with _LOCK:
        address, engine = located(code)
        taken = [
            x for kind in code.arguments if isinstance(kind, Model) for x in (kind.owner, kind.slot, kind.otherwise)
        ]
        return python_function(code.name, address, engine, *taken)


def located(code):
    """Return the address of the compiled function and the engine its code lives in."""
    with _LOCK:
        asked = code._replace(write=None, outer=None, arguments=[kind.key for kind in code.arguments])
        known = cache.digest(code.module, asked, machine().key())
        made = cache.load(known)
        if made is None:
            if cache.ours(code.module):  # else the user wrote it, and knows
                compiling(code.name, known is None, known is not None and cache.had_before(known))
            made = _object_code(code)
            cache.save(known, made)
        engine = _linked(made)
        return engine.get_function_address(code.name), engine


def written(code):
    """Return LLVM's text of the code before optimisation."""
    module, name = Module(machine().triple), code.name
    # Where a function has one caller, it would be optimised twice: alone, and again inside of the other.
    inner = Function(module, f"{name}.sweep", INT, inner_types(code.arguments), "internal", "noinline")
    build = Builder(inner)
    with tracing.having(builder=build, flags=code.flags, machine=machine()):
        try:
            result = code.write(*proxies(code.arguments, build.args))
            build.ret(ir_of(0 if result is None else result, INT))
        except (TypeError, IndexError) as error:  # the words of the language do not know whose they are
            error.args = (f"{name}: {error}",)
            raise
    if build.left:
        raise TypeError(
            f"{name}: a break or a return leaves the body of a loop, an if_ or an if_else early, but it is run once, "
            f"to its end, as code is written. Let a local remember what was found, and end a loop by while_(condition)"
        )
    code.outer(module, name, inner, code.arguments)
    return str(module)


# What code that is written with its lanes wants: variables into registers, each value once. All the rest that LLVM
# could do took three times as long and made no entry faster by more than chance does.
_ENOUGH = ("sroa", "simplify_cfg", "instruction_combine", "new_gvn", "loop_rotate", "simplify_cfg")


def _object_code(code):
    tm = machine().target_machine(code.level)
    module = llvm.parse_assembly(written(code))
    try:
        module.verify()
    except RuntimeError as refused:
        if "does not dominate" not in str(refused):
            raise
        raise TypeError(
            f"{code.name}: what was computed in the body of a loop, an if_ or an if_else is used outside of it, where "
            f"it may not have been computed. Let it be a local or a loop_vars that is made before, and change that by "
            f"set or +="
        ) from refused
    tuning = llvm.create_pipeline_tuning_options(speed_level=code.level)
    tuning.loop_vectorization = tuning.slp_vectorization = code.vectorise
    tuning.loop_unrolling = False  # twice the code, and no faster
    builder = llvm.create_pass_builder(tm, tuning)
    few = llvm.create_new_module_pass_manager()
    if code.vectorise or not hasattr(few, "add_sroa_pass"):  # the oldest llvmlite has only the whole
        builder.getModulePassManager().run(module, builder)
    else:
        for name in _ENOUGH:
            getattr(few, f"add_{name}_pass")()
        few.run(module, builder)
    return tm.emit_object(module)


def _linked(code):
    """Load object code into an engine."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine().target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine
