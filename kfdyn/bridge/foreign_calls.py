"""Compiled recursions called by XLA itself, through its foreign function interface: no Python on the way.

A recursion is registered once, under a name of this process alone: what JAX keeps of a program on disk is then never
taken for one of another process, where other addresses hold. Rows that compiled code does not answer, and batches that
threads should share, are answered by the operation itself, which Python runs.
"""

from __future__ import annotations

import ctypes
import re
import secrets
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from kfdyn.bridge.kernels import Part, parts_of
from kfdyn.bridge.operations import Operation
from kfdyn.extras import needed
from kfdyn.sweeps import thread_pool
from kfdyn.sweeps.compiler.driver import machine
from kfdyn.sweeps.compiler.xla_handler import (
    ANSWER,
    API,
    ATTRIBUTES,
    AXES,
    DATA,
    DOUBLE,
    EXTENSION,
    GIVEN,
    KIND,
    METADATA,
    RESULTS,
    SHAPE,
    TYPE,
    VERSION,
    WORDS,
)  # fmt: skip
from kfdyn.sweeps.entry import NARROW
from kfdyn.sweeps.jit import Checks
from kfdyn.sweeps.records import address_of

jax = needed("jax", "jax", "kfdyn.bridge.jax")

#: Nodes times rows beyond which threads share a batch, where there are several.
_SHARED = 2**16
_EVER = 2**62
_INVALID, _CREATE_ERROR = 3, 48  # XLA's number of the error, and where in its interface the function is that makes one

_process = secrets.token_hex(8)
_asked: list[tuple[Operation, int]] = []  # what words speak of; they and the programs live as long as the process
_kept: list[Any] = []


@lru_cache(maxsize=1)
def version() -> tuple[int, int] | None:
    """The version of XLA's interface, if this module knows it."""
    header = Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h"
    try:
        found = dict(re.findall(r"#define XLA_FFI_API_(MAJOR|MINOR) (\d+)", header.read_text()))
        known = int(found["MAJOR"]), int(found["MINOR"])
    except (OSError, KeyError):
        return None
    return known if known[0] == 0 and jax.default_backend() == "cpu" else None


def call(operation: Operation, answers: list[Any], *given: Any) -> tuple[Any, ...] | None:
    """The answers of an operation, of these shapes, if this version of XLA can ask for them itself."""
    if Checks.on or version() is None:
        return None
    parts, found = parts_of(operation), []
    if not parts:
        words = np.array([_place(operation)], np.int64)
        return tuple(jax.ffi.ffi_call(_registered_python(), answers)(*given, words=words))
    lead = np.broadcast_shapes(*(x.shape[:-1] for x in given))
    given = tuple(jax.numpy.broadcast_to(x, (*lead, x.shape[-1])) for x in given)
    lanes = NARROW if int(np.prod(lead)) < machine().lanes else machine().lanes
    for i, part in enumerate(parts):
        shapes = [jax.ShapeDtypeStruct((*lead, *shape), given[0].dtype) for shape in part.shapes]
        words = np.array(_words(operation, i, _most(part, operation)), np.int64)
        results = jax.ffi.ffi_call(_registered(part.entry, lanes, len(given)), shapes)(*given, words=words)
        found += [results[k] for k in part.results]
    return tuple(found)


@lru_cache(maxsize=256)
def _registered(entry: Any, lanes: int, handed: int) -> str:
    """The name under which XLA knows a recursion."""
    address, code = entry.handler(lanes, handed, version())
    _kept.append((entry, code))
    return _named(f"{entry.name}_{lanes}_{len(_kept)}", address)


@lru_cache(maxsize=1)
def _registered_python() -> str:
    """The name under which XLA knows what only Python answers."""
    return _named("python", ctypes.cast(_elsewhere, ctypes.c_void_p).value or 0)


def _named(what: str, address: int) -> str:
    """Register a handler."""
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    name = f"kfdyn_{_process}_{what}"
    jax.ffi.register_ffi_target(name, make(address, b"xla._CUSTOM_CALL_TARGET", None), platform="cpu")
    return name


