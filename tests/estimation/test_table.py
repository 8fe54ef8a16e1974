"""The layout of a model behind its address, which is compiled into the sweeps."""

import ast
import ctypes
from pathlib import Path

import numpy as np
from random_models import random_case

import kfdyn.estimation._kernels
from kfdyn.estimation._kernels.table import COUNTS, Arrays


def test_the_table_leads_to_every_array():
    ss = random_case(3, 12).ss
    table = np.ctypeslib.as_array((ctypes.c_int64 * (COUNTS + len(Arrays._fields))).from_address(ss.address))
    assert table[:COUNTS].tolist() == [12, ss.n.max()]
    for name, array, place in zip(Arrays._fields, ss.arrays, table[COUNTS:]):
        assert array.size, name
        kind = ctypes.c_double if array.dtype == np.float64 else ctypes.c_int64
        there = np.ctypeslib.as_array((kind * array.size).from_address(int(place)))
        np.testing.assert_array_equal(there, array, err_msg=name)


def test_what_a_sweep_is_compiled_from_lies_among_the_kernels():
    """Numba does not look at it: make empties the cache when a file among the kernels has changed, no other.

    The language of sweeps looks for itself: its cache has the digest of all sources.
    """
    room = Path(kfdyn.estimation._kernels.__file__).parent
    for file in room.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                own = "_kernels" in name or name.split(".")[:2] == ["kfdyn", "sweeps"]
                assert own or not name.startswith("kfdyn"), (file.name, name)
