"""Dynamics in JAX: values and derivatives beside JAX's own of a plain reimplementation; all transformations."""

import numpy as np
import plain
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError

jax = pytest.importorskip("jax")
jnp = jax.numpy
kj = pytest.importorskip("kfdyn.bridge.jax")
from jax.test_util import check_grads  # noqa: E402

SYSTEMS = {
    "turning": kf.models.random_tree(2, seed=3, hinges=["free", "ball"]),
    "screws": kf.models.random_tree(2, seed=4, hinges=["universal", "helical"]),
    "more": kf.models.random_tree(5, seed=5, hinges=["gimbal", "succession", "planar", "cylindrical", "revolute"]),
}


def state(system, rng, *lead):
    q = np.array([system.random_configuration(rng) for _ in range(int(np.prod(lead, dtype=int)))])
    return q.reshape(*lead, system.nq), *(rng.normal(size=(*lead, system.nv)) for _ in range(2))


def readings(system, frame):
    """All functions of q, v and a third, which is a torque or an acceleration, as one."""
    return lambda q, v, u: {
        "forward_dynamics": kj.forward_dynamics(system, q, v, u),
        "inverse_dynamics": kj.inverse_dynamics(system, q, v, u),
        "mass_matrix": kj.mass_matrix(system, q),
        "jacobian": kj.jacobian(system, q, frame),
        "rotation": kj.frame_pose(system, q, frame)[0],
        "position": kj.frame_pose(system, q, frame)[1],
        "frame_velocity": kj.frame_velocity(system, q, v, frame),
        "kinetic_energy": kj.kinetic_energy(system, q, v),
        "potential_energy": kj.potential_energy(system, q),
    }


def worst(found, wanted):
    """Largest difference, relative to the largest number of each."""
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True)
    return max(float(abs(np.asarray(x) - y).max() / max(1.0, abs(np.asarray(y)).max())) for x, y in pairs)


@pytest.mark.parametrize("name", ["turning", "screws"])
def test_values_and_derivatives_are_those_of_a_plain_reimplementation(name, rng):
    """In q as it is, quaternions too: a plain function of q/|q| has the derivative E⁺."""
    system = SYSTEMS[name]
    at, frame = state(system, rng), system.body_names[-1]
    ours, theirs = readings(system, frame), plain.everything(system, frame)
    value, wanted = jax.jit(lambda *x: (theirs(*x), jax.jacfwd(theirs, (0, 1, 2))(*x)))(*at)
    assert worst(ours(*at), value) < 1e-12
    assert worst(jax.jit(jax.jacrev(ours, (0, 1, 2)))(*at), wanted) < 1e-12
    assert worst(jax.jit(jax.jacfwd(ours, (0, 1, 2)))(*at), wanted) < 1e-12


@pytest.mark.parametrize("name", ["turning", "screws"])
def test_inverse_and_determinant_follow_the_mass_matrix(name, rng):
    system = SYSTEMS[name]
    q = state(system, rng)[0]

    def ours(q):
        return kj.mass_matrix_inverse(system, q), kj.mass_matrix_logdet(system, q)

    def theirs(q):
        M = kj.mass_matrix(system, q)
        return jnp.linalg.inv(M), jnp.linalg.slogdet(M)[1]

    assert worst(ours(q), theirs(q)) < 1e-11
    wanted = jax.jit(jax.jacfwd(theirs))(q)
    assert worst(jax.jit(jax.jacfwd(ours))(q), wanted) < 1e-11
    assert worst(jax.jit(jax.jacrev(ours))(q), wanted) < 1e-11


def test_couplings_are_obeyed(rng):
    """Beside the open tree at X q + offset, forces X* τ."""
    tree = SYSTEMS["more"]
    names = [b.hinge_name for b in tree.bodies if b.hinge.kind == "revolute"]
    arm = kf.System(
        [kf.Body("rod", np.diag([1.0, 2, 3, 2, 2, 2]), kf.Hinge.revolute([0, 0, 1])), *tree.bodies],
        couplings=[kf.Coupling(["rod", names[0]], [[1.0], [-2.5]], [0.1, 0.2])],
    )
    q, v, a = state(arm, rng)
    X = arm.expansion()

    tree, offset, frame = arm.open_tree, arm.expand(np.zeros(arm.nq)), arm.body_names[-1]

    def theirs(q, v, a):
        tau = kj.inverse_dynamics(tree, X @ q + offset, X @ v, X @ a)
        return X.T @ tau, kj.jacobian(tree, X @ q + offset, frame) @ X

    def ours(q, v, a):
        return kj.inverse_dynamics(arm, q, v, a), kj.jacobian(arm, q, frame)

    assert worst(ours(q, v, a), theirs(q, v, a)) < 1e-12
    wanted = jax.jit(jax.jacfwd(theirs, (0, 1, 2)))(q, v, a)
    assert worst(jax.jit(jax.jacrev(ours, (0, 1, 2)))(q, v, a), wanted) < 1e-12


