"""Forward dynamics: the smoother against dense solves, against textbooks, and against inverse dynamics."""

import subprocess
import sys

import numpy as np
import pytest
from dense_dynamics import dense_bias, dense_mass_matrix, over, quick
from hypothesis import given
from multibody_cases import close, forest, phi, seeds, state

import kfdyn as kf
import kfdyn.multibody as mb
from kfdyn.dynamics import dynamics_filter, forward_dynamics, inverse_dynamics
from kfdyn.errors import KfdynError, ModelError, ShapeError, SingularError
from kfdyn.spatial import spatial_inertia


@quick
@given(seeds)
def test_dense_solve(seed):
    """R86:8.2-8.9, R86:8.10-8.13, SKO:fd-gather-scatter, SKO:fd-quadratic, R86:7.1. a = 𝓜⁻¹(tau − c), every hinge."""
    system, rng = forest(seed)
    q, v = state(system, rng)
    tau, force, g = rng.normal(size=system.nv), rng.normal(size=(system.n_bodies, 6)), rng.normal(size=3)
    expected = np.linalg.solve(dense_mass_matrix(system, q), tau - dense_bias(system, q, v, force, g))
    close(forward_dynamics(system, q, v, tau, force, g), expected)
    close(forward_dynamics(system, q, v, tau, force, g, method="mass_matrix"), expected)


@quick
@given(seeds)
def test_inverse_of_inverse_dynamics(seed):
    """R86:7-ID undoes forward dynamics, for a batch of states with forces and gravity of their own."""
    system, rng = forest(seed)
    q, v = state(system, rng, (2, 3))
    tau, force = rng.normal(size=(2, 3, system.nv)), rng.normal(size=(2, 3, system.n_bodies, 6))
    gravity = rng.normal(size=(3, 3))
    a = forward_dynamics(system, q, v, tau, force, gravity)
    close(inverse_dynamics(system, q, v, a, force, gravity), tau)


@quick
@given(seeds)
def test_operator_form(seed):
    """SKO:fd-operator. a = (1 − HψK)*D⁻¹[T − Hψ(KT + Pη + ξ)] − K*ψ*η, with ξ + Mφ*η written as Jain splits it."""
    system, rng = forest(seed)
    q, v = state(system, rng)
    tau = rng.normal(size=system.nv)
    ss = kf.dynamics.as_estimation(system, q, v)
    op = kf.Operators(ss)
    D_inverse = op.block_diagonal(kf.Covariances(ss).nu.diagonal)
    eps = tau - op.H @ (op.psi @ (op.K @ tau + ss.xi + op.E_phi @ (op.P_plus @ ss.eta)))
    nu = D_inverse @ eps
    # η reaches hinge k itself through G* and the outboard ones through ψ*
    a = op.factor_inverse.H @ nu - op.G.H @ ss.eta - op.K.H @ (op.psi.H @ (op.proj_bar.H @ ss.eta))
    close(a, forward_dynamics(system, q, v, tau))


