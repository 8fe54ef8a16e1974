"""Read and write the blocks of some nodes as one array, with batches in front."""

from __future__ import annotations

import numpy as np

from kfdyn.estimation.model.blocks import Blocks, FloatArray, IntArray


def get_blocks(blocks: Blocks, nodes: IntArray, *shape: int) -> FloatArray:
    """The blocks of some nodes of one shape, (..., g, *shape)."""
    flat = blocks.flat[..., blocks.places(nodes, int(np.prod(shape)))]
    return flat.reshape(*blocks.flat.shape[:-1], nodes.size, *shape)


def put_blocks(blocks: Blocks, nodes: IntArray, value: FloatArray) -> None:
    """Replace the blocks of some nodes by value (..., g, r, c)."""
    size = value.shape[-2] * value.shape[-1]
    blocks.flat[..., blocks.places(nodes, size)] = value.reshape(*value.shape[:-2], size)


def outer(a: FloatArray, b: FloatArray) -> FloatArray:
    """Products a b* of stacked vectors."""
    return a[..., :, None] * b[..., None, :]


def adjoint(a: FloatArray) -> FloatArray:
    """Transposes of stacked matrices."""
    return np.swapaxes(a, -1, -2)
