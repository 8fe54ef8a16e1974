"""The same in PyTorch: beside its own autograd of a pendulum written out, its gradcheck, and all transformations."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError

torch = pytest.importorskip("torch", reason="PyTorch is not among the test tools")
kt = pytest.importorskip("kfdyn.bridge.torch")
func = torch.func
# What torch warns of when it looks up formulas of its own.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")

TREES = {
    "turning": kf.models.random_tree(3, seed=3, hinges=["free", "ball", "revolute"]),
    "screws": kf.models.random_tree(4, seed=4, hinges=["universal", "helical", "planar", "gimbal"]),
}


def state(system, rng, *lead):
    q = np.array([system.random_configuration(rng) for _ in range(int(np.prod(lead, dtype=int)))])
    arrays = q.reshape(*lead, system.nq), rng.normal(size=(*lead, system.nv)), rng.normal(size=(*lead, system.nv))
    return [torch.from_numpy(x) for x in arrays]


def close(x, y, rtol=1e-12):
    y = torch.as_tensor(y)
    assert x.shape == y.shape
    assert float((x - y).abs().max()) <= rtol * max(1.0, float(y.abs().max()))


def written_out(q, v, tau, g=9.81):
    """Accelerations of two points of 1 kg on rods of 1 m, absolute angles q₁, q₁ + q₂ from below."""
    s, c = torch.sin(q[1]), torch.cos(q[1])
    M = torch.stack([torch.stack([3 + 2 * c, 1 + c]), torch.stack([1 + c, torch.ones(())])])
    turning = torch.stack([-s * (2 * v[0] * v[1] + v[1] ** 2), s * v[0] ** 2])
    weight = g * torch.stack([2 * torch.sin(q[0]) + torch.sin(q[0] + q[1]), torch.sin(q[0] + q[1])])
    return torch.linalg.solve(M, tau - turning - weight)


def test_a_double_pendulum_beside_torch_s_own_derivatives(rng):
    arm = kf.models.double_pendulum()
    at = state(arm, rng)
    close(kt.forward_dynamics(arm, *at), written_out(*at))
    for way in (func.jacrev, func.jacfwd):
        ours = way(lambda *x: kt.forward_dynamics(arm, *x), (0, 1, 2))(*at)
        for x, y in zip(ours, func.jacrev(written_out, (0, 1, 2))(*at)):
            close(x, y)


@pytest.mark.parametrize("name", TREES)
def test_derivatives_are_kfdyn_s_own(name, rng):
    system = TREES[name]
    q, v, u = state(system, rng)
    for ours, theirs in (
        (kt.forward_dynamics, kf.forward_dynamics_derivatives),
        (kt.inverse_dynamics, kf.inverse_dynamics_derivatives),
    ):
        by_q, by_v, by_u = func.jacrev(lambda *x, f=ours: f(system, *x), (0, 1, 2))(q, v, u)
        wanted = theirs(system, q.numpy(), v.numpy(), u.numpy())
        for x, y in zip((kt.tangent_gradient(system, q, by_q), by_v, by_u), wanted):
            close(x, y)
        ahead = func.jacfwd(lambda *x, f=ours: f(system, *x), (0, 1, 2))(q, v, u)
        for x, y in zip(ahead, (by_q, by_v, by_u)):
            close(x, y)


@pytest.mark.parametrize("name", TREES)
def test_gradcheck(name, rng):
    """All functions, backward, forward and in batches; quaternions stay unit, since integrate moves them."""
    system = TREES[name]
    q, v, u = state(system, rng)
    d, frame = 0.1 * torch.ones(system.nv, dtype=torch.float64), system.body_names[-1]

    def moved(d):
        return kt.integrate(system, q, d)

    for f, n in (
        (lambda d, v, u: kt.forward_dynamics(system, moved(d), v, u), 3),
        (lambda d, v, u: kt.inverse_dynamics(system, moved(d), v, u), 3),
        (lambda d: kt.mass_matrix(system, moved(d)), 1),
        (lambda d: kt.mass_matrix_inverse(system, moved(d)), 1),
        (lambda d: kt.mass_matrix_logdet(system, moved(d)), 1),
        (lambda d: kt.jacobian(system, moved(d), frame), 1),
        (lambda d: tuple(kt.frame_pose(system, moved(d), frame)), 1),
        (lambda d, v: kt.frame_velocity(system, moved(d), v, frame), 2),
        (lambda d, v: kt.kinetic_energy(system, moved(d), v), 2),
        (lambda d: kt.potential_energy(system, moved(d)), 1),
        (lambda d, v, u: kt.step(system, moved(d), v, u, 0.02), 3),
        (lambda d, v, u: kt.rollout(system, moved(d), v, torch.stack([u, v, u]), 0.02), 3),
    ):
        given = [x.clone().requires_grad_() for x in (d, v, u)[:n]]
        assert torch.autograd.gradcheck(f, given, atol=1e-6, rtol=1e-5, check_forward_ad=True)


def test_batches_and_maps(rng):
    system = TREES["turning"]
    q, v, u = state(system, rng, 4)

    def f(q, v, u):
        return torch.sin(kt.forward_dynamics(system, q, v, u)).sum()

    by_q = func.vmap(func.grad(f))(q, v, u)
    leaf = q.clone().requires_grad_()
    f(leaf, v, u).backward()
    close(leaf.grad, by_q)
    close(torch.stack([func.grad(f)(*x) for x in zip(q, v, u)]), by_q)
    one = func.vmap(lambda v: kt.forward_dynamics(system, q[0], v, u[0]))(v)
    close(one, kf.forward_dynamics(system, q[0].numpy(), v.numpy(), u[0].numpy()), 0.0)
    spread = kt.forward_dynamics(system, q[:, None], v, u[0])
    close(spread, kf.forward_dynamics(system, q.numpy()[:, None], v.numpy(), u[0].numpy()), 0.0)
    tau = torch.stack([u, v, -u])
    mapped = func.vmap(lambda q, v, tau: kt.rollout(system, q, v, tau, 0.02), (0, 0, 1), 1)(q, v, tau)
    for x, y in zip(mapped, kt.rollout(system, q, v, tau, 0.02)):
        close(x, y)
    with torch.no_grad():
        close(kt.forward_dynamics(system, leaf, v, u), kf.forward_dynamics(system, q.numpy(), v.numpy(), u.numpy()), 0)


def test_dual_numbers_keep_their_tangents(rng):
    arm = kf.models.double_pendulum()
    q, v, u = state(arm, rng)
    with torch.autograd.forward_ad.dual_level():
        a = kt.forward_dynamics(arm, torch.autograd.forward_ad.make_dual(q, v), v, u)
        moved = torch.autograd.forward_ad.unpack_dual(a).tangent
    close(moved, kf.forward_dynamics_derivatives(arm, q, v, u).da_dq @ v.numpy())


def test_a_rollout_is_a_simulation(rng):
    system = TREES["turning"]
    q, v, _ = (x.numpy() for x in state(system, rng))
    tau, t = rng.normal(size=(5, system.nv)), 0.02 * np.arange(6)
    law = kf.LinearFeedback(system, t=t[:-1], tau=tau, held=True)
    motion = kf.simulate(system, q, v, t, law, method="euler")
    states = kt.rollout(system, torch.from_numpy(q), torch.from_numpy(v), torch.from_numpy(tau), 0.02)
    close(states[0], motion.q)
    close(states[1], motion.v)


def test_likelihoods_and_smoothed_means(rng):
    F, one = np.array([[1.0, 0.1], [0.0, 0.95]]), np.eye(1)
    ss = kf.StateSpace.chain(F, [[1.0, 0.0]], 0.1 * np.eye(2), 0.3 * one, [0.5, 0.0], np.eye(2), steps=6)
    y = torch.from_numpy(rng.normal(size=(2, 6)))
    y[1, 2] = np.nan
    Q = torch.from_numpy(np.stack(list(ss.Q))).requires_grad_()
    kt.log_likelihood(ss, y[0], Q=Q).backward()
    close(Q.grad, kf.score(ss, y[0].numpy()).Q.packed().stacked())

    def f(r, y):
        return kt.log_likelihood(ss, y, R=torch.exp(r) * torch.ones(6, 1, 1, dtype=torch.float64))

    r = torch.tensor([-1.0, 0.5], dtype=torch.float64)
    both = func.vmap(func.grad(f))(r, y)
    close(both, torch.stack([func.grad(f)(*x) for x in zip(r, y)]))
    assert torch.autograd.gradcheck(lambda r: f(r, y[1]), [r[0].clone().requires_grad_()], check_forward_ad=True)
    close(kt.smoothed_means(ss, y), kf.smooth_batch(ss, y.numpy()).x.flat)
    ahead, back = (func.vmap(way(lambda y: kt.smoothed_means(ss, y)))(y) for way in (func.jacfwd, func.jacrev))
    close(ahead, back)
    base = kf.smooth_batch(ss, np.zeros((7, 6)) + np.vstack([np.zeros(6), np.eye(6)])).x.flat
    close(back[0], (base[1:] - base[0]).T)
    assert float(back[1][:, 2].abs().max()) == 0.0


def test_second_derivatives_where_there_are_some(rng):
    arm = kf.models.double_pendulum()
    q, v, u = state(arm, rng)
    close(
        func.hessian(lambda q: kt.potential_energy(arm, q))(q),
        kf.inverse_dynamics_derivatives(arm, q, None, np.zeros(2)).dtau_dq,
    )
    with pytest.raises(ModelError, match="second derivatives of forward_dynamics, and the bridge has first ones"):
        func.hessian(lambda q: kt.forward_dynamics(arm, q, v, u).sum())(q)


def test_memory_and_kinds_of_numbers(rng):
    arm = kf.models.double_pendulum()
    q, v, u = state(arm, rng)
    a = kt.forward_dynamics(arm, *(x.float() for x in (q, v, u)))
    assert a.dtype == torch.float32
    np.testing.assert_allclose(a, kf.forward_dynamics(arm, q, v, u), rtol=1e-5)
    assert kt.mass_matrix(arm, [0.0, 0.0]).dtype == torch.get_default_dtype()
    with pytest.raises(ShapeError, match=r"q must have shape \(..., 2\), got \(3,\)"):
        kt.mass_matrix(arm, torch.zeros(3))
    with pytest.raises(ModelError, match="q is on meta, and kfdyn computes on the CPU"):
        kt.mass_matrix(arm, torch.zeros(2, device="meta"))
    with pytest.raises(ModelError, match="tau has entries that are not finite"):
        kt.forward_dynamics(arm, q, v, u * np.nan)


def test_functions_of_numbers_name_the_bridge():
    arm = kf.models.double_pendulum()
    q = torch.ones(2, dtype=torch.float64)
    for traced in (
        lambda: kf.mass_matrix(arm, q.clone().requires_grad_()),
        lambda: func.grad(lambda x: kf.kinetic_energy(arm, x, x).sum())(q),
    ):
        with pytest.raises(ShapeError, match=r"traced or differentiated by torch.*kfdyn\.bridge\.torch"):
            traced()