def test_derivatives_in_tangent_coordinates_are_kfdyn_s_own(rng):
    kinds = {body.hinge.kind for each in SYSTEMS.values() for body in each.bodies} | {"prismatic", "fixed"}
    system = kf.models.random_tree(len(kinds), seed=6, hinges=sorted(kinds))
    q, v, u = state(system, rng)
    by_q, by_v, by_u = jax.jit(jax.jacrev(lambda *x: kj.forward_dynamics(system, *x), (0, 1, 2)))(q, v, u)
    ours = kj.tangent_gradient(system, np.tile(q, (system.nv, 1)), by_q), by_v, by_u
    assert worst(ours, tuple(kf.forward_dynamics_derivatives(system, q, v, u))) < 1e-12


def test_gradients_by_differences(rng):
    system = SYSTEMS["more"]
    at = state(system, rng)
    check_grads(lambda *x: kj.forward_dynamics(system, *x), at, order=1, rtol=1e-6, atol=1e-6)
    check_grads(lambda q: kj.mass_matrix_inverse(system, q), at[:1], order=1, rtol=1e-6, atol=1e-6)
    check_grads(lambda q: kj.potential_energy(system, q), at[:1], order=2, rtol=1e-6, atol=1e-6)


def test_tangent_coordinates(rng):
    """Along integrate at dv = 0, from the gradient in q; integrate and its derivatives away from 0, too."""
    system = SYSTEMS["turning"]
    q, v, tau = state(system, rng)
    d = rng.normal(size=system.nv)

    def f(q):
        return kj.forward_dynamics(system, q, v, tau)[0]

    along = jax.jit(jax.grad(lambda d: f(kj.integrate(system, q, d))))(jnp.zeros(system.nv))
    np.testing.assert_allclose(kj.tangent_gradient(system, q, jax.grad(f)(q)), along, rtol=0, atol=1e-11)
    da_dq = kf.forward_dynamics_derivatives(system, q, v, tau).da_dq
    np.testing.assert_allclose(along, da_dq[0], rtol=1e-11, atol=1e-11)
    move, steps = jax.jit(lambda d: kj.integrate(system, q, d)), np.array([[0.0, 1e-9, 1e-3, 0.2, 1.0, 3.0]]).T * d
    np.testing.assert_allclose(move(steps), kf.integrate(system, q, steps), rtol=0, atol=4e-15)
    check_grads(move, (d,), order=1, modes=["rev"], rtol=1e-6, atol=1e-6)


def test_every_transformation_of_a_batch(rng):
    system = SYSTEMS["more"]
    q, v, tau = state(system, rng, 5)

    def f(q, v, tau):
        return jnp.sin(kj.forward_dynamics(system, q, v, tau)).sum()

    alone = np.array([jax.grad(f)(*x) for x in zip(q, v, tau)])
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(f)))(q, v, tau), alone, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(jax.grad(f)(q, v, tau), alone, rtol=1e-12, atol=1e-12)
    one = jax.vmap(lambda v: kj.forward_dynamics(system, q[0], v, tau[0]))(v)
    np.testing.assert_array_equal(one, kf.forward_dynamics(system, q[:1], v, tau[:1]))
    grid = jax.vmap(lambda q: jax.vmap(lambda v: kj.forward_dynamics(system, q, v, tau[0]))(v))(q)
    np.testing.assert_array_equal(grid, kf.forward_dynamics(system, q[:, None], v, tau[0]))
    spread = kj.forward_dynamics(system, q[:, None], v, tau[0])
    np.testing.assert_array_equal(spread, grid)
    _, pull = jax.vjp(lambda tau: kj.forward_dynamics(system, q[0], v[0], tau), tau[0])
    np.testing.assert_allclose(pull(v[0])[0], kf.mass_matrix_inverse(system, q[0]) @ v[0], rtol=1e-12)


def test_floats_go_in_and_come_out(rng):
    system = SYSTEMS["more"]
    at = state(system, rng)
    a = kj.forward_dynamics(system, *(x.astype("float32") for x in at))
    assert a.dtype == jnp.float32
    np.testing.assert_allclose(a, kf.forward_dynamics(system, *at), rtol=1e-4, atol=1e-4)
    assert kj.mass_matrix(system, [0] * system.nq).dtype == jnp.float64
    g = jax.grad(lambda q: kj.forward_dynamics(system, q, *at[1:]).sum())(at[0].astype("float32"))
    assert g.dtype == jnp.float32


