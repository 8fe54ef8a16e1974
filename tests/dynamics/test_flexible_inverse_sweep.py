"""Compiled inverse and hybrid dynamics of flexible systems: against the engine's model made dense, in all its forms."""

import numpy as np
import pytest
from flexible_cases import random_tree, state, tree

import kfdyn as kf
from kfdyn.dynamics.flexible import solve
from kfdyn.dynamics.flexible.assembly import flexible_forest
from kfdyn.dynamics.hybrid import HYBRID
from kfdyn.dynamics.inverse import INVERSE
from kfdyn.errors import ModelError, SingularError
from kfdyn.multibody.flexible.packed_flexible import flexible_model_of


def close(got, wanted, digits=1e-10):
    np.testing.assert_allclose(got, wanted, rtol=digits, atol=digits * np.abs(wanted).max(initial=1.0))


def dense(system, q, v, force=None, gravity=None):
    """𝓜 and c of one state, from the blocks of the assembled model stacked to matrices."""
    ss = flexible_forest(system, q, v, gravity, force).ss
    start, outputs = np.concatenate([[0], np.cumsum(ss.n)]), np.concatenate([[0], np.cumsum(ss.m)])
    E, H = np.zeros((start[-1], start[-1])), np.zeros((outputs[-1], start[-1]))
    Q, R = np.zeros((start[-1], start[-1])), np.zeros((outputs[-1], outputs[-1]))
    for k in range(len(ss)):
        own, out = slice(start[k], start[k + 1]), slice(outputs[k], outputs[k + 1])
        H[out, own], Q[own, own], R[out, out] = ss.H[k], ss.Q[k], ss.R[k]
        p = system.parent[k]
        if p >= 0:
            E[start[p] : start[p + 1], own] = ss.phi[k]
    phi = np.linalg.inv(np.eye(len(E)) - E)
    J = H @ phi
    return J @ Q @ J.T + R, J @ (ss.xi + Q @ phi.T @ ss.eta)


def motion(system, seed):
    rng = np.random.default_rng(seed)
    q, v = state(system, seed)
    a, tau = rng.normal(size=(2, system.nv))
    return q, v, a, tau, rng.normal(size=(system.tree.n_bodies, 6)), rng.normal(size=3)


def engine_is_not_asked(monkeypatch):
    def asked(*_):
        raise AssertionError("the engine was asked")

    monkeypatch.setattr(solve, "flexible_forest", asked)


@pytest.mark.parametrize("seed", range(16))
def test_inverse_dynamics_of_random_trees(seed, monkeypatch):
    system = random_tree(seed)
    q, v, a, _, force, g = motion(system, seed)
    engine_is_not_asked(monkeypatch)
    M, c = dense(system, q, v, force, g)
    close(kf.inverse_dynamics(system, q, v, a, force, g), M @ a + c)
    close(kf.bias_forces(system, q, v, force, g), c)
    close(kf.mass_matrix(system, q), M)
    M, c = dense(system, q, None)
    close(kf.inverse_dynamics(system, q, None, a), M @ a + c)


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("led", ["hinges", "modes", "some", "all", "none"])
def test_hybrid_dynamics_of_random_trees(seed, led, monkeypatch):
    system = random_tree(seed)
    q, v, a, tau, force, g = motion(system, seed)
    random = np.random.default_rng(seed).random(system.nv) < 0.5
    every = np.ones(system.nv, dtype=bool)
    mask = {"hinges": ~system.elastic, "modes": system.elastic, "some": random, "all": every, "none": ~every}[led]
    engine_is_not_asked(monkeypatch)
    M, c = dense(system, q, v, force, g)
    wanted, free = a.copy(), ~mask
    inner = M[np.ix_(free, free)]
    wanted[free] = np.linalg.solve(inner, tau[free] - c[free] - M[np.ix_(free, mask)] @ a[mask])
    got = kf.hybrid_dynamics(
        system, q, v, np.where(mask, np.nan, tau), np.where(mask, a, np.nan), mask, force, g
    )  # fmt: skip
    digits = max(1e-10, 64 * np.finfo(float).eps * (np.linalg.cond(inner) if free.any() else 1.0))
    close(got[1], wanted, digits)
    close(got[0], np.where(mask, M @ wanted + c, tau), digits)


@pytest.mark.parametrize("seed", range(3))
def test_compiled_and_plain_are_one_text(seed):
    system = random_tree(seed)
    q, v, a, tau, force, g = motion(system, seed)
    model, mask = flexible_model_of(system), np.random.default_rng(seed).random(system.nv) < 0.5
    plain = np.empty((3, system.nv))
    assert INVERSE.serving(system).entry.plain(model, q, v, a, force, g, plain[0]) == 1
    assert HYBRID.serving(system).entry.plain(model, mask.astype(np.int64), q, v, tau, a, force, g, *plain[1:]) == 1
    close(kf.inverse_dynamics(system, q, v, a, force, g), plain[0], 1e-11)
    for got, wanted in zip(kf.hybrid_dynamics(system, q, v, tau, a, mask, force, g), plain[1:]):
        close(got, wanted, 1e-9)


