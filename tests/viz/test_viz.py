"""What is drawn is what was computed: points on the quadric, shadows, strokes on the bodies; and bad input."""

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kfdyn.multibody as mb
from kfdyn.dynamics import as_estimation, composite_inertias
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation import kalman_filter
from kfdyn.viz import (
    draw_ellipse,
    draw_ellipsoid,
    draw_inertias,
    draw_system,
    ellipse_points,
    ellipsoid_points,
    skeleton,
)


@pytest.fixture
def flat():
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


@pytest.fixture
def deep():
    figure, ax = plt.subplots(subplot_kw={"projection": "3d"})
    yield ax
    plt.close(figure)


def random_cov(seed, n):
    A = np.random.default_rng(seed).normal(size=(n, n))
    return A @ A.T + 0.1 * np.eye(n)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.1, 5.0))
def test_points_lie_on_the_quadric(seed, size):
    for n, points_of in ((2, ellipse_points), (3, ellipsoid_points)):
        cov, center = random_cov(seed, n), np.arange(1.0, n + 1)
        points = points_of(cov, center, size).reshape(-1, n) - center
        level = np.einsum("ki,ij,kj->k", points, np.linalg.inv(cov), points)
        np.testing.assert_allclose(level, size**2, rtol=1e-10)


def test_the_shadow_of_an_ellipsoid_is_the_ellipse_of_the_sub_block():
    """Reach of both in many directions of the plane; the mesh is inscribed, hence a little short."""
    cov = random_cov(3, 3)
    solid, ring = ellipsoid_points(cov, n=200)[..., [0, 2]].reshape(-1, 2), ellipse_points(cov[np.ix_([0, 2], [0, 2])])
    for angle in np.linspace(0, np.pi, 7):
        u = np.array([np.cos(angle), np.sin(angle)])
        assert (solid @ u).max() == pytest.approx(np.sqrt(u @ cov[np.ix_([0, 2], [0, 2])] @ u), rel=1e-3)
        assert (ring @ u).max() == pytest.approx((solid @ u).max(), rel=3e-3)


def test_a_singular_covariance_is_a_segment():
    points = ellipse_points([[1.0, 1.0], [1.0, 1.0]])
    np.testing.assert_allclose(points[:, 0], points[:, 1], atol=1e-12)
    assert np.abs(points).max() == pytest.approx(1.0, rel=1e-3)  # a hundred points may miss the very end


def test_strokes_join_the_hinges():
    system = mb.models.humanoid()
    q = system.random_configuration(np.random.default_rng(0))
    hinges, strokes = skeleton(system, q)
    np.testing.assert_allclose(hinges[5], mb.frame_pose(system, q, system.body_names[5]).position, atol=1e-14)
    # every child hinge and every frame is the end of a stroke that starts at its body
    for k, up in enumerate(system.parent):
        if up >= 0:
            assert any(np.allclose(a, hinges[up]) and np.allclose(b, hinges[k]) for a, b in strokes)
    sole = mb.frame_pose(system, q, "left_sole").position
    assert any(np.allclose(b, sole) for _, b in strokes)
    tips = set(range(system.n_bodies)) - set(system.parent[system.parent >= 0])
    carried = {system.body_index(frame.body) for frame in system.frames.values()}
    assert len(strokes) == system.n_bodies - 1 + len(system.frames) + len(tips - carried)


def test_what_is_drawn_is_there(flat, deep):
    system = mb.models.puma560()
    q = np.array([0.3, -0.8, 0.5, 0.1, 0.6, 0.2])
    ss = as_estimation(system, q)
    filt = kalman_filter(ss, np.zeros(6))
    drawn = draw_system(flat, system, q, plane="yz")
    np.testing.assert_allclose(flat.lines[0].get_xydata(), drawn.strokes[0][:, [1, 2]])
    draw_inertias(flat, system, q, filt.P, 0.05, plane="yz", facecolor="none")
    assert len(flat.patches) == 6
    wide, narrow = np.ptp(flat.patches[1].get_xy(), axis=0)
    assert wide == pytest.approx(0.1 * np.sqrt(filt.P[1][4, 4]), rel=1e-3)
    assert narrow == pytest.approx(0.1 * np.sqrt(filt.P[1][5, 5]), rel=1e-3)
    draw_system(deep, system, q)
    draw_inertias(deep, system, q, composite_inertias(ss), 0.05, bodies=[1, 2], block="angular", color="red")
    assert len(deep.collections) == 2
    deep.figure.canvas.draw()
    flat.figure.canvas.draw()


@pytest.mark.parametrize(
    ("cov", "error", "match"),
    [
        (np.eye(3), ShapeError, r"must have shape \(2, 2\)"),
        ([[1.0, np.nan], [0.0, 1.0]], ModelError, "not finite"),
        ([[1.0, 0.5], [0.0, 1.0]], ModelError, "not symmetric"),
        ([[1.0, 2.0], [2.0, 1.0]], ModelError, "indefinite"),
    ],
)
def test_what_is_no_covariance_is_not_drawn(flat, cov, error, match):
    with pytest.raises(error, match=match):
        draw_ellipse(flat, cov)


def test_bad_input(flat, deep):
    system = mb.models.double_pendulum()
    with pytest.raises(ShapeError, match="center must have shape"):
        draw_ellipsoid(deep, np.eye(3), [0, 0])
    with pytest.raises(ShapeError, match="one configuration"):
        draw_system(flat, system, np.zeros((2, 2)))
    with pytest.raises(ModelError, match="two different world axes"):
        draw_system(flat, system, np.zeros(2), plane="xx")
    with pytest.raises(ShapeError, match="one for each of the 2 bodies"):
        draw_inertias(flat, system, np.zeros(2), [np.eye(6)], 1.0)
    with pytest.raises(ShapeError, match="body 'lower': its inertia"):
        draw_inertias(flat, system, np.zeros(2), [np.eye(6), np.eye(3)], 1.0)
    with pytest.raises(ModelError, match="block must be"):
        draw_inertias(flat, system, np.zeros(2), [np.eye(6)] * 2, 1.0, block="both")


def test_spheres_are_spheres_in_three_dimensions(deep):
    """The box has the sides of its limits, before inertias are drawn into it and after."""
    arm, q = mb.models.puma560(), np.full(6, 0.3)
    draw_system(deep, arm, q)
    draw_inertias(deep, arm, q, as_estimation(arm, q).Q, size=0.05)
    deep.figure.canvas.draw()
    sides = np.ptp([deep.get_xlim(), deep.get_ylim(), deep.get_zlim()], axis=1)
    np.testing.assert_allclose(sides / deep._box_aspect, sides[0] / deep._box_aspect[0], rtol=1e-9)
