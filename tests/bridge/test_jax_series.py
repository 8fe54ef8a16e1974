"""Rollouts, likelihoods and smoothers in JAX, beside JAX's own derivatives of what is written out."""

import numpy as np
import plain
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError

jax = pytest.importorskip("jax")
jnp = jax.numpy
kj = pytest.importorskip("kfdyn.bridge.jax")
from jax.test_util import check_grads  # noqa: E402

DT, STEPS = 0.02, 6


def weighted(system, rng):
    """A number that depends on all states of a motion."""
    q_weight, v_weight = rng.normal(size=(STEPS + 1, system.nq)), rng.normal(size=(STEPS + 1, system.nv))
    return lambda states: (states[0] * q_weight).sum() + (states[1] * v_weight).sum()


def test_a_rollout_is_a_simulation_and_differentiated_as_a_plain_one(rng):
    arm = kf.models.random_tree(2, seed=8, hinges=["revolute", "prismatic"])
    q, v, tau = rng.normal(size=2), rng.normal(size=2), rng.normal(size=(STEPS, 2))
    t = DT * np.arange(STEPS + 1)
    law = kf.LinearFeedback(arm, t=t[:-1], tau=tau, held=True)
    motion = kf.simulate(arm, q, v, t, law, method="euler")
    states = kj.rollout(arm, q, v, tau, DT)
    np.testing.assert_allclose(states[0], motion.q, rtol=0, atol=1e-14)
    np.testing.assert_allclose(states[1], motion.v, rtol=0, atol=1e-13)
    loss = weighted(arm, rng)

    def theirs(q, v, tau):
        def step(state, tau):
            q, v = state
            v = v + DT * plain.forward_dynamics(arm, q, v, tau)
            return (q + DT * v, v), (q + DT * v, v)

        _, moved = jax.lax.scan(step, (q, v), tau)
        return loss([jnp.concatenate([start[None], x]) for start, x in zip((q, v), moved)])

    wanted = jax.jit(jax.grad(theirs, (0, 1, 2)))(q, v, tau)
    for way in (jax.grad, jax.jacfwd):
        found = jax.jit(way(lambda *x: loss(kj.rollout(arm, *x, DT)), (0, 1, 2)))(q, v, tau)
        for x, y in zip(found, wanted):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * max(1.0, abs(np.asarray(y)).max()))


def test_rollouts_turn_with_quaternions_and_in_batches(rng):
    system = kf.models.random_tree(2, seed=2, hinges=["free", "ball"])
    q = np.array([system.random_configuration(rng) for _ in range(2)])
    v, tau = rng.normal(size=(2, system.nv)), rng.normal(size=(STEPS, system.nv))
    loss = weighted(system, rng)

    def by_rollout(d, v, tau, q=q[0]):
        return loss(kj.rollout(system, kj.integrate(system, q, d), v, tau, DT))

    def by_steps(d, v, tau, q=q[0]):
        def step(state, tau):
            after = kj.step(system, *state, tau, DT)
            return after, after

        first = kj.integrate(system, q, d), v
        _, moved = jax.lax.scan(step, first, tau)
        return loss([jnp.concatenate([x[None], y]) for x, y in zip(first, moved)])

    at = np.zeros(system.nv), v[0], tau
    found = jax.jit(jax.value_and_grad(by_rollout, (0, 1, 2)))(*at)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(jax.jit(jax.value_and_grad(by_steps, (0, 1, 2)))(*at))):
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-11)
    run = jax.jit(lambda q, v, tau: kj.rollout(system, q, v, tau, DT))
    both = run(q, v, tau[:, None])
    assert both[0].shape == (STEPS + 1, 2, system.nq)
    for i in range(2):
        for x, y in zip(both, run(q[i], v[i], tau)):
            np.testing.assert_allclose(x[:, i], y, rtol=0, atol=1e-13)
    mapped = jax.jit(jax.vmap(jax.grad(by_rollout, 2), (None, 0, None)))(at[0], v, tau)
    np.testing.assert_allclose(mapped[0], found[1][2], rtol=1e-11, atol=1e-12)
    with pytest.raises(ShapeError, match=r"tau must have shape \(T, ..., 9\) with at least one step"):
        kj.rollout(system, q[0], v[0], tau[0], DT)


def model(rng, ragged=False):
    parent, n, m = [2, 2, -1, 1], (3, 3, 3, 3), (2, 2, 2, 2)
    if ragged:
        n, m = (2, 3, 1, 4), (1, 2, 2, 0)

    def positive(k):
        x = rng.normal(size=(k, k))
        return x @ x.T + 0.5 * np.eye(k)

    blocks = {
        "phi": [rng.normal(size=(n[p] if p >= 0 else n[k], n[k])) for k, p in enumerate(parent)],
        "H": [rng.normal(size=(m[k], n[k])) for k in range(4)],
        "Q": [positive(k) for k in n],
        "R": [positive(k) for k in m],
    }
    inputs = {"xi": rng.normal(size=sum(n)), "eta": rng.normal(size=sum(n))}
    phi = [x if p >= 0 else None for x, p in zip(blocks["phi"], parent)]
    return parent, blocks, inputs, kf.StateSpace(parent, **(blocks | {"phi": phi}), **inputs)


