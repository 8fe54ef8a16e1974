import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spatial_cases import fast, random_cloud, random_rotation, seeds

from kfdyn.errors import ModelError, ShapeError
from kfdyn.spatial import (
    IndefiniteInertiaWarning,
    TriangleInequalityWarning,
    inertia_parameters,
    rigid_transform,
    spatial_inertia,
    transform_inertia,
    validate_inertia,
)


@fast
@given(seeds, st.integers(1, 6), st.sampled_from([1e-6, 1.0, 1e3]), st.sampled_from([0.0, 1.0, 1e4]))
def test_every_cloud_of_points_passes(seed, points, scale, distance):
    """Down to a single point and a rod (singular J_c), at any scale, far from the origin, in any axes."""
    rng = np.random.default_rng(seed)
    cloud = random_cloud(rng, points)
    M6 = scale * spatial_inertia(*cloud.parameters)
    moved = transform_inertia(rigid_transform(distance * rng.normal(size=3), random_rotation(rng)), M6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(validate_inertia(moved), moved)


@fast
@given(seeds)
def test_the_verdict_is_that_of_the_eigenvalues(seed):
    """M ⪰ 0 exactly when it passes; M's own six eigenvalues are the judge."""
    rng = np.random.default_rng(seed)
    R = random_rotation(rng)
    moments = rng.uniform(0.1, 1.0, 3) * rng.choice([-1, 1, 1, 1], 3)
    M6 = spatial_inertia(rng.uniform(0.1, 2), rng.normal(size=3), R @ np.diag(moments) @ R.T)
    possible = np.linalg.eigvalsh(M6)[0] >= -1e-12
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TriangleInequalityWarning)
        if possible:
            validate_inertia(M6)
        else:
            with pytest.raises(ModelError, match="principal moment of inertia -0"):
                validate_inertia(M6)


@fast
@given(seeds)
def test_an_indefinite_inertia_is_warned_of_on_request(seed):
    """The warning comes exactly where the refusal would, and never together with that of the triangle inequality."""
    rng = np.random.default_rng(seed)
    R = random_rotation(rng)
    moments = rng.uniform(0.1, 1.0, 3) * rng.choice([-1, 1, 1, 1], 3)
    M6 = spatial_inertia(rng.uniform(0.1, 2), rng.normal(size=3), R @ np.diag(moments) @ R.T)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert np.array_equal(validate_inertia(M6, "arm", indefinite_inertia="warn"), M6)
    indefinite = np.linalg.eigvalsh(M6)[0] < -1e-12
    low, middle, high = np.sort(moments)
    expected = IndefiniteInertiaWarning if indefinite else TriangleInequalityWarning if high > low + middle else None
    assert [warning.category for warning in said] == ([] if expected is None else [expected])
    if indefinite:
        assert f"'arm': principal moment of inertia {low:.6g} about" in str(said[0].message)


def test_a_large_moment_of_inertia_hides_no_other_fault():
    """Each block is held to its own unit: 1 kg at 10 km has J = 1e8, and a mass of 1, 1 and 1.001 is still none."""
    M6 = spatial_inertia(1.0, [1e4, 0, 0], np.eye(3))
    M6[5, 5] = 1.001
    with pytest.raises(ModelError, match="not of the form"):
        validate_inertia(M6)


@fast
@given(seeds)
def test_a_point_mass_shifted_and_turned_there_and_back_is_still_one(seed):
    rng = np.random.default_rng(seed)
    M6 = spatial_inertia(1.0, np.zeros(3), np.zeros((3, 3)))
    phi = rigid_transform(rng.normal(size=3), random_rotation(rng))
    back = transform_inertia(np.linalg.inv(phi), transform_inertia(phi, M6))
    assert np.array_equal(inertia_parameters(back).mass.round(12), 1.0)


def test_massless_bodies_are_legal():
    validate_inertia(np.zeros((6, 6)))
    validate_inertia(spatial_inertia(0.0, [0, 0, 0], np.eye(3)))
    validate_inertia(np.zeros((0, 6, 6)))