def test_rows_and_lanes_are_their_states():
    system, rng = tree(1), np.random.default_rng(1)
    q = np.stack([system.random_configuration(rng) for _ in range(37)])
    v, a, tau = rng.normal(size=(3, 37, system.nv))
    mask, model = ~system.elastic, flexible_model_of(system)
    together = kf.inverse_dynamics(system, q, v, a), *kf.hybrid_dynamics(system, q, v, tau, a, mask)
    for i in (0, 7, 36):
        alone = (
            kf.inverse_dynamics(system, q[i], v[i], a[i]),
            *kf.hybrid_dynamics(system, q[i], v[i], tau[i], a[i], mask),
        )
        for one, other in zip(together, alone):
            np.testing.assert_array_equal(one[i], other)
    for lanes in (2, 4):
        got = np.empty((3, 37, system.nv))
        enter = INVERSE.serving(system).entry.compiled(lanes)
        assert enter(model.address, 0, q, v, a, None, system.gravity, got[0]) == 1
        enter = HYBRID.serving(system).entry.compiled(lanes)
        assert enter(model.address, 0, mask.astype(np.int64), q, v, tau, a, None, system.gravity, *got[1:]) == 1
        for one, other in zip(together, got):
            np.testing.assert_array_equal(one, other)
    still = kf.inverse_dynamics(system, q.reshape(37, 1, -1), None, a[:2])
    assert still.shape == (37, 2, system.nv)
    np.testing.assert_array_equal(still[5, 1], kf.inverse_dynamics(system, q[5], None, a[1]))


def test_noise_of_an_implicit_step_counts_as_a_rotor_does():
    """tau = (𝓜 + R) a + c; noise that couples hinges with modes is the engine's affair."""
    system = tree(2)
    q, v, a, tau, force, g = motion(system, 2)
    K, C = system.elasticity
    for noise in (1e-2 * K + 0.1 * C + np.diag(np.where(system.elastic, 0.0, 0.3)), np.full((system.nv,) * 2, 0.01)):
        noisy = system.with_noise(noise)
        M, c = dense(noisy, q, v, force, g)
        close(kf.inverse_dynamics(noisy, q, v, a, force, g), M @ a + c)
        close(kf.mass_matrix(noisy, q), M)
        mask = system.elastic.copy()
        mask[0] = True
        got = kf.hybrid_dynamics(noisy, q, v, tau, a, mask, force, g)
        close((M @ got[1] + c), got[0], 1e-9)
        np.testing.assert_array_equal(got[0][~mask], tau[~mask])
        close(got[1][mask], a[mask])


@pytest.mark.parametrize("pose", ["neutral", "right angles", "straight"])
def test_special_poses(pose):
    system = tree(4)
    q, (v, a, tau) = system.neutral(), np.eye(3, system.nv)
    if pose == "right angles":
        q[system.q_slice("base")] = q[system.q_slice("first")] = 0.5 * np.pi
    if pose == "straight":
        v = np.zeros(system.nv)
    M, c = dense(system, q, v)
    close(kf.inverse_dynamics(system, q, v, a), M @ a + c)
    mask = ~system.elastic
    got = kf.hybrid_dynamics(system, q, v, tau, a, mask)
    close(M @ got[1] + c, got[0], 1e-9)


def test_bad_input_is_named():
    system = tree(0)
    q, v, a, tau, _, _ = motion(system, 0)
    mask, turned = ~system.elastic, q.copy()
    turned[system.q_slice("second")] *= 1.1
    for call in (
        lambda q, v: kf.inverse_dynamics(system, q, v, a),
        lambda q, v: kf.bias_forces(system, q, v),
        lambda q, v: kf.hybrid_dynamics(system, q, v, tau, a, mask),
        lambda q, v: kf.mass_matrix(system, q),
    ):
        with pytest.raises(ModelError, match="quaternion"):
            call(turned, v)
    with pytest.raises(ModelError, match=r"too large for a double.* v reaches"):
        kf.inverse_dynamics(system, q, 1e200 * v, a)
    with pytest.raises(ModelError, match="a has entries that are not finite"):
        kf.hybrid_dynamics(system, q, v, tau, np.where(mask, np.nan, a), mask)
    rod = kf.beam("rod", 1.0, 1.0, bending=(0.0, 5.0), modes=1, hinge=kf.Hinge.revolute([0, 1, 0]))
    tip = kf.Body("tip", np.zeros((6, 6)), kf.Hinge.revolute([0, 0, 1]), "rod", position=[1.0, 0, 0])
    light = kf.FlexibleSystem([rod, tip])
    nothing = np.zeros(3)
    with pytest.raises(SingularError, match="moves no mass"):
        kf.hybrid_dynamics(light, nothing, nothing, nothing, nothing, np.array([True, False, False]))
    held = kf.hybrid_dynamics(light, nothing, nothing, nothing, nothing, np.array([False, False, True]))
    assert np.isfinite(held).all()  # what is led needs no mass