def test_the_gradient_of_a_likelihood_is_that_of_the_dense_one(rng):
    parent, blocks, inputs, ss = model(rng, ragged=True)
    T = rng.normal(size=ss.n_outputs)
    T[2] = np.nan
    seen = np.flatnonzero(~np.isnan(T))

    def ours(T, blocks, inputs):
        return kj.log_likelihood(ss, T, **blocks, **inputs)

    def theirs(T, blocks, inputs):
        return plain.log_likelihood(parent, T, **blocks, **inputs, seen=seen)

    at = T, blocks, inputs
    np.testing.assert_allclose(ours(*at), theirs(*at), rtol=1e-12)
    np.testing.assert_allclose(ours(*at), kf.kalman_filter(ss, T).llf, rtol=1e-14)
    found, wanted = jax.jit(jax.grad(ours, (0, 1, 2)))(*at), jax.jit(jax.grad(theirs, (0, 1, 2)))(*at)
    for name in "QR":  # along symmetric changes, which are all there are
        wanted[1][name] = [0.5 * (x + x.T) for x in wanted[1][name]]
    largest = max(abs(np.asarray(y)).max(initial=0.0) for y in jax.tree.leaves(wanted))
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * largest)
    ahead = jax.jvp(lambda xi: kj.log_likelihood(ss, T, xi=xi), (inputs["xi"],), (inputs["eta"],))[1]
    np.testing.assert_allclose(ahead, found[2]["xi"] @ inputs["eta"], rtol=1e-11)


def test_likelihoods_of_parameters_and_of_batches(rng):
    _, blocks, _, ss = model(rng)
    T = rng.normal(size=(3, ss.n_outputs))
    T[1, 3] = np.nan
    np.testing.assert_allclose(kj.log_likelihood(ss, T), kf.smooth_batch(ss, T).llf, rtol=1e-14)
    Q = np.stack(blocks["Q"])

    def f(theta, T):
        return kj.log_likelihood(ss, T, Q=jnp.exp(theta) * Q)

    stacks = {name: jnp.stack(x) for name, x in blocks.items()}
    slopes, score = jax.grad(lambda x: kj.log_likelihood(ss, T[1], **x))(stacks), kf.score(ss, T[1])
    for name in ("H", "Q", "R"):
        np.testing.assert_array_equal(slopes[name], getattr(score, name).stacked())
    np.testing.assert_array_equal(slopes["phi"][np.array([0, 1, 3])].reshape(-1), score.phi.flat)
    theta = np.array([-0.5, 0.1, 0.4])
    mapped = jax.jit(jax.vmap(jax.grad(f)))(theta, T)
    alone = [float(jax.grad(f)(x, y)) for x, y in zip(theta, T)]
    np.testing.assert_allclose(mapped, alone, rtol=1e-12)
    shared = jax.vmap(f, (None, 0))(0.3, T)
    np.testing.assert_allclose(shared, [f(0.3, y) for y in T], rtol=1e-12)
    check_grads(lambda x: f(x, T[1]), (0.3,), order=1, rtol=1e-6, atol=1e-6)
    with pytest.raises(ModelError, match="second derivatives of log_likelihood, and the bridge"):
        jax.hessian(f)(0.3, T[0])
    with pytest.raises(ShapeError, match=r"Q must have shape \(..., 4, 3, 3\)"):
        kj.log_likelihood(ss, T, Q=np.eye(3))
    flat = kf.StateSpace.chain(np.eye(1), np.eye(1), np.eye(1), np.eye(1), steps=3)
    with pytest.raises(ModelError, match="proper priors"):
        kj.log_likelihood(flat, np.zeros(3))
    with pytest.raises(ModelError, match="takes a StateSpace, got str"):
        kj.smoothed_means("model", np.zeros(3))


@pytest.mark.parametrize("ragged", [False, True])
def test_smoothed_means_are_linear_in_what_was_measured(ragged, rng):
    parent, blocks, inputs, ss = model(rng, ragged)
    T = rng.normal(size=(2, ss.n_outputs))
    T[1, 2] = np.nan
    means = kj.smoothed_means(ss, T)

    def f(T):
        return kj.smoothed_means(ss, T)

    ahead, back = jax.jit(jax.vmap(jax.jacfwd(f)))(T), jax.jit(jax.vmap(jax.jacrev(f)))(T)
    for i, seen in enumerate(np.flatnonzero(~np.isnan(x)) for x in T):
        start, matrix = plain.smoother(parent, **blocks, **inputs, seen=seen)
        largest = max(1.0, abs(matrix).max())
        wanted = start + matrix @ np.nan_to_num(T[i])
        np.testing.assert_allclose(means[i], wanted, rtol=0, atol=1e-12 * largest)
        for found in (ahead[i], back[i]):
            np.testing.assert_allclose(found, matrix, rtol=0, atol=1e-12 * largest)
    twice = jax.jit(jax.hessian(lambda T: (f(T) ** 2).sum()))(T[0])
    np.testing.assert_allclose(twice, 2 * back[0].T @ back[0], rtol=1e-10, atol=1e-10)
    together = jax.grad(lambda T: (f(T) ** 2).sum())(T)
    assert together.shape == T.shape and together[1, 2] == 0
