"""Compiled recursions that XLA calls itself: the bits of kfdyn's own functions, and Python where it must help."""

import numpy as np
import pytest

import kfdyn as kf

jax = pytest.importorskip("jax")
jnp = jax.numpy
kj = pytest.importorskip("kfdyn.bridge.jax")
from kfdyn.bridge import foreign_calls, operations  # noqa: E402
from kfdyn.bridge.kernels import parts_of  # noqa: E402
from kfdyn.bridge.operations import Operation  # noqa: E402

pytestmark = pytest.mark.skipif(foreign_calls.version() is None, reason="this JAX has another foreign interface")

SYSTEMS = {
    "tree": lambda: kf.models.random_tree(6, 2, ["free", "ball", "universal", "helical", "prismatic", "revolute"]),
    "arm": kf.models.stanford_arm,
    "geared": lambda: kf.System(
        kf.models.stanford_arm().bodies, couplings=[kf.Coupling(["joint_1", "joint_2"], [[1.0], [-0.5]])]
    ),
}
FUNCTIONS = {
    "forward_dynamics": 3, "inverse_dynamics": 3, "mass_matrix": 1, "mass_matrix_inverse": 1, "potential_energy": 1,
    "jacobian": 1, "frame_pose": 1,
}  # fmt: skip


def states(system, rng, *lead):
    q = np.array([system.random_configuration(rng) for _ in range(int(np.prod(lead, dtype=int)))])
    return q.reshape(*lead, system.nq), *rng.normal(size=(2, *lead, system.nv))


def leaves(found):
    return [np.asarray(x) for x in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("lead", [(), (3,), (21,), (2, 5), (0,)])
def test_the_bits_are_kfdyns(name, lead, rng):
    system = SYSTEMS[name]()
    given = states(system, rng, *lead)
    for function, count in FUNCTIONS.items():
        more = (system.body_names[-1],) if function in ("jacobian", "frame_pose") else ()
        found = jax.jit(lambda *x, f=function, more=more: getattr(kj, f)(system, *x, *more))(*given[:count])
        for x, y in zip(leaves(found), leaves(getattr(kf, function)(system, *given[:count], *more)), strict=True):
            np.testing.assert_array_equal(x, y, function)


def test_no_python_is_on_the_way(rng):
    system = kf.models.stanford_arm()
    at = states(system, rng, 4)
    frame = system.body_names[-1]

    def everything(q, v, tau):
        answers = (
            kj.forward_dynamics(system, q, v, tau), kj.inverse_dynamics(system, q, v, tau), kj.mass_matrix(system, q),
            kj.mass_matrix_inverse(system, q), kj.mass_matrix_logdet(system, q), kj.jacobian(system, q, frame),
            kj.frame_pose(system, q, frame), kj.frame_velocity(system, q, v, frame), kj.kinetic_energy(system, q, v),
            kj.potential_energy(system, q), kj.step(system, q, v, tau, 0.01),
        )  # fmt: skip
        return sum(x.sum() for x in jax.tree.leaves(answers))

    for f in (everything, jax.grad(everything, (0, 1, 2))):
        program = jax.jit(f).lower(*at).as_text()
        assert f"kfdyn_{foreign_calls._process}_" in program and "callback" not in program


def test_derivatives_are_kfdyns(rng):
    system = kf.models.stanford_arm()
    at = states(system, rng, 5)
    for function in ("forward_dynamics", "inverse_dynamics"):
        found = jax.jit(jax.vmap(jax.jacrev(lambda *x, f=function: getattr(kj, f)(system, *x), (0, 1, 2))))(*at)
        for x, y in zip(found, getattr(kf, f"{function}_derivatives")(system, *at), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-13, atol=1e-13)


def test_single_precision_is_computed_in_double(rng):
    system = kf.models.stanford_arm()
    at = [x.astype(np.float32) for x in states(system, rng, 9)]
    found = jax.jit(lambda *x: kj.forward_dynamics(system, *x))(*at)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, kf.forward_dynamics(system, *at).astype(np.float32))
    M = jax.jit(lambda q: kj.mass_matrix(system, q))(at[0])
    np.testing.assert_array_equal(M, kf.mass_matrix(system, at[0]).astype(np.float32))


