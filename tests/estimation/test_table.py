"""A model behind its address, as compiled sweeps and plain runs see it."""

import copy
import ctypes
import pickle

import numpy as np
import pytest
from random_models import random_case

from kfdyn.estimation.model.state_space import Arrays
from kfdyn.estimation.recursions.state_space import MODEL
from kfdyn.sweeps import Packed

COUNTS = 3


def test_the_table_leads_to_every_array():
    ss = random_case(3, 12).ss
    assert list(MODEL.fields) == ["nodes", "most", "most_outputs", *Arrays._fields]
    table = np.ctypeslib.as_array((ctypes.c_int64 * len(MODEL.fields)).from_address(ss.address))
    assert table[:COUNTS].tolist() == [12, ss.n.max(), ss.m.max()]
    for name, array, place in zip(Arrays._fields, ss.arrays, table[COUNTS:]):
        assert array.size, name
        kind = ctypes.c_double if array.dtype == np.float64 else ctypes.c_int64
        there = np.ctypeslib.as_array((kind * array.size).from_address(int(place)))
        np.testing.assert_array_equal(there, array, err_msg=name)


def test_what_runs_plain_sees_the_same_arrays_and_checks_them():
    ss = random_case(3, 12).ss
    seen = MODEL.at(ss.address)
    assert (seen.nodes, seen.most) == (12, ss.n.max())
    for name, array in zip(Arrays._fields, ss.arrays):
        assert [getattr(seen, name)[i] for i in range(array.size)] == array.tolist(), name
        with pytest.raises(IndexError):
            getattr(seen, name)[array.size]


def test_a_model_with_other_blocks_leads_to_them_and_to_all_the_rest():
    case = random_case(5, 9)
    other = case.ss.replace(Q=[2.0 * np.asarray(Q) for Q in case.ss.Q])
    before, after = MODEL.at(case.ss.address), MODEL.at(other.address)
    assert after.Q[0] == 2.0 * before.Q[0] == other.Q.flat[0]
    table = [
        np.ctypeslib.as_array((ctypes.c_int64 * len(MODEL.fields)).from_address(ss.address)) for ss in (case.ss, other)
    ]
    changed = [name for name, a, b in zip(MODEL.fields, *table) if a != b]
    assert changed == ["Q"]
    assert table[1][list(MODEL.fields).index("Q")] == other.Q.flat.ctypes.data


@pytest.mark.parametrize("again", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy])
def test_an_address_is_never_carried_to_where_it_leads_nowhere(again):
    ss = random_case(5, 9).ss
    there = again(ss.address)
    assert isinstance(there, Packed)
    assert there != ss.address
    assert MODEL.at(there).Q[0] == ss.Q.flat[0]
    table = np.ctypeslib.as_array((ctypes.c_int64 * len(MODEL.fields)).from_address(there))
    assert table[0] == 9
