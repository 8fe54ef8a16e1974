"""The recursions themselves: any number of lanes, any rows of a batch, odd inputs, and how frames are chosen."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.dynamics.recursions.forward import FORWARD
from kfdyn.dynamics.recursions.inverse import INVERSE
from kfdyn.dynamics.recursions.mass_matrix import MASS_MATRIX
from kfdyn.dynamics.recursions.mass_matrix_inverse import MASS_MATRIX_INVERSE
from kfdyn.multibody.calls.packed_model import model_of
from kfdyn.spatial import spatial_inertia

_compiled = {}


def enter(entry, lanes):
    if (entry.name, lanes) not in _compiled:
        _compiled[entry.name, lanes] = entry.compiled(lanes)
    return _compiled[entry.name, lanes]


def run(system, lanes, q, v, tau, force, gravity):
    """a, tau, 𝓜, 𝓜⁻¹ of the rows by the compiled recursions, all sound."""
    size, nv, model = len(q), system.nv, model_of(system)
    a, t = np.full((2, size, nv), np.nan)
    M, W = np.full((2, size, nv, nv), np.nan)
    q, v, tau, gravity = (np.ascontiguousarray(x, dtype=float) for x in (q, v, tau, gravity))
    assert enter(FORWARD, lanes)(model.address, 0, q, v, tau, force, gravity, a) == 1
    assert enter(INVERSE, lanes)(model.address, 0, q, v, tau, force, gravity, t) == 1
    assert enter(MASS_MATRIX, lanes)(model.address, 0, q, M) == 1
    assert enter(MASS_MATRIX_INVERSE, lanes)(model.address, 0, q, W) == 1
    return a, t, M, W


def motion(system, rng, size):
    q = np.stack([system.random_configuration(rng) for _ in range(size)])
    return q, *rng.normal(size=(2, size, system.nv)), rng.normal(size=(size, system.n_bodies, 6))


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [1, 2, 8])
def test_lanes_do_not_show(lanes):
    """Every hinge and several branches; four lanes are what the public functions use."""
    for seed in (3, 8):
        system, rng = kf.models.random_tree(14, seed=seed), np.random.default_rng(seed)
        given = (*motion(system, rng, 11), np.array([0.0, 0.0, -9.81]))
        for one, other in zip(run(system, lanes, *given), run(system, 4, *given)):
            if lanes == 1:  # a float may be rounded otherwise than a lane: the compiler fuses other products
                np.testing.assert_allclose(one, other, rtol=0, atol=1e-11 * np.abs(other).max())
            else:
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("size", [1, 3, 4, 5, 7, 17])
def test_any_rows_of_any_batch(size):
    """Each row alone, and parts of a batch, give the bits of the whole batch, with gravity and force of its own."""
    system, rng = kf.models.random_tree(9, seed=5), np.random.default_rng(size)
    given = (*motion(system, rng, size), rng.normal(size=(size, 3)))
    whole = run(system, 4, *given)
    assert not any(np.isnan(x).any() for x in whole)
    middle = size // 2
    parts = [run(system, 4, *(x[rows] for x in given)) for rows in (slice(0, middle), slice(middle, size))]
    for i, x in enumerate(whole):
        np.testing.assert_array_equal(np.concatenate([part[i] for part in parts]), x)
    for b in range(size):
        alone = run(system, 4, *(x[b : b + 1] for x in given))
        for i, x in enumerate(whole):
            np.testing.assert_array_equal(alone[i][0], x[b])


def test_plain_numbers_do_not_show():
    """The same recursions run by Python, every index checked."""
    system, rng = kf.models.random_tree(6, seed=4, trees=2), np.random.default_rng(0)
    q, v, tau, force = motion(system, rng, 2)
    model, nv = model_of(system), system.nv
    whole = run(system, 4, q, v, tau, force, system.gravity)
    plain = [np.full_like(x, np.nan) for x in whole]
    assert FORWARD.plain(model, q, v, tau, force, system.gravity, plain[0]) == 1
    assert INVERSE.plain(model, q, v, tau, force, system.gravity, plain[1]) == 1
    assert MASS_MATRIX.plain(model, q, plain[2]) == 1
    assert MASS_MATRIX_INVERSE.plain(model, q, plain[3]) == 1
    for one, other in zip(plain, whole):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-11 * np.abs(other).max())
    assert nv == plain[0].shape[1]


@pytest.mark.parametrize("angle", [0.0, 1e-17, 1e-12, 1e-9, 1e-6, 1e-3, 0.5 * np.pi, np.pi - 1e-9, np.pi, -0.3])
def test_axes_nearly_parallel(angle):
    """The common normal of two hinges is made of rounding when they are parallel: no answer may show it."""
    rng = np.random.default_rng(1)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turn *= np.linalg.det(turn)
    inertia = spatial_inertia(1.3, [0.1, -0.2, 0.3], np.diag([0.4, 0.3, 0.5]))
    axis = turn @ [np.sin(angle), 0.0, np.cos(angle)]
    bodies = [
        kf.Body("a", inertia, kf.Hinge.revolute(turn[:, 2]), position=[0.1, 0.2, 0.3]),
        kf.Body("b", inertia, kf.Hinge.revolute(axis), parent="a", position=[0.4, -0.1, 0.2]),
        kf.Body("c", inertia, kf.Hinge.revolute(-axis), parent="b", position=[0.1, 0.3, -0.2]),
        kf.Body("d", inertia, kf.Hinge.revolute(turn[:, 2]), parent="a", position=[0.2, 0.1, 0.1]),
    ]
    system = kf.System(bodies)
    q, v, tau, force = motion(system, rng, 3)
    a, t, M, W = run(system, 4, q, v, tau, force, system.gravity)
    for b in range(3):
        ss = kf.as_estimation(system, q[b], v[b], force[b])
        op = kf.Operators(ss)
        dense = op.output_cov.dense()
        np.testing.assert_allclose(M[b], dense, rtol=0, atol=1e-13 * np.abs(dense).max())
        bias = op.H @ (op.phi @ (op.Q @ (op.phi.H @ (op.H.H @ tau[b] + ss.eta)) + ss.xi)) + op.R @ tau[b]
        np.testing.assert_allclose(t[b], bias, rtol=0, atol=1e-12 * np.abs(bias).max())
        zero = op.H @ (op.phi @ (op.Q @ (op.phi.H @ ss.eta) + ss.xi))
        np.testing.assert_allclose(dense @ a[b], tau[b] - zero, rtol=0, atol=1e-12 * np.abs(dense @ a[b]).max() + 1e-12)
        np.testing.assert_allclose(dense @ W[b], np.eye(4), rtol=0, atol=1e-12)


def test_branches_meet_anywhere():
    """𝓜⁻¹ between branches, hinges of every size on both sides, several trees: against dense inversion."""
    for seed in range(12):
        system, rng = kf.models.random_tree(13, seed, trees=1 + seed % 3), np.random.default_rng(seed)
        q, v, tau, force = motion(system, rng, 2)
        _, _, M, W = run(system, 4, q, v, tau, force, system.gravity)
        np.testing.assert_array_equal(W, W.swapaxes(1, 2))
        bound = 1e-12 * (np.abs(M) @ np.abs(W)).max()
        np.testing.assert_allclose(M @ W, np.broadcast_to(np.eye(system.nv), M.shape), rtol=0, atol=bound)