@quick
@given(seeds)
def test_recursions_as_printed(seed):
    """R86:8.2-8.9, R86:8.10-8.13. A serial arm without rotors, the report's loops line by line (errata corrected)."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    system = mb.models.random_tree(n, seed, ("revolute", "prismatic", "helical"), branching=0.0, armature=False)
    q, v = state(system, rng)
    tau = rng.normal(size=n)
    terms = mb.link_terms(system, q, v)
    filt, smooth = dynamics_filter(system, q, v, tau)
    z, P, steps = np.zeros(6), np.zeros((6, 6)), {}  # (8.2)
    for k in reversed(range(n)):  # the report counts from the tip; body n - 1 is the tip
        Phi = phi(terms.l[k + 1]) if k + 1 < n else np.eye(6)
        H, eta = terms.H[k : k + 1], terms.eta[k]
        z = Phi @ z + terms.xi[k]  # (8.3)
        P = Phi @ P @ Phi.T + terms.inertia[k]  # (8.4)
        D = H @ P @ H.T
        G = P @ H.T @ np.linalg.inv(D)  # (8.5)
        e = tau[k : k + 1] - H @ z  # (8.6)
        close(filt.z[k], z)
        close(filt.P[k], P)
        close(filt.D[k], D)
        close(filt.G[k], G)
        close(filt.eps[k], e[0])
        P = P - P @ H.T @ np.linalg.inv(D) @ H @ P  # (8.9)
        z = z + G @ e + P @ eta  # (8.7)
        steps[k] = Phi, H, G, np.linalg.solve(D, e), eta  # (8.8)
        close(filt.P_plus[k], P)
        close(filt.z_plus[k], z)
    costate = np.zeros(6)  # (8.10)
    for k in range(n):
        _, H, G, e_plus, eta = steps[k]
        costate = phi(terms.l[k]).T @ costate if k else costate  # (8.11)
        a = e_plus - G.T @ (costate + eta)  # (8.12)
        costate = costate + eta + H.T @ a  # (8.13)
        close(smooth.a[k], a[0])
        close(smooth.costate[k], costate)


def double_pendulum(m1, m2, l1, l2, g, q, v, tau):
    """Textbook equations in absolute angles θ1 = q1, θ2 = q1 + q2; tau works on the relative angles."""
    t1, t2 = q[0], q[0] + q[1]
    w1, w2 = v[0], v[0] + v[1]
    A = np.array([[(m1 + m2) * l1**2, m2 * l1 * l2 * np.cos(t1 - t2)], [m2 * l1 * l2 * np.cos(t1 - t2), m2 * l2**2]])
    b = np.array(
        [
            tau[0] - tau[1] - m2 * l1 * l2 * w2**2 * np.sin(t1 - t2) - (m1 + m2) * g * l1 * np.sin(t1),
            tau[1] + m2 * l1 * l2 * w1**2 * np.sin(t1 - t2) - m2 * g * l2 * np.sin(t2),
        ]
    )
    first, second = np.linalg.solve(A, b)
    return np.array([first, second - first])


@quick
@given(seeds)
def test_double_pendulum(seed):
    rng = np.random.default_rng(seed)
    m1, m2, l1, l2 = rng.uniform(0.5, 2, 4)
    q, v, tau = rng.normal(size=(3, 2))
    system = kf.models.double_pendulum((m1, m2), (l1, l2))
    close(forward_dynamics(system, q, v, tau), double_pendulum(m1, m2, l1, l2, 9.81, q, v, tau))


@quick
@given(seeds)
def test_free_body(seed):
    """ATBI:free. A 6-dof hinge has P⁺ = 0: Euler's equations, and no force passes to the world."""
    rng = np.random.default_rng(seed)
    m, J = rng.uniform(0.5, 2), np.diag(rng.uniform(1.0, 1.5, 3))
    body = mb.Body("body", spatial_inertia(m, np.zeros(3), J), mb.Hinge.free())
    system = mb.System([body])
    q, v = state(system, rng)
    tau = rng.normal(size=6)
    filt, smooth = dynamics_filter(system, q, v, tau)
    close(filt.P_plus[0], np.zeros((6, 6)), tol=1e-12)
    close(filt.G[0] @ filt.ss.H[0], np.eye(6), tol=1e-12)
    omega, u = v[:3], v[3:]
    down = mb.frame_pose(system, q, "body").rotation.T @ system.gravity
    expected = np.r_[np.linalg.solve(J, tau[:3] - np.cross(omega, J @ omega)), tau[3:] / m + down - np.cross(omega, u)]
    close(smooth.a, expected)


@pytest.mark.parametrize("batch", [(), (3,), (2, 3), (0,), (2, 0, 3)])
@pytest.mark.parametrize("method", ["filter", "mass_matrix"])
def test_batches(batch, method):
    system, rng = forest(11, n=8)
    q, v = (
        state(system, rng, batch) if 0 not in batch else (np.empty((*batch, system.nq)), np.empty((*batch, system.nv)))
    )
    tau = rng.normal(size=(*batch, system.nv))
    a = forward_dynamics(system, q, v, tau, method=method)
    assert a.shape == (*batch, system.nv)
    if a.size:
        close(a, over(batch, lambda *one: forward_dynamics(system, *one, method=method), q, v, tau), tol=1e-13)


