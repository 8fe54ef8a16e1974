"""Accelerations by cause, elements of the inverse, and the closed-loop forms of R86 section 10."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_models import cases, close, fast, few, random_case, seeds
from theory_cases import motion, pinocchio_accelerations, with_inputs

import kfdyn as kf
from kfdyn.dynamics import as_estimation, forward_dynamics
from kfdyn.dynamics.theory.causes import Responses, acceleration_causes, causes_of_outputs, inverse_element
from kfdyn.errors import ModelError, ShapeError, SingularError
from kfdyn.estimation.dense import dense_filter


@given(cases(missing=True))
@fast
def test_causes_of_any_model(case):
    """R86:10.1-10.3. 𝓜⁻¹T, −𝓜⁻¹Hφξ, −𝓜⁻¹HφQφ*η by dense algebra; missing outputs do not accelerate."""
    dense, seen = case.dense(), ~np.isnan(case.T)
    H = dense.H[seen]
    inverse = np.linalg.inv(dense.output_cov[np.ix_(seen, seen)])
    expected = np.zeros((3, case.T.size))
    expected[0, seen] = inverse @ case.T[seen]
    expected[1, seen] = -inverse @ H @ dense.phi @ case.xi
    expected[2, seen] = -inverse @ H @ dense.phi @ dense.Q @ dense.phi.T @ case.eta
    causes = causes_of_outputs(with_inputs(case), case.T)
    for mine, theirs in zip(causes, expected):
        close(mine, theirs)
    ss = with_inputs(case)
    close(causes.total, kf.bryson_frazier(ss, kf.kalman_filter(ss, case.T), covariances=False).a)


@given(seeds)
@few
def test_causes_of_robots(seed):
    """R86:10.1-10.3. Pinocchio: the sum is its aba, and each part is its aba with the other causes taken away."""
    system, q, v, tau, forces = motion(seed)
    rest, none = np.zeros(system.nv), np.zeros((system.n_bodies, 6))
    floating = kf.System(system.bodies, gravity=(0, 0, 0))
    causes = acceleration_causes(system, q, v, tau, forces)
    scale = max(1.0, *(np.abs(part).max(initial=0.0) for part in causes))
    close(causes.total / scale, pinocchio_accelerations(system, q, v, tau, forces) / scale)
    close(causes.moments / scale, pinocchio_accelerations(floating, q, rest, tau, none) / scale)
    still = acceleration_causes(system, q, None, tau, forces)
    close(still.bias_forces / scale, pinocchio_accelerations(floating, q, rest, rest, forces) / scale)
    close(still.bias_accelerations / scale, pinocchio_accelerations(system, q, rest, rest, none) / scale)


def test_causes_broadcast_like_forward_dynamics():
    system, _, v, _, forces = motion(3, n=6)
    rng = np.random.default_rng(0)
    many_q = np.stack([system.random_configuration(rng) for _ in range(3)])[:, None]
    many_tau = rng.normal(size=(4, system.nv))
    causes = acceleration_causes(system, many_q, v, many_tau, forces, gravity=(1.0, 2.0, 3.0))
    assert causes.moments.shape == (3, 4, system.nv)
    close(causes.total, forward_dynamics(system, many_q, v, many_tau, forces, gravity=(1.0, 2.0, 3.0)))
    one = acceleration_causes(system, many_q[2, 0], v, many_tau[1], forces, gravity=(1.0, 2.0, 3.0))
    for whole, part in zip(causes, one):
        close(whole[2, 1], part)


@given(cases(missing=True))
@fast
def test_responses_on_forests(case):
    """R86:10.1-10.3 with branches: every block of 𝓜⁻¹, −𝓜⁻¹Hφ and −𝓜⁻¹HφQφ* by its closed form."""
    dense, seen = case.dense(), ~np.isnan(case.T)
    inverse = np.zeros_like(dense.output_cov)
    inverse[np.ix_(seen, seen)] = np.linalg.inv(dense.output_cov[np.ix_(seen, seen)])
    force = -inverse @ dense.H @ dense.phi
    acceleration = force @ dense.Q @ dense.phi.T
    responses = Responses(kf.riccati(case.ss, seen))
    for k, T_k in enumerate(dense.outputs):
        for i, (T_i, x_i) in enumerate(zip(dense.outputs, dense.states)):
            close(responses.to_moment(k, i), inverse[T_k, T_i])
            close(responses.to_bias_force(k, i), force[T_k, x_i])
            close(responses.to_bias_acceleration(k, i), acceleration[T_k, x_i])


@given(cases(missing=True))
@fast
def test_elements_of_the_inverse(case):
    """R86:10.1-10.3. Element by element, against a dense inverse; the same as the covariance of a."""
    dense, seen = case.dense(), ~np.isnan(case.T)
    expected = np.zeros_like(dense.output_cov)
    expected[np.ix_(seen, seen)] = np.linalg.inv(dense.output_cov[np.ix_(seen, seen)])
    cov = kf.riccati(case.ss, seen)
    for (i, j), element in np.ndenumerate(expected):
        close(inverse_element(cov, i, j), element)


@given(seeds)
@few
def test_elements_of_a_robots_inverse(seed):
    """R86:10.1-10.3. Columns of 𝓜⁻¹ are Pinocchio's accelerations under unit forces, weightless and at rest."""
    system, q, *_ = motion(seed)
    weightless = kf.System(system.bodies, gravity=(0, 0, 0))
    ss, rng = as_estimation(system, q), np.random.default_rng(seed)
    for j in rng.integers(0, system.nv, size=min(system.nv, 4)):
        column = pinocchio_accelerations(weightless, q, np.zeros(system.nv), np.eye(system.nv)[j])
        scale = max(1.0, np.abs(column).max())
        close([inverse_element(ss, i, int(j)) / scale for i in range(system.nv)], column / scale)