def _most(part: Part, operation: Operation) -> int:
    """How many numbers the first array may have before threads share the batch."""
    shared = thread_pool.threads() > 1
    return max(1, _SHARED // part.model.size) * operation.about.given(operation)[0][0] if shared else _EVER


@lru_cache(maxsize=1024)
def _words(operation: Operation, i: int, most: int) -> list[int]:
    """What the recursion of a part is told beforehand; the last word is where the part is among those asked for."""
    core, part = operation.about.given(operation), parts_of(operation)[i]
    words = [ctypes.cast(_elsewhere, ctypes.c_void_p).value or 0, most, part.model.address, 0]
    for about, value in zip(part.entry.parameters, part.parameters):
        words += [int(value)] if about.kind == "n" else _array(np.ascontiguousarray(value))
    for about in part.entry.given[len(core) :]:
        words += _array(part.own[about.name]) if about.name in part.own else [0, 0, 0]
    return [*words, _place(operation, i)]


@cache
def _place(operation: Operation, part: int = -1) -> int:
    """Where a part of an operation is among those asked for; −1 is all of it."""
    _asked.append((operation, part))
    return len(_asked) - 1


def _array(x: np.ndarray[Any, Any]) -> list[int]:
    """An array's address, its number of axes and the address of its shape."""
    shape = np.array([*x.shape, 0], np.int64)
    _kept.append((x, shape))
    return [address_of(x), x.ndim, address_of(shape)]


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def _elsewhere(frame: int) -> int:
    """Answer a frame by the operation itself; the address of an error of XLA's if it has none, else 0."""
    asked = _at(frame + EXTENSION)
    if asked:
        if ctypes.c_int32.from_address(asked + TYPE).value == METADATA:
            answer = (ctypes.c_int32 * 2).from_address(_at(asked + ANSWER) + VERSION)
            answer[:] = list(version() or (0, 0))
        return 0
    try:
        words = _at(_at(frame + ATTRIBUTES))
        operation, i = _asked[_at(_at(words + WORDS) + 8 * (_at(words + 8) - 1))]
        given = [_view(_at(_at(frame + GIVEN) + 8 * k)) for k in range(_at(frame + GIVEN - 16))]
        results = [_view(_at(_at(frame + RESULTS) + 8 * k)) for k in range(_at(frame + RESULTS - 16))]
        wanted, every = tuple(range(len(results))), operation(*given)
        if i >= 0:
            parts = parts_of(operation)
            wanted, every = parts[i].results, every[sum(len(part.results) for part in parts[:i]) :]
        for k, answer in zip(wanted, every):
            results[k][...] = answer
    except BaseException as error:  # it must not leave this function otherwise
        return _error(frame, f"{type(error).__name__}: {error}")
    return 0


def _at(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def _view(buffer: int) -> np.ndarray[Any, Any]:
    """An array of XLA's as one of NumPy's, on the same memory."""
    double = ctypes.c_int32.from_address(buffer + KIND).value == DOUBLE
    shape = tuple(_at(_at(buffer + SHAPE) + 8 * i) for i in range(_at(buffer + AXES)))
    kind: Any = np.float64 if double else np.float32
    count = int(np.prod(shape, dtype=int))
    if not count:
        return np.empty(shape, kind)
    memory = (ctypes.c_char * (count * kind().itemsize)).from_address(_at(buffer + DATA))
    return np.frombuffer(memory, kind).reshape(shape)


class _Error(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("message", ctypes.c_char_p), ("code", ctypes.c_int)
    )  # fmt: skip


def _error(frame: int, message: str) -> int:
    """An error of XLA's with these words."""
    make = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Error))(_at(_at(frame + API) + _CREATE_ERROR))
    asked = _Error(28, None, message.encode(), _INVALID)
    return int(make(ctypes.byref(asked)))