def test_second_derivatives_where_there_are_some(rng):
    system = SYSTEMS["screws"]
    q, v, tau = state(system, rng)
    frame = system.body_names[-1]

    def energy_and_height(home):
        return lambda q: (
            home.potential_energy(system, q)
            + home.frame_pose(system, q, frame)[1][0]
            + (jnp.arange(6.0) * home.frame_velocity(system, q, v, frame)).sum()
        )

    ours, theirs = (jax.jit(jax.hessian(energy_and_height(home)))(q) for home in (kj, plain))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12 * abs(theirs).max())
    M = jax.hessian(lambda v: kj.kinetic_energy(system, q, v))(v)
    np.testing.assert_allclose(M, kf.mass_matrix(system, q), rtol=1e-12, atol=1e-12)
    for f in (
        lambda q: kj.forward_dynamics(system, q, v, tau).sum(),
        lambda q: kj.mass_matrix(system, q).sum(),
        lambda q: kj.mass_matrix_logdet(system, q),
    ):
        with pytest.raises(ModelError, match=r"second derivatives of .*, and the bridge has first ones"):
            jax.hessian(f)(q)


def test_what_is_not_served_is_refused():
    arm = kf.models.double_pendulum()
    framed = kf.System(arm.bodies, frames={"tip": kf.Frame("lower", position=[0, 0, -1.0])})
    held = framed.with_loops([kf.Loop("tip", None, rows="point")])
    with pytest.raises(ModelError, match="derivatives of motions that loops constrain"):
        kj.forward_dynamics(held, [0.0, 0.0], [0.0, 0.0], [0.0, 0.0])
    with pytest.raises(ModelError, match=r"system must be a kfdyn\.System"):
        kj.mass_matrix({}, [0.0])
    with pytest.raises(ShapeError, match=r"v must have shape \(..., 2\), got \(3,\)"):
        kj.forward_dynamics(arm, [0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0])
    with pytest.raises(ModelError, match="no body or frame 'hand'"):
        kj.jacobian(arm, [0.0, 0.0], "hand")
    for nowhere in (None, 3, ["upper"]):
        with pytest.raises(ModelError, match="no body or frame"):
            jax.jit(lambda q, frame=nowhere: kj.jacobian(arm, q, frame))(jnp.zeros(2))
    skate = kf.Hinge.custom([[0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0]])
    blade = kf.System([kf.Body("blade", np.eye(6), skate)])
    with pytest.raises(ModelError, match="hinge 'blade': a custom hinge has fewer directions than its pose"):
        kj.mass_matrix(blade, blade.neutral())


def test_what_goes_wrong_in_a_program_is_told():
    light = kf.models.pendulum(mass=0.0)
    with pytest.raises(Exception, match="hinge 'pivot': nothing outboard of it has mass"):
        jax.jit(lambda q: kj.forward_dynamics(light, q, q, q))(jnp.ones(1)).block_until_ready()


def test_what_is_no_array_of_numbers_is_named():
    arm, zero = kf.models.double_pendulum(), np.zeros(2)
    for q, v, error, words in (
        (zero, None, ModelError, "v must be an array of numbers, got None"),
        ("home", zero, ModelError, "q must be an array of numbers, got 'home'"),
        (zero + 1j, zero, ModelError, "q must be real, got complex"),
        (
            np.zeros((3, 2)),
            np.zeros((4, 2)),
            ShapeError,
            r"leading axes do not broadcast: q \(3,\), v \(4,\), tau \(\)",
        ),
    ):
        with pytest.raises(error, match=words):
            kj.forward_dynamics(arm, q, v, zero)
    whole = kj.forward_dynamics(arm, np.array([0, 1]), np.array([0, 0]), np.array([1, 0]))
    np.testing.assert_allclose(whole, kf.forward_dynamics(arm, [0.0, 1.0], zero, [1.0, 0.0]), rtol=1e-12)


@pytest.mark.parametrize("transform", [jax.jit, jax.grad, jax.jacrev])
def test_functions_of_numbers_name_the_bridge(transform):
    """NumPy's are asked for a tracer: the error says which function takes it."""
    arm = kf.models.double_pendulum()
    with pytest.raises(ShapeError, match=r"q is being traced or differentiated by jax.*kfdyn\.bridge\.jax"):
        transform(lambda q: kf.forward_dynamics(arm, q, q, q).sum())(np.ones(2))