class Chain:
    """R86's chain with the filter's quantities from dense conditioning, so that no sweep is used twice."""

    def __init__(self, seed, N=6):
        case = random_case(seed, N, noise=bool(seed % 2), parent=[*range(1, N), -1])
        self.ss, self.N = with_inputs(case), N
        dense = dense_filter(case.dense(), case.T)
        self.P, self.P_plus, self.G, self.D = dense.P, dense.P_plus, dense.G, dense.D
        self.D_inverse = [np.linalg.inv(D) for D in dense.D]
        self.H, self.phi = list(case.ss.H), list(case.ss.phi)
        self.tau = list(case.ss.output_blocks(case.T))
        self.xi, self.eta = (list(case.ss.state_blocks(u)) for u in (case.xi, case.eta))
        self.filt = kf.kalman_filter(self.ss, case.T)
        self.smooth = kf.bryson_frazier(self.ss, self.filt)
        self.a = list(case.ss.output_blocks(self.smooth.a))

    def closed(self, k):
        return np.eye(len(self.P[k])) - self.G[k] @ self.H[k]

    def psi(self, k, i):
        """(10.6), (10.13): ψ(k⁻,i⁺), i outboard of k."""
        product = self.phi[i]
        for j in range(i + 1, k):
            product = self.phi[j] @ self.closed(j) @ product
        return product

    def Lambda_plus(self, k):
        """(10.29), with D_i⁻¹ for the printed D_k⁻¹."""
        total = np.zeros_like(self.P[k])
        for i in range(k + 1, self.N):
            arriving = self.H[i] @ self.psi(i, k)
            total = total + arriving.T @ self.D_inverse[i] @ arriving
        return total

    def xi_tilde(self, i):
        """(10.7)."""
        return self.closed(i) @ self.xi[i] + self.G[i] @ self.tau[i] + self.P_plus[i] @ self.eta[i]

    def eta_tilde(self, i):
        """(10.15)."""
        return self.closed(i).T @ self.eta[i] + self.H[i].T @ self.residual(i)

    def z(self, k):
        """(10.4)."""
        return self.xi[k] + sum(self.psi(k, i) @ self.xi_tilde(i) for i in range(k))

    def residual(self, k):
        """(10.5)."""
        return self.D_inverse[k] @ (self.tau[k] - self.H[k] @ self.z(k))


chains = st.builds(Chain, seeds)


@given(chains)
@few
def test_accelerations_by_cause_as_printed(chain):
    """R86:10.1-10.3. The three sums of (10.2), c and d of (10.3), with Λ_i⁻ for the printed Λ_i in α²."""
    causes = [chain.ss.output_blocks(part) for part in causes_of_outputs(chain.ss, chain.filt.T)]
    N, G, psi = chain.N, chain.G, chain.psi
    Lambda_plus = [chain.Lambda_plus(k) for k in range(N)]
    Lambda_minus = [
        chain.closed(k).T @ Lambda_plus[k] @ chain.closed(k) + chain.H[k].T @ chain.D_inverse[k] @ chain.H[k]
        for k in range(N)
    ]
    c = [chain.D_inverse[k] + G[k].T @ Lambda_plus[k] @ G[k] for k in range(N)]
    d = [G[k].T @ Lambda_plus[k] - c[k] @ chain.H[k] for k in range(N)]
    excess = [Lambda_plus[k] @ chain.P_plus[k] - np.eye(len(chain.P[k])) for k in range(N)]
    for k in range(N):
        inner = range(k + 1, N)
        moments = c[k] @ chain.tau[k]
        forces = d[k] @ chain.xi[k]
        accelerations = G[k].T @ excess[k] @ chain.eta[k]
        for i in range(k):
            moments = moments + d[k] @ psi(k, i) @ G[i] @ chain.tau[i]
            forces = forces + d[k] @ psi(k, i) @ chain.closed(i) @ chain.xi[i]
            accelerations = accelerations + d[k] @ psi(k, i) @ chain.P_plus[i] @ chain.eta[i]
        for i in inner:
            moments = moments + G[k].T @ psi(i, k).T @ d[i].T @ chain.tau[i]
            forces = forces + G[k].T @ psi(i, k).T @ Lambda_minus[i] @ chain.xi[i]
            accelerations = accelerations + G[k].T @ (chain.closed(i) @ psi(i, k)).T @ excess[i] @ chain.eta[i]
        for mine, theirs in zip((moments, forces, accelerations), causes):
            close(mine, theirs[k])
    responses = Responses(chain.filt.covariances)
    for k in range(N):
        close(responses.c(k), c[k])
        close(responses.d(k), d[k])