def test_broadcasting():
    """Each argument may have leading axes of its own."""
    system, rng = forest(12, n=5)
    q, _ = state(system, rng, (3, 1))
    v, tau = rng.normal(size=(4, system.nv)), rng.normal(size=system.nv)
    gravity, force = rng.normal(size=(2, 1, 1, 3)), rng.normal(size=(system.n_bodies, 6))
    a = forward_dynamics(system, q, v, tau, force, gravity)
    assert a.shape == (2, 3, 4, system.nv)
    for i, j, k in np.ndindex(2, 3, 4):
        close(a[i, j, k], forward_dynamics(system, q[j, 0], v[k], tau, force, gravity[i, 0, 0]), tol=1e-13)


def test_at_rest_by_default():
    system, rng = forest(3, n=4)
    q, _ = state(system, rng)
    tau = rng.normal(size=system.nv)
    np.testing.assert_array_equal(
        forward_dynamics(system, q, None, tau), forward_dynamics(system, q, np.zeros(system.nv), tau)
    )


def test_parts_and_threads_change_nothing(monkeypatch):
    """More configurations than fit in one part, shared by threads or not, give the same bits."""
    system, rng = forest(5, n=7)
    q = np.tile(state(system, rng, (60,))[0], (50, 1))
    v, tau = rng.normal(size=(2, 3000, system.nv))
    monkeypatch.setenv("KFDYN_NUM_THREADS", "1")
    alone = forward_dynamics(system, q, v, tau)
    monkeypatch.setenv("KFDYN_NUM_THREADS", "3")
    np.testing.assert_array_equal(forward_dynamics(system, q, v, tau), alone)
    np.testing.assert_array_equal(forward_dynamics(system, q[2433], v[2433], tau[2433]), alone[2433])


@quick
@given(seeds)
def test_filter_in_hand(seed):
    """R86:8.1. What dynamics_filter hands out is mechanics: D seen by the hinge, accelerations, hinge forces."""
    system, rng = forest(seed)
    q, v = state(system, rng)
    tau = rng.normal(size=system.nv)
    filt, smooth = dynamics_filter(system, q, v, tau)
    a = smooth.a
    close(a, forward_dynamics(system, q, v, tau))
    name = system.body_names[-1]
    classical = mb.frame_acceleration(system, q, v, a, name)
    classical[3:] -= system.gravity
    close(smooth.costate[system.n_bodies - 1], classical)
    for k in range(system.n_bodies):
        own = system.v_slice(system.hinge_names[k])
        close(filt.ss.H[k] @ smooth.x[k] + system.armature[own] * a[own], tau[own])


def test_a_missing_measurement_locks_a_dof():
    """ATBI:locked. NaN in tau: the double pendulum falls as one bob, a rod of two masses."""
    _, smooth = dynamics_filter(kf.models.double_pendulum(), [0.5 * np.pi, 0.0], None, [0.0, np.nan])
    close(smooth.a, [-9.81 * (1 + 2) / (1 + 4), 0.0])


def test_dead_weights_are_allowed():
    """Mass-less bodies do no harm where something outboard has mass, or the hinge a rotor."""
    bob = spatial_inertia(1.0, [0, 0, -1], np.zeros((3, 3)))
    nothing = np.zeros((6, 6))
    y = mb.Hinge.revolute([0, 1, 0])
    x = mb.Hinge.revolute([1, 0, 0])
    gimbal = mb.System([mb.Body("ring", nothing, y), mb.Body("bob", bob, x, "ring")])
    close(forward_dynamics(gimbal, [0.3, 0.0], None, [0.0, 0.0]), [-9.81 * np.sin(0.3), 0.0])
    rotor = mb.System([mb.Body("rotor", nothing, y, armature=0.5)])
    close(forward_dynamics(rotor, [0.0], None, [1.0]), [2.0])


