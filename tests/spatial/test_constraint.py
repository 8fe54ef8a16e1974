import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import null_space
from spatial_cases import assert_close, fast, seeds

from kfdyn.errors import ModelError, ShapeError
from kfdyn.spatial import hinge_map_from_constraint, skew


@fast
@given(seeds, st.integers(0, 6), st.integers(0, 4))
def test_dofs_are_six_minus_the_rank(seed, rank, spare):
    """SRB:holonomic-rank. Dependent rows change nothing; H spans scipy's null space, orthonormally."""
    rng = np.random.default_rng(seed)
    independent = rng.normal(size=(rank, 6))
    A = np.concatenate([independent, rng.normal(size=(spare, rank)) @ independent])[rng.permutation(rank + spare)]
    H = hinge_map_from_constraint(A)
    assert H.shape == (6 - rank, 6)
    assert_close(H @ H.T, np.eye(6 - rank), 1e-13)
    # the null space moves by eps times the condition number of A, which a random A may have large
    condition = np.linalg.cond(independent) if rank else 1.0
    basis = null_space(independent) if rank else np.eye(6)
    assert_close(H.T @ H, basis @ basis.T, 1e-14 * condition)
    scale = max(1.0, np.abs(A).max(initial=0.0))
    assert_close(A @ H.T / scale, np.zeros((rank + spare, 6 - rank)), 1e-14 * condition)


@fast
@given(seeds)
def test_units_of_a_row_do_not_decide_the_rank(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3, 6))
    H = hinge_map_from_constraint(A)
    assert_close(hinge_map_from_constraint(A * [[1e-200], [1.0], [1e200]]), H, 1e-11)


@pytest.mark.parametrize("free", [(2,), (5,), (2, 5), (0, 1), (0, 1, 2), (2, 3, 4), (), tuple(range(6))])
def test_the_lower_pairs(free):
    """SRB:holonomic-rank. Pin, slider, cylinder, universal, ball, planar, locked, free: frame axes."""
    A = np.delete(np.eye(6), free, axis=0)
    assert np.array_equal(hinge_map_from_constraint(A), np.eye(6)[list(free)])


def test_a_screw_and_a_rolling_ball():
    pitch = 0.25  # v_z = pitch ω_z
    screw = np.delete(np.eye(6), 2, axis=0)
    screw[-1, 2] = -pitch
    assert_close(hinge_map_from_constraint(screw), np.array([[0, 0, 1, 0, 0, pitch]]) / np.hypot(1, pitch), 1e-15)
    # non-holonomic: a ball of radius r on a plane, its contact point at rest, v + ω × (−r z) = 0
    r = 0.3
    A = np.concatenate([-skew([0.0, 0.0, -r]), np.eye(3)], axis=1)
    H = hinge_map_from_constraint(A)
    assert H.shape == (3, 6)
    omega, v = H[:, :3], H[:, 3:]
    assert_close(v, np.cross(omega, [0.0, 0.0, r]), 1e-15)  # the centre moves as the spin says


def test_the_result_depends_on_the_null_space_alone():
    rng = np.random.default_rng(5)
    A = rng.normal(size=(4, 6))
    H = hinge_map_from_constraint(A)
    assert_close(hinge_map_from_constraint(rng.normal(size=(7, 4)) @ A), H, 1e-12)


def test_bad_input_is_named():
    with pytest.raises(ShapeError, match=r"gradient must have shape \(..., c, 6\)"):
        hinge_map_from_constraint(np.eye(5))
    with pytest.raises(ShapeError, match="one hinge at a time"):
        hinge_map_from_constraint(np.zeros((2, 3, 6)))
    with pytest.raises(ModelError, match="gradient is not finite"):
        hinge_map_from_constraint(np.full((1, 6), np.nan))
    with pytest.raises(ModelError, match="the rank of gradient is not clear"):
        hinge_map_from_constraint([[1, 0, 0, 0, 0, 0], [1, 1e-10, 0, 0, 0, 0]])
    with pytest.raises(ModelError, match="tolerance"):
        hinge_map_from_constraint(np.eye(6), tolerance=2.0)
    clear = hinge_map_from_constraint([[1, 0, 0, 0, 0, 0], [1, 1e-10, 0, 0, 0, 0]], tolerance=1e-14)
    assert clear.shape == (4, 6)
