import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from spatial_cases import SWAP, assert_close, fast, random_rotation, seeds

from kfdyn.errors import ModelError, ShapeError
from kfdyn.spatial import (
    inverse_transform,
    rigid_transform,
    transform_force,
    transform_inertia,
    transform_momentum,
    transform_velocity,
)


@fast
@given(seeds)
def test_phi_is_pinocchios_action(seed):
    """R86:3.5, SRB:phi-vel-force. Forces and inertias to the parent, velocities to the child."""
    rng = np.random.default_rng(seed)
    l, R = rng.normal(size=3), random_rotation(rng)
    phi, placement = rigid_transform(l, R), pin.SE3(R, l)
    f, V, h = rng.normal(size=(3, 6))
    assert_close(transform_force(phi, f), SWAP @ placement.act(pin.Force(SWAP @ f)).vector, 1e-14)
    assert_close(transform_momentum(phi, h), SWAP @ placement.act(pin.Force(SWAP @ h)).vector, 1e-14)
    assert_close(transform_velocity(phi, V), SWAP @ placement.actInv(pin.Motion(SWAP @ V)).vector, 1e-14)
    body = pin.Inertia.Random()
    moved = SWAP @ placement.act(body).matrix() @ SWAP
    assert_close(transform_inertia(phi, SWAP @ body.matrix() @ SWAP), moved, 1e-14)


@fast
@given(seeds)
def test_without_rotation_it_is_the_lever_arm(seed):
    """R86:3.5 in components: a force gains the moment l × F, a velocity the speed ω × l."""
    l, f, V = np.random.default_rng(seed).normal(size=(3, 5, 6))
    l = l[..., :3]
    phi = rigid_transform(l)
    moment = f[..., :3] + np.cross(l, f[..., 3:])
    speed = V[..., 3:] + np.cross(V[..., :3], l)
    assert_close(transform_force(phi, f), np.concatenate([moment, f[..., 3:]], -1), 1e-15)
    assert_close(transform_velocity(phi, V), np.concatenate([V[..., :3], speed], -1), 1e-15)


@fast
@given(seeds)
def test_semigroup_identity_inverse(seed):
    """R86:3.6: φ(x, z) = φ(x, y) φ(y, z), φ(x, x) = 1, φ^-1(x, y) = φ(y, x), between three posed frames."""
    rng = np.random.default_rng(seed)
    R, r = random_rotation(rng, 3), rng.normal(size=(3, 3))  # poses in the world

    def phi(x, y):
        return rigid_transform(R[x].T @ (r[y] - r[x]), R[x].T @ R[y])

    assert_close(phi(0, 2), phi(0, 1) @ phi(1, 2), 1e-14)
    np.testing.assert_array_equal(phi(1, 1), np.kron(np.eye(2), R[1].T @ R[1]))  # 1 but for the rounding of R*R
    assert_close(rigid_transform(np.zeros(3), np.eye(3)), np.eye(6), 0.0)
    assert_close(inverse_transform(phi(0, 1)), phi(1, 0), 1e-14)
    assert_close(inverse_transform(phi(0, 1)), np.linalg.inv(phi(0, 1)), 1e-14)
    V, f = rng.normal(size=(2, 6))
    power = f @ transform_velocity(phi(0, 1), V)
    assert_close(transform_force(phi(0, 1), f) @ V, power, 1e-14)  # SRB:phi-vel-force, power is invariant


def test_leading_axes_broadcast_and_inertia_stays_symmetric():
    rng = np.random.default_rng(1)
    phi = rigid_transform(rng.normal(size=(4, 1, 3)), random_rotation(rng, 5))
    assert phi.shape == (4, 5, 6, 6)
    assert transform_force(phi, rng.normal(size=6)).shape == (4, 5, 6)
    A = rng.normal(size=(5, 6, 6))
    moved = transform_inertia(phi, A @ np.swapaxes(A, -1, -2))
    assert moved.shape == (4, 5, 6, 6)
    assert np.array_equal(moved, np.swapaxes(moved, -1, -2))


def test_bad_input_is_named():
    with pytest.raises(ModelError, match="rotation is not orthonormal"):
        rigid_transform(np.zeros(3), np.ones((3, 3)))
    with pytest.raises(ShapeError, match=r"l must have shape \(..., 3\)"):
        rigid_transform(1.0)
    with pytest.raises(ModelError, match=r"phi\[1\] is not rigid"):
        inverse_transform(np.stack([np.eye(6), 2 * np.eye(6)]))
    with pytest.raises(ModelError, match="M6 is not symmetric"):
        transform_inertia(np.eye(6), np.triu(np.ones((6, 6))))
    with pytest.raises(ShapeError, match=r"phi \(2,\), V \(3,\)"):
        transform_velocity(np.tile(np.eye(6), (2, 1, 1)), np.zeros((3, 6)))
