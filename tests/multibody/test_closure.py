"""Loops close, and count as open, by the size of their mechanism: micrometres and kilometres are no different."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError
from kfdyn.spatial import spatial_inertia

GUESS = [-1.2, 0.7, -1.9]
SIZES = [1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e6]


def linkage(size, ground=2.0):
    """A four-bar linkage with links of about ``size``."""

    def link(name, length, parent, at):
        moments = np.diag([1e-3, 1, 1]) * (length * size) ** 2 / 12
        inertia = spatial_inertia(1.0, [length * size / 2, 0, 0], moments)
        return kf.Body(name, inertia, kf.Hinge.revolute([0, 1, 0]), parent, position=[at * size, 0, 0])

    bodies = [link("crank", 1.0, None, 0.0), link("coupler", 2.2, "crank", 1.0), link("rocker", 1.6, None, ground)]
    frames = {
        "one": kf.Frame("coupler", position=[2.2 * size, 0, 0]),
        "two": kf.Frame("rocker", position=[1.6 * size, 0, 0]),
    }
    return kf.System(bodies, [0, 0, -9.81 * size], frames).with_loops([kf.Loop("two", "one", rows="point")])


@pytest.mark.parametrize("size", SIZES)
def test_loops_close_to_rounding_in_any_unit(size):
    """In micrometres they were left open by 2e-8 of their size, in nanometres by 2e-4."""
    q = kf.assemble(linkage(size), GUESS)
    gap = np.subtract(*(kf.frame_pose(linkage(size), q, end).position for end in ("one", "two")))
    assert np.abs(gap).max() < 1e-12 * size
    np.testing.assert_allclose(q, kf.assemble(linkage(1.0), GUESS), rtol=0, atol=1e-12)
    drawn = linkage(size).random_configuration(0)
    np.testing.assert_allclose(drawn, linkage(1.0).random_configuration(0), rtol=0, atol=1e-11)


@pytest.mark.parametrize("size", SIZES)
def test_what_cannot_close_is_refused_in_any_unit(size):
    with pytest.raises(ModelError, match="does not close"):
        kf.assemble(linkage(size, ground=6.0), GUESS)


@pytest.mark.parametrize("size", SIZES)
def test_open_loops_are_refused_in_any_unit(size):
    closed = kf.assemble(linkage(size), GUESS)
    with pytest.raises(ModelError, match="is open by"):
        kf.cross_check(linkage(size), np.add(closed, [0, 0, 1e-3]), samples=500)
    assert kf.cross_check(linkage(size), np.add(closed, [0, 0, 1e-7]), samples=500).passed


@pytest.mark.parametrize("method", ["rk4", "symplectic", "implicit", "euler"])
@pytest.mark.parametrize("size", [1e-9, 1e-6, 1e3, 1e6])
def test_loops_move_alike_in_any_unit(size, method):
    """Gaps were metres: at 1000 km a step "opened" its loops by rounding, at a nanometre motions differed by 1e-4."""

    def motion(size):
        system = linkage(size)
        q = kf.assemble(system, GUESS)
        v = kf.minimal_coordinates(system, q).X @ [2.0]
        return kf.simulate(system, q, v, np.linspace(0, 0.3, 31), method=method)

    found, expected = motion(size), motion(1.0)
    np.testing.assert_allclose(found.q, expected.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.v, expected.v, rtol=0, atol=1e-11)
    np.testing.assert_allclose(found.energy, expected.energy * size**2, rtol=0, atol=1e-12 * np.ptp(found.kinetic))


@pytest.mark.parametrize("size", SIZES)
def test_motions_begin_near_the_loops_in_any_unit(size):
    """In micrometres a motion might begin anywhere, at 1000 km nowhere."""
    system = linkage(size)
    q = kf.assemble(system, GUESS)
    v = kf.minimal_coordinates(system, q).X @ [2.0]
    with pytest.raises(ModelError, match=r"is open by .* where the motion is to begin"):
        kf.simulate(system, np.add(q, [0, 0, 1e-4]), v, [0, 0.01])
    with pytest.raises(ModelError, match="open the loops at"):
        kf.simulate(system, q, np.add(v, [0, 0, 1e-3]), [0, 0.01])
    near = kf.simulate(system, np.add(q, [0, 0, 1e-8]), np.add(v, [0, 0, 1e-8]), [0, 0.01])
    np.testing.assert_allclose(near.q[-1], kf.simulate(system, q, v, [0, 0.01]).q[-1], rtol=0, atol=1e-7)


def test_a_loop_that_closes_at_the_origin():
    """No length but that of the slide: its end has no distance from the origin, and no body one from another."""
    cart = kf.System([kf.Body("cart", np.eye(6), kf.Hinge.prismatic([1, 0, 0]))])
    held = cart.with_loops([kf.Loop("cart", None, rows="point", anchor=[0, 0, 0])])
    np.testing.assert_allclose(kf.assemble(held, [0.7]), 0.0, atol=1e-12)
    np.testing.assert_array_equal(kf.assemble(held, [0.0]), 0.0)