def test_vmap_over_one_argument_and_over_none(rng):
    system = kf.models.stanford_arm()
    q, v, tau = states(system, rng, 6)
    found = jax.vmap(lambda v: kj.forward_dynamics(system, q[0], v, tau[0]))(v)
    np.testing.assert_array_equal(found, kf.forward_dynamics(system, q[0], v, tau[0]))
    nested = jax.vmap(jax.vmap(lambda q, v: kj.inverse_dynamics(system, q, v, tau[0]), (None, 0)), (0, None))(q, v)
    np.testing.assert_array_equal(nested, kf.inverse_dynamics(system, q[:, None], v, tau[0]))


def test_rows_without_an_answer_are_asked_for_again(rng):
    """By the operation itself, whose words become the program's error."""
    asked, system = [], kf.models.pendulum()
    operation = Operation("forward_dynamics", system)

    def shaken(op, q, v, tau):
        asked.append(q.shape)
        return (kf.forward_dynamics(op.model, q, v, tau),)

    about = operation.about
    q, zero = rng.normal(size=(3, 1)), np.zeros((3, 1))
    q[1] = np.nan
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(operations.KNOWN, "forward_dynamics", about._replace(value=shaken))
        with pytest.raises(Exception, match="ModelError: q has entries that are not finite"):
            jax.block_until_ready(jax.jit(lambda q: kj.forward_dynamics(system, q, zero, zero))(q))
    assert asked == [(3, 1)]
    massless = kf.System([kf.Body("bob", np.zeros((6, 6)), kf.Hinge.revolute([0, 0, 1]))])
    with pytest.raises(Exception, match="SingularError: hinge 'bob'"):
        jax.block_until_ready(jax.jit(lambda q: kj.forward_dynamics(massless, q, q, q))(np.zeros(1)))


def test_large_batches_are_shared_by_threads(rng, monkeypatch):
    from kfdyn.sweeps import thread_pool

    asked, own = [], Operation.__call__
    monkeypatch.setattr(foreign_calls, "_SHARED", 64)
    monkeypatch.setattr(thread_pool, "threads", lambda: 2)
    monkeypatch.setattr(Operation, "__call__", lambda op, *given: asked.append(op.name) or own(op, *given))
    system = kf.models.stanford_arm()
    small, large = states(system, rng, 10), states(system, rng, 11)
    f = jax.jit(lambda *x: kj.forward_dynamics(system, *x))
    np.testing.assert_array_equal(f(*small), kf.forward_dynamics(system, *small))
    assert asked == []
    np.testing.assert_array_equal(f(*large), kf.forward_dynamics(system, *large))
    assert asked == ["forward_dynamics"]
    g = jax.jit(jax.vmap(jax.jacrev(lambda *x: kj.inverse_dynamics(system, *x), (0, 1, 2))))
    for x, y in zip(g(*large), kf.inverse_dynamics_derivatives(system, *large), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13, atol=1e-13)
    assert set(asked[1:]) == {"derivatives_of_inverse_dynamics"}


def test_names_are_of_this_process():
    """A program kept on disk must not be taken for one of a process in which other addresses hold."""
    system = kf.models.stanford_arm()
    text = jax.jit(lambda q: kj.mass_matrix(system, q)).lower(np.zeros(6)).as_text()
    assert f"kfdyn_{foreign_calls._process}_" in text and len(foreign_calls._process) == 16


def test_what_no_compiled_code_serves_is_left_to_python():
    assert parts_of(Operation("transport", kf.models.pendulum())) == ()
    assert len(parts_of(Operation("derivatives_of_inverse_dynamics", kf.models.pendulum()))) == 2