def test_triangle_inequality_warns_only():
    M6 = spatial_inertia(1.0, [0.1, 0, 0], np.diag([1.0, 1.0, 3.0]))
    with pytest.warns(TriangleInequalityWarning, match=r"'link 3': principal moments of inertia 1 \+ 1 < 3"):
        assert np.array_equal(validate_inertia(M6, "link 3"), M6)
    validate_inertia(spatial_inertia(1.0, [0.1, 0, 0], np.diag([1.0, 1.0, 2.0])))  # a flat plate is no violation


GOOD = spatial_inertia(2.0, [0.1, 0.2, 0.3], np.diag([1.0, 1.5, 2.0]))


def _with(i, j, value, mirror=False):
    M6 = GOOD.copy()
    M6[i, j] = value
    if mirror:
        M6[j, i] = value
    return M6


@pytest.mark.parametrize(
    ("M6", "message"),
    [
        (_with(0, 0, np.nan), r"spatial inertia of 'arm' is not finite at index \(0, 0\)"),
        (_with(0, 1, 0.5), "'arm': spatial inertia is not symmetric"),
        (-GOOD, "'arm': mass -2 is negative; a body needs mass >= 0"),
        (_with(3, 3, 2.1, mirror=True), "'arm': not of the form"),
        (_with(0, 3, 0.1, mirror=True), "'arm': not of the form"),
        (np.diag([1.0, 1, 1, 0, 0, 0]) + (GOOD - np.diag(np.diag(GOOD))), "'arm': no mass but a mass centre"),
        (
            spatial_inertia(1.0, [1, 2, 3], np.diag([1.0, -0.5, 1])),
            "'arm': principal moment of inertia -0.5 about",
        ),
    ],
)
def test_bad_bodies_are_named_with_the_cure(M6, message):
    with pytest.raises(ModelError, match=message):
        validate_inertia(M6, "arm")
    if "principal moment" not in message:  # a request to let that one pass lets no other fault pass
        with pytest.raises(ModelError, match=message):
            validate_inertia(M6, "arm", indefinite_inertia="warn")


def test_the_request_to_warn_is_named_as_a_cure_and_reaches_every_body_of_a_batch():
    indefinite = spatial_inertia(1.0, [1, 2, 3], np.diag([1.0, -0.5, 1]))
    with pytest.raises(ModelError, match='indefinite_inertia="warn"'):
        validate_inertia(indefinite)
    with pytest.warns(IndefiniteInertiaWarning, match=r"'body'\[1\]: principal moment of inertia -0.5"):
        validate_inertia(np.stack([GOOD, indefinite]), indefinite_inertia="warn")
    with pytest.warns(IndefiniteInertiaWarning, match=r"'hand': principal moment of inertia -0.5"):
        validate_inertia(np.stack([GOOD, indefinite]), ["arm", "hand"], indefinite_inertia="warn")
    with pytest.raises(ModelError, match='must be "refuse" or "warn", got \'ignore\''):
        validate_inertia(GOOD, indefinite_inertia="ignore")


def test_the_culprit_of_a_batch_is_named():
    batch = np.stack([GOOD, -GOOD])
    with pytest.raises(ModelError, match=r"'body'\[1\]: mass"):
        validate_inertia(batch)
    with pytest.raises(ModelError, match="'hand': mass"):
        validate_inertia(batch, ["arm", "hand"])
    with pytest.raises(ShapeError, match=r"3 names for inertias of shape \(2, 6, 6\)"):
        validate_inertia(batch, ["arm", "hand", "eye"])
    with pytest.raises(ShapeError, match=r"2 names for inertias of shape \(6, 6\)"):
        validate_inertia(GOOD, ["arm", "hand"])
    batch[1, 0, 0] = np.nan
    with pytest.raises(ModelError, match="spatial inertia of 'hand' is not finite"):
        validate_inertia(batch, ["arm", "hand"])
    with pytest.raises(ShapeError, match="spatial inertia of 'arm' must have shape"):
        validate_inertia(np.eye(3), "arm")
