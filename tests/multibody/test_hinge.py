"""Hinges: sizes, conventions of q and v, and poses against matrix exponentials."""

import numpy as np
import pytest
from hypothesis import given, settings
from multibody_cases import close, seeds, skew
from scipy.linalg import expm

import kfdyn.multibody as mb
from kfdyn.errors import KfdynError, ModelError, ShapeError
from kfdyn.multibody import Hinge
from kfdyn.multibody.models.random_bodies import KINDS, random_hinge, random_inertia
from kfdyn.multibody.parts.hinge import Coordinates

SIZES = {  # kind: (nq, nv)
    "fixed": (0, 0),
    "revolute": (1, 1),
    "prismatic": (1, 1),
    "helical": (1, 1),
    "cylindrical": (2, 2),
    "universal": (2, 2),
    "gimbal": (3, 3),
    "planar": (3, 3),
    "ball": (4, 3),
    "free": (7, 6),
}


def on_world(hinge):
    rng = np.random.default_rng(0)
    return mb.System([mb.Body("body", random_inertia(rng, 1)[0], hinge)])


def twist(s):
    """4 x 4 matrix of a screw [angular; linear]."""
    out = np.zeros((4, 4))
    out[:3, :3], out[:3, 3] = skew(s[:3]), s[3:]
    return out


@pytest.mark.parametrize("kind", SIZES)
def test_sizes(kind):
    hinge = random_hinge(np.random.default_rng(1), kind)
    assert (hinge.nq, hinge.nv) == SIZES[kind]
    assert hinge.kind == kind


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_screws_in_succession_are_a_product_of_exponentials(seed):
    rng = np.random.default_rng(seed)
    kinds = [kind for kind in KINDS if kind not in ("ball", "free", "custom")]
    hinge = random_hinge(rng, kinds[seed % len(kinds)])
    system, q, v = on_world(hinge), rng.uniform(-3, 3, hinge.nq), rng.normal(size=hinge.nv)
    pose = np.eye(4)
    velocity = np.zeros((4, 4))  # d pose / dt
    for screw, x, rate in zip(hinge.screws, q, v):
        step = expm(twist(screw) * x)
        velocity = velocity @ step + pose @ twist(screw) @ step * rate
        pose = pose @ step
    ours = mb.frame_pose(system, q, "body")
    close(ours.rotation, pose[:3, :3], 1e-12)
    close(ours.position, pose[:3, 3], 1e-12)
    V = mb.frame_velocity(system, q, v, "body")
    close(skew(V[:3]) @ pose[:3, :3], velocity[:3, :3], 1e-12)
    close(V[3:], velocity[:3, 3], 1e-12)


def test_conventions_of_q():
    def pose(hinge, q):
        return mb.frame_pose(on_world(hinge), q, "body")

    x, y, z = np.eye(3)
    quarter = np.pi / 2
    close(pose(Hinge.revolute(z), [quarter]).rotation @ x, y)
    close(pose(Hinge.helical(z, pitch=0.1), [quarter]).position, 0.1 * quarter * z)
    close(pose(Hinge.cylindrical(z), [quarter, 2.0]).position, 2 * z)
    close(pose(Hinge.cylindrical(z), [quarter, 2.0]).rotation @ x, y)
    # the second axis of a universal hinge is carried by the first
    close(pose(Hinge.universal(x, y), [quarter, quarter]).rotation @ z, expm(skew(x) * quarter) @ x)
    # planar slides keep their direction in the parent
    close(pose(Hinge.planar(), [1.0, 2.0, quarter]).position, [1, 2, 0])
    close(pose(Hinge.planar(), [1.0, 2.0, quarter]).rotation @ x, y)
    half = np.sqrt(0.5)
    close(pose(Hinge.ball(), [0, 0, half, half]).rotation @ x, y)
    close(pose(Hinge.free(), [1, 2, 3, 0, 0, half, half]).position, [1, 2, 3])


def test_ball_and_free_velocities_are_body_frame():
    """SRB:quasi: the angular velocity is the generalised velocity, not a derivative of q."""
    half = np.sqrt(0.5)
    ball = on_world(Hinge.ball())
    V = mb.frame_velocity(ball, [0, 0, half, half], [1.0, 0, 0], "body")
    close(V, [0, 1, 0, 0, 0, 0])  # the body's x axis points along y
    free = on_world(Hinge.free())
    V = mb.frame_velocity(free, [5, 6, 7, 0, 0, half, half], [1.0, 0, 0, 0, 2.0, 0], "body")
    close(V, [0, 1, 0, -2, 0, 0])


def test_from_constraint():
    gradient = np.random.default_rng(3).normal(size=(2, 6))
    gradient = np.vstack([gradient, gradient.sum(axis=0)])  # rank 2
    hinge = Hinge.from_constraint(gradient)
    assert (hinge.nv, hinge.nq) == (4, 7)
    close(gradient @ hinge.screws.T, np.zeros((3, 4)))
    system = on_world(hinge)
    rng = np.random.default_rng(4)
    q, v = system.random_configuration(rng), rng.normal(size=4)
    R, _ = mb.frame_pose(system, q, "body")
    V = mb.frame_velocity(system, q, v, "body")
    close(gradient @ np.concatenate([R.T @ V[:3], R.T @ V[3:]]), np.zeros(3))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Hinge.revolute([0, 0, 0]), "no axis"),
        (lambda: Hinge.revolute([0, 1]), "shape \\(3,\\)"),
        (lambda: Hinge.prismatic([0, np.nan, 0]), "no axis"),
        (lambda: Hinge.revolute("z"), "three real numbers, got 'z'"),
        (lambda: Hinge.cylindrical([1j, 0, 0]), "three real numbers"),
        (lambda: Hinge.helical([0, 0, 1], pitch=[1, 2]), "pitch is one real number"),
        (lambda: Hinge.universal([1, 0, 0], [2, 0, 0]), "dependent"),
        (lambda: Hinge.gimbal([1, 0, 0], [0, 1, 0], [0, -1, 0]), "dependent"),
        (lambda: Hinge.planar([1, 0, 0], [1, 1, 0]), "orthogonal"),
        (lambda: Hinge.custom(np.zeros((1, 6))), "dependent"),
        (lambda: Hinge.custom(np.ones((2, 6))), "dependent"),
        (lambda: Hinge.custom(np.ones((2, 5))), "shape \\(m, 6\\)"),
        (lambda: Hinge.custom(np.full((1, 6), np.inf)), "finite"),
        (lambda: Hinge.helical([0, 0, 1], pitch=np.nan), "finite"),
        (lambda: Hinge("home-made", Coordinates.SCREWS, np.full((1, 6), 0.9)), "unit vector"),
        (lambda: Hinge("home-made", Coordinates.BALL, np.eye(6)[3:]), "Hinge.custom"),
        (lambda: Hinge.succession([[2, 0, 0, 0, 0, 0]]), "unit vector"),
        (lambda: Hinge.succession([[0, 0, 0, 0, 0, 0]]), "leave it out"),
        (lambda: Hinge.succession([1, 0, 0, 0, 0, 0]), "shape"),
    ],
)
def test_bad_hinges_are_refused(make, message):
    with pytest.raises(KfdynError, match=message):
        make()


def test_errors_are_of_the_right_kind():
    with pytest.raises(ModelError):
        Hinge.revolute([0, 0, 0])
    with pytest.raises(ShapeError):
        Hinge.revolute([0, 0])
    with pytest.raises(ModelError, match="kinds are"):
        random_hinge(np.random.default_rng(0), "rubber")


def test_a_hinge_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        Hinge.revolute().screws[0, 0] = 3.0