@given(chains)
@few
def test_predicted_forces_and_residuals(chain):
    """R86:10.4-10.5, R86:10.6,10.13, R86:10.7,10.15. Equivalent inputs through ψ(k⁻,i⁺) give z and ν."""
    for k in range(chain.N):
        close(chain.z(k), chain.filt.z[k])
        close(chain.residual(k), chain.ss.output_blocks(chain.filt.nu)[k])
        carried = Responses(chain.filt.covariances).psi(k, 0, np.eye(len(chain.P[0]))) if k else None
        if k:
            close(carried, chain.psi(k, 0))


@given(chains)
@few
def test_closed_loop_recursion(chain):
    """R86:10.10-10.12. z⁺(k) = τ̄(k) φ z⁺(k−1) + ξ̃(k), and its sum."""
    z_plus = chain.filt.z_plus
    for k in range(chain.N):
        before = chain.closed(k) @ chain.phi[k - 1] @ z_plus[k - 1] if k else 0.0
        close(before + chain.xi_tilde(k), z_plus[k])
        total = chain.xi_tilde(k) + sum(chain.closed(k) @ chain.psi(k, i) @ chain.xi_tilde(i) for i in range(k))
        close(total, z_plus[k])


@given(chains)
@few
def test_costates_and_accelerations_from_residuals(chain):
    """R86:10.14,10.20, R86:10.7,10.15, R86:10.22. Co-states through ψ*, and a from the residuals."""
    for k in range(chain.N):
        inner = range(k + 1, chain.N)
        above = sum((chain.psi(i, k).T @ chain.eta_tilde(i) for i in inner), np.zeros(len(chain.P[k])))
        close(above, chain.smooth.costate_plus[k])
        close(chain.closed(k).T @ above + chain.eta_tilde(k), chain.smooth.costate[k])
        a = chain.residual(k) - chain.G[k].T @ chain.eta[k] - chain.G[k].T @ above
        close(a, chain.a[k])


@given(chains)
@few
def test_costate_covariance_as_a_sum(chain):
    """R86:10.29-10.31. Λ⁺ as the sum (with D_i⁻¹) and by the recursion (10.30)-(10.31)."""
    responses = Responses(chain.filt.covariances)
    above = np.zeros_like(chain.P[-1])
    for k in range(chain.N - 1, -1, -1):
        close(chain.Lambda_plus(k), above)
        close(responses.Lambda_plus(k), above)
        Lambda = chain.closed(k).T @ above @ chain.closed(k) + chain.H[k].T @ chain.D_inverse[k] @ chain.H[k]
        close(chain.smooth.Lambda[k], Lambda)
        if k:
            above = chain.phi[k - 1].T @ Lambda @ chain.phi[k - 1]


def test_errors_name_the_culprit():
    arm = kf.models.double_pendulum()
    ss = as_estimation(arm, [0.1, 0.2])
    with pytest.raises(ShapeError, match="no output 2; the model has outputs 0 to 1"):
        inverse_element(ss, 2, 0)
    with pytest.raises(ShapeError, match="no output -1"):
        inverse_element(ss, 0, -1)
    with pytest.raises(ShapeError, match="tau"):
        acceleration_causes(arm, [0.1, 0.2], None, [1.0])
    with pytest.raises(ModelError, match="tau"):
        acceleration_causes(arm, [0.1, 0.2], None, [1.0, np.nan])
    with pytest.raises(ShapeError, match="T has shape"):
        causes_of_outputs(ss, [1.0])
    body = kf.Body("tool", np.zeros((6, 6)), kf.Hinge.revolute(), hinge_name="wrist")
    with pytest.raises(SingularError, match="wrist"):
        acceleration_causes(kf.System([body]), [0.0], None, [0.0])
