import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from spatial_cases import SWAP, assert_close, fast, seeds

from kfdyn.errors import ModelError, ShapeError
from kfdyn.spatial import cross_force, cross_motion, skew


@fast
@given(seeds)
def test_skew_is_the_cross_product(seed):
    l, x = np.random.default_rng(seed).normal(size=(2, 4, 5, 3))
    assert_close(np.einsum("...ij,...j->...i", skew(l), x), np.cross(l, x), 1e-15)
    assert np.array_equal(skew(l), -np.swapaxes(skew(l), -1, -2))


@fast
@given(seeds)
def test_spatial_cross_products_are_pinocchios(seed):
    V, X = np.random.default_rng(seed).normal(size=(2, 6))
    motion, other, force = pin.Motion(SWAP @ V), pin.Motion(SWAP @ X), pin.Force(SWAP @ X)
    assert_close(cross_motion(V) @ X, SWAP @ motion.cross(other).vector, 1e-15)
    assert_close(cross_force(V) @ X, SWAP @ motion.cross(force).vector, 1e-15)


@fast
@given(seeds)
def test_the_two_products_are_dual_and_antisymmetric(seed):
    V, X, f = np.random.default_rng(seed).normal(size=(3, 7, 6))
    motion = np.einsum("...ij,...j->...i", cross_motion(V), X)
    assert_close(motion, -np.einsum("...ij,...j->...i", cross_motion(X), V), 1e-15)
    force = np.einsum("...ij,...j->...i", cross_force(V), f)
    assert_close((force * X).sum(-1), -(f * motion).sum(-1), 1e-14)  # V̄ = −(V~)*
    assert_close(np.einsum("...i,...ij->...j", V, cross_force(V)), np.zeros((7, 6)), 1e-15)  # V*V̄ = 0


@pytest.mark.parametrize("function", [skew, cross_motion, cross_force])
def test_bad_input_is_named(function):
    size = 3 if function is skew else 6
    with pytest.raises(ShapeError, match=rf"must have shape \(..., {size}\), it has shape \(2,\)"):
        function([1.0, 2.0])
    with pytest.raises(ShapeError, match="ragged"):
        function([[1.0, 2.0], [1.0]])
    with pytest.raises(ModelError, match=r"not finite at index \(1,\)"):
        function([0.0, np.nan, *[0.0] * (size - 2)])
    with pytest.raises(ModelError, match="real numbers"):
        function(np.zeros(size, dtype=complex))
    assert function(np.zeros((0, size))).shape == (0, size, size)
