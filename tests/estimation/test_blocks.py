"""Blocks: ragged matrices in one buffer, against plain lists of arrays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_models import fast, seeds
from scipy.linalg import block_diag

from kfdyn.errors import ShapeError
from kfdyn.estimation import Blocks
from kfdyn.estimation.model.blocks import offsets_of

shapes = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=6)


def packed(listed, shape):
    rows, cols = (np.array([s[i] for s in shape], dtype=np.int64) for i in (0, 1))
    flat = np.concatenate([np.zeros(0), *(b.ravel() for b in listed)])
    return Blocks(flat, rows, cols)


@given(seeds, shapes)
@fast
def test_blocks_are_the_list_they_were_packed_from(seed, shape):
    rng = np.random.default_rng(seed)
    listed = [rng.normal(size=s) for s in shape]
    blocks = packed(listed, shape)
    assert len(blocks) == len(listed)
    for k, block in enumerate(blocks):
        assert block.shape == shape[k]
        np.testing.assert_array_equal(block, listed[k])
        np.testing.assert_array_equal(blocks[k - len(listed)], listed[k])
    for view, block in zip(blocks[::-2], listed[::-2], strict=True):
        np.testing.assert_array_equal(view, block)
    size = (sum(s[0] for s in shape), sum(s[1] for s in shape))
    np.testing.assert_array_equal(blocks.dense(), block_diag(*listed) if listed else np.zeros(size))
    seen = []
    for nodes, stack in blocks.grouped():
        seen += nodes.tolist()
        for k, block in zip(nodes, stack, strict=True):
            np.testing.assert_array_equal(block, listed[k])
    assert sorted(seen) == list(range(len(listed)))
    assert blocks.is_uniform == (len(set(shape)) <= 1)


@given(seeds, st.lists(st.integers(0, 3), min_size=1, max_size=5), st.sampled_from([(), (2,), (0,), (3, 1)]))
@fast
def test_vectors_with_batch_axes(seed, sizes, batch):
    flat = np.random.default_rng(seed).normal(size=(*batch, sum(sizes)))
    blocks = Blocks(flat, np.array(sizes))
    at = offsets_of(np.array(sizes))
    for k, size in enumerate(sizes):
        assert blocks[k].shape == (*batch, size)
        np.testing.assert_array_equal(blocks[k], flat[..., at[k] : at[k + 1]])
    if not batch:
        np.testing.assert_array_equal(blocks.dense(), flat)
    if len(set(sizes)) == 1:
        np.testing.assert_array_equal(blocks.stacked(), flat.reshape(*batch, len(sizes), sizes[0]))
    else:
        with pytest.raises(ValueError, match="differ in size"):
            blocks.stacked()


def test_stacked_is_a_view_of_uniform_matrices():
    blocks = Blocks(np.arange(12.0), np.array([2, 2]), np.array([3, 3]))
    stack = blocks.stacked()
    assert stack.shape == (2, 2, 3)
    assert np.shares_memory(stack, blocks.flat)
    assert np.shares_memory(blocks[1], blocks.flat)
    np.testing.assert_array_equal(stack[1], blocks[1])


def test_out_of_range_and_repr():
    blocks = Blocks(np.zeros((4, 5)), np.array([1, 2]), np.array([1, 2]))
    for k in (2, -3):
        with pytest.raises(IndexError, match="out of range for 2 nodes"):
            blocks[k]
    assert repr(blocks) == "Blocks(2 of size 1x1, 2x2, batch (4,))"
    many = np.arange(1, 7)
    assert repr(Blocks(np.zeros(21), many)) == "Blocks(6 of size 1, 2, 3, 4, ...)"


def test_grouped_covers_every_block_once():
    rows, cols = np.array([2, 1, 2, 0, 1, 2]), np.array([1, 2, 1, 3, 2, 2])
    ragged = Blocks(np.arange(12.0), rows, cols)
    uniform = Blocks(np.arange(6.0), np.full(3, 2))
    for blocks in (ragged, uniform, Blocks(np.zeros(0), rows[:0], cols[:0])):
        found = {int(k): block for nodes, stack in blocks.grouped() for k, block in zip(nodes, stack)}
        assert sorted(found) == list(range(len(blocks)))
        for k, block in found.items():
            np.testing.assert_array_equal(block, blocks[k])


def test_ragged_blocks_do_not_stack():
    with pytest.raises(ShapeError, match="differ in size"):
        Blocks(np.zeros(3), np.array([1, 2])).stacked()
