"""Dynamics as functions of masses, mass centres, inertias and rotors: values, gradients, batches of robots."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError
from kfdyn.spatial import inertia_parameters

jax = pytest.importorskip("jax")
jnp = jax.numpy
kj = pytest.importorskip("kfdyn.bridge.jax")
from jax.test_util import check_grads  # noqa: E402

SYSTEMS = {
    "turning": lambda: kf.models.random_tree(3, 3, ["free", "ball", "revolute"]),
    "screws": lambda: kf.models.random_tree(4, 4, ["universal", "helical", "prismatic"], armature=True),
}


def drawn(system, rng, *lead):
    """States and parameters of robots."""
    count = int(np.prod(lead, dtype=int))
    q = np.array([system.random_configuration(rng) for _ in range(count)]).reshape(*lead, system.nq)
    v, u = rng.normal(size=(2, *lead, system.nv))
    mass, com, central = inertia_parameters(np.stack([body.inertia for body in system.bodies]))

    def about(own, *tail):
        return own * (1.0 + 0.2 * rng.uniform(-1, 1, size=(*lead, *tail)))

    n = system.n_bodies
    robots = {
        "masses": about(mass, n), "coms": about(com, n, 1), "inertias": about(central, n, 1, 1),
        "armature": about(system.armature + 0.1, system.nv),
    }  # fmt: skip
    return (q, v, u), robots


@pytest.mark.parametrize("name", SYSTEMS)
def test_values_are_those_of_robots_that_differ(name, rng):
    system = SYSTEMS[name]()
    at, robots = drawn(system, rng, 5)
    batch = kf.with_parameters(system, **robots)
    for function in ("forward_dynamics", "inverse_dynamics"):
        found = jax.jit(lambda *x, f=function: getattr(kj, f)(system, *x))(*at, robots)
        np.testing.assert_allclose(found, getattr(kf, function)(batch, *at), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", SYSTEMS)
def test_gradients_are_those_of_a_plain_program(name, rng):
    """Beside JAX's own autodiff of 𝓜(θ) a = τ − c(θ), whose terms are linear in what kfdyn computes of unit bodies."""
    system = SYSTEMS[name]()
    (q, v, u), robots = drawn(system, rng)
    nv, none = system.nv, np.zeros(system.nv)
    Y = kf.torque_regressor(system, q, v, none)
    columns = [kf.torque_regressor(system, q, none, e, gravity=[0, 0, 0]) for e in np.eye(nv)]

    def theta(p):
        m, c, J = p["masses"], p["coms"], p["inertias"]
        square = jnp.einsum("ki,ki->k", c, c)[:, None, None] * jnp.eye(3) - c[:, :, None] * c[:, None, :]
        I = J + m[:, None, None] * square
        six = jnp.stack([I[:, 0, 0], I[:, 0, 1], I[:, 1, 1], I[:, 0, 2], I[:, 1, 2], I[:, 2, 2]], -1)
        return jnp.concatenate([m[:, None], m[:, None] * c, six], -1).ravel()

    def forward(p):
        M = jnp.stack([column @ theta(p) for column in columns], -1) + jnp.diag(p["armature"])
        return jnp.linalg.solve(M, u - Y @ theta(p))

    def inverse(p):
        return kf.torque_regressor(system, q, v, u) @ theta(p) + p["armature"] * u

    for ours, theirs in ((kj.forward_dynamics, forward), (kj.inverse_dynamics, inverse)):
        wanted = jax.jit(jax.jacfwd(theirs))(robots)
        for transform in (jax.jacrev, jax.jacfwd):
            found = jax.jit(transform(lambda p, f=ours: f(system, q, v, u, p)))(robots)
            for key, x in wanted.items():
                np.testing.assert_allclose(found[key], x, rtol=0, atol=1e-11 * max(1.0, abs(np.asarray(x)).max()))


def test_all_arguments_by_differences_and_in_batches(rng):
    system = SYSTEMS["screws"]()
    at, robots = drawn(system, rng, 3)
    check_grads(lambda *x: kj.forward_dynamics(system, *x), (*at, robots), order=1, rtol=1e-6, atol=1e-6)

    def f(robots, *x):
        return kj.forward_dynamics(system, *x, robots).sum()

    whole = jax.grad(f)(robots, *at)
    mapped = jax.jit(jax.vmap(jax.grad(f)))(robots, *at)
    for i in range(3):
        alone = jax.grad(f)({key: x[i] for key, x in robots.items()}, *(x[i] for x in at))
        for key, x in alone.items():
            np.testing.assert_allclose(whole[key][i], x, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(mapped[key][i], x, rtol=1e-12, atol=1e-12)


def test_some_parameters_by_name(rng):
    system = kf.models.puma560()
    q, v, tau = rng.normal(size=(3, 6))

    def f(m):
        return kj.forward_dynamics(system, q, v, tau, {"masses": {"link_2": m}})

    masses = np.array([10.0, 20.0, 30.0])
    with pytest.warns(kf.spatial.TriangleInequalityWarning):
        batch = kf.with_parameters(system, masses={"link_2": masses}, coms=system.layout.com[None])
    np.testing.assert_allclose(f(masses), kf.forward_dynamics(batch, q, v, tau), rtol=1e-11)
    slope = jax.jacfwd(f)(10.0)
    np.testing.assert_allclose(slope, (f(10.001) - f(9.999)) / 0.002, rtol=1e-6, atol=1e-6)


def test_bad_parameters():
    arm, zero = kf.models.double_pendulum(), np.zeros(2)
    geared = kf.System(arm.bodies, couplings=[kf.Coupling(list(arm.hinge_names), [[1.0], [2.0]])])
    for system, given, error, words in (
        (arm, {"mass": 1.0}, ModelError, "some of 'masses', 'coms', 'inertias', 'armature', got 'mass'"),
        (arm, {}, ModelError, "got an empty one"),
        (arm, {"masses": {"hand": 1.0}}, ModelError, "masses of 'hand'.*it has upper, lower"),
        (arm, {"masses": [1.0, 2.0, 3.0]}, ShapeError, r"masses must have shape \(..., 2\), got \(3,\)"),
        (arm, {"coms": {"upper": [1.0]}}, ShapeError, "coms"),
        (geared, {"masses": [1.0, 2.0]}, ModelError, "parameters.*trees"),
    ):
        n = system.nv
        with pytest.raises(error, match=words):
            kj.inverse_dynamics(system, zero[:n], zero[:n], zero[:n], given)