class TestRefusals:
    wrist = mb.System(
        [
            mb.Body("arm", spatial_inertia(1.0, [0, 0, -1], np.eye(3)), mb.Hinge.revolute([0, 1, 0])),
            mb.Body("tool", np.zeros((6, 6)), mb.Hinge.revolute([0, 0, 1]), "arm", hinge_name="wrist_3"),
        ]
    )

    def test_nothing_outboard_has_mass(self):
        with pytest.raises(
            SingularError, match=r"hinge 'wrist_3': nothing outboard of it has mass.*armature"
        ) as caught:
            forward_dynamics(self.wrist, [0.0, 0.0], None, [0.0, 0.0])
        assert (caught.value.node, caught.value.output) == (1, 0)
        with pytest.raises(SingularError, match=r"hinge 'wrist_3': nothing outboard of it has mass"):
            dynamics_filter(self.wrist, [0.0, 0.0], None, [0.0, 0.0])
        with pytest.raises(SingularError, match="singular"):
            forward_dynamics(self.wrist, [0.0, 0.0], None, [0.0, 0.0], method="mass_matrix")

    def test_lock_of_one_configuration_in_a_batch(self):
        """A point mass hanging straight down has no inertia about the vertical: only there, and it is said where."""
        bob = spatial_inertia(1.0, [0, 0, -1], np.zeros((3, 3)))
        turn = mb.Body("turntable", np.zeros((6, 6)), mb.Hinge.revolute([0, 0, 1]))
        system = mb.System([turn, mb.Body("bob", bob, mb.Hinge.revolute([0, 1, 0]), "turntable")])
        q = np.tile([0.2, 0.5], (2, 3, 1))
        assert np.isfinite(forward_dynamics(system, q, None, np.zeros(2))).all()
        q[1, 2, 1] = 0.0
        with pytest.raises(
            SingularError, match=r"hinge 'turntable' \(at q\[1, 2\]\): it moves no inertia.*gimbal lock"
        ):
            forward_dynamics(system, q, None, np.zeros(2))

    def test_a_dof_of_several(self):
        bob = spatial_inertia(1.0, [0, 0, -1], np.zeros((3, 3)))
        system = mb.System([mb.Body("bob", bob, mb.Hinge.ball())])
        with pytest.raises(SingularError, match="hinge 'bob', dof 2"):
            forward_dynamics(system, system.neutral(), None, np.zeros(3))

    @pytest.mark.parametrize("name", ["q", "v", "tau"])
    def test_shapes_and_numbers(self, name):
        system = kf.models.puma560()
        given = dict.fromkeys(("q", "v", "tau"), np.zeros(6))
        with pytest.raises(ShapeError, match=rf"^{name} must have shape \(\.\.\., 6\)"):
            forward_dynamics(system, **{**given, name: np.zeros(5)})
        with pytest.raises(ModelError, match=f"^{name} has entries that are not finite"):
            forward_dynamics(system, **{**given, name: np.full(6, np.nan)})
        with pytest.raises(ShapeError, match=f"{name} must be an array of real numbers"):
            forward_dynamics(system, **{**given, name: "torque"})

    def test_filter_in_hand(self):
        with pytest.raises(ShapeError, match=r"tau must have shape \(\.\.\., 1\)"):
            dynamics_filter(kf.models.pendulum(), [0.0], None, [0.0, 0.0])
        with pytest.raises(ShapeError, match="tau must be an array of real numbers"):
            dynamics_filter(kf.models.pendulum(), [0.0], None, "torque")

    def test_leading_axes(self):
        system = kf.models.puma560()
        with pytest.raises(ShapeError, match=r"do not broadcast.*q \(2,\).*tau \(3,\)"):
            forward_dynamics(system, np.zeros((2, 6)), None, np.zeros((3, 6)))

    def test_method(self):
        with pytest.raises(KfdynError, match="method must be 'filter', 'engine' or 'mass_matrix', not 'aba'"):
            forward_dynamics(kf.models.pendulum(), [0.0], None, [0.0], method="aba")


def test_forward_dynamics_waits_for_nothing_that_it_does_not_need():
    code = (
        "import sys, numpy as np, kfdyn as kf; arm = kf.models.puma560(); kf.forward_dynamics(arm, *np.zeros((3, 6)));"
        "sys.exit(', '.join({'scipy', 'kfdyn.dynamics.sensors', 'kfdyn.dynamics.loops'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
