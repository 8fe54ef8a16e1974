"""R86 section 10, (10.1)-(10.31) one by one, against filter, smoother, dense inverse; and its errata."""

import numpy as np
import pytest
from r86_cases import arm_case, close

import kfdyn as kf
from kfdyn.dynamics import Responses
from kfdyn.textbook import r86

SEEDS = range(3)


@pytest.fixture(params=SEEDS)
def case(request):
    return arm_case(request.param)


@pytest.fixture
def form(case):
    return r86.ClosedForm(case.chain, case.tau[::-1])


def test_predicted_forces_and_residuals(case, form):
    """R86:10.4-10.5, R86:10.6,10.13, R86:10.7,10.15. z⁻ and e⁺ as sums of equivalent inputs through ψ(k⁻, i⁺)."""
    for k in range(1, case.chain.N + 1):
        close(form.predicted_10_4(k), form.filtered.z_minus[k])
        close([form.residual_10_5(k)], form.filtered.e_plus[k])
        close(form.updated_10_9(k, form.filtered.z_minus[k]), form.filtered.z_plus[k])


def test_transition_matrices_of_the_filter(case, form):
    """R86:10.6,10.13. ψ of three kinds: each step closes the loop, and the kinds differ by one factor at an end."""
    N = case.chain.N
    E_psi = np.zeros((6 * N, 6 * N))  # ψ⁻⁻ is the resolvent of φ(1 − GH)
    for k in range(2, N + 1):
        E_psi[6 * (k - 1) : 6 * k, 6 * (k - 2) : 6 * (k - 1)] = case.chain.phi[k] @ form.closed(k - 1)
    psi = np.linalg.inv(np.eye(6 * N) - E_psi)
    for k in range(1, N + 1):
        for i in range(1, k + 1):
            block = psi[6 * (k - 1) : 6 * k, 6 * (i - 1) : 6 * i]
            close(form.psi_minus_minus_10_21(k, i), block)
            if i < k:
                close(form.psi_10_6(k, i) @ form.closed(i), block)
                close(form.psi_plus_plus_10_13(k, i), form.closed(k) @ form.psi_10_6(k, i))
                close(case.chain.phi[k] @ form.psi_plus_plus_10_13(k - 1, i), form.psi_10_6(k, i))


def test_closed_loop_recursion(case, form):
    """R86:10.10-10.12. z⁺ by the closed loop and as a sum."""
    for k in range(1, case.chain.N + 1):
        close(form.updated_10_10(k, form.filtered.z_plus[k - 1]), form.filtered.z_plus[k])
        close(form.updated_10_12(k), form.filtered.z_plus[k])


def test_costates_and_accelerations_from_residuals(case, form):
    """R86:10.7,10.15, R86:10.14,10.20, R86:10.22, (10.23)-(10.25). Co-states through ψ*, accelerations."""
    smoothed = r86.smoother_8(case.chain, form.filtered)
    lam = [*smoothed.lam_minus, np.zeros(6)]
    theirs = kf.forward_dynamics(case.system, case.q, case.v, case.tau)[::-1]
    scale = np.abs(theirs).max()
    for k in range(1, case.chain.N + 1):
        close(form.co_state_10_20(k), lam[k])
        if k < case.chain.N:
            close(form.co_state_plus_10_14(k), smoothed.lam_plus[k])
            close(form.co_state_plus_10_25(k), smoothed.lam_plus[k])
            close(form.co_state_10_18(k, lam[k + 1]), lam[k])
        assert abs(form.acceleration_10_22(k) - theirs[k - 1]) < 1e-10 * scale
        assert abs(form.acceleration_10_23(k) - theirs[k - 1]) < 1e-10 * scale


def test_costate_covariance_as_a_sum(case, form):
    """R86:10.29-10.31. Λ⁺ as a sum with D_i⁻¹ is the recursion's; with D_k⁻¹ as printed it is not."""
    cov = kf.riccati(kf.as_estimation(case.system, case.q))
    for k in range(1, case.chain.N):
        close(form.Lambda_plus_10_29(k), form.Lambda_plus[k])
        X = np.kron(np.eye(2), kf.frame_pose(case.system, case.q, case.system.body_names[case.chain.N - k]).rotation)
        close(X @ form.Lambda_minus[k] @ X.T, cov.smoothed.Lambda[case.chain.N - k])
    printed = form.Lambda_plus_10_29(1, as_printed=True)
    assert np.abs(printed - form.Lambda_plus[1]).max() > 1e-3 * np.abs(form.Lambda_plus[1]).max()


def test_order_of_the_double_sum(case, form):
    """R86 (10.27)-(10.28): sums in the other order; the limits as printed do not give the same."""
    N = case.chain.N
    for k in range(1, N):
        both = [(i, j) for i in range(k + 1, N + 1) for j in range(1, i)]
        assert sorted((i, j) for j in range(1, N) for i in range(max(k + 1, j + 1), N + 1)) == both
        printed = [(i, j) for j in range(1, N) for i in range(max(k + 1, j + 1), N)]
        assert sorted(printed) != both
        left = form.double_sum_10_28_left(k)
        close(form.double_sum_10_28_right(k), left)
        wrong = form.double_sum_10_28_right(k, as_printed=True)
        assert np.abs(wrong - left).max() > 1e-3 * np.abs(left).max()


def test_accelerations_by_cause(case, form):
    """R86:10.1-10.3. α¹, α², α³ are the responses to τ, ξ, η, one by one, and c, d ψ G the elements of M⁻¹.

    So are the package's: its c(k), and its element by element. α² as printed is not.
    """
    N = case.chain.N
    M = r86.inertia_matrix_7_11(case.chain)
    still = [None] + [np.zeros(6)] * N
    only_xi = r86.bias_moments_7_11(case.chain._replace(eta=still))
    only_eta = r86.bias_moments_7_11(case.chain._replace(xi=still))
    every = range(1, N + 1)
    close([form.alpha1_10_2(k) for k in every], np.linalg.solve(M, case.tau[::-1]), 1e-9)
    close([form.alpha2_10_2(k) for k in every], -np.linalg.solve(M, only_xi), 1e-9)
    close([form.alpha3_10_2(k) for k in every], -np.linalg.solve(M, only_eta), 1e-9)
    theirs = kf.forward_dynamics(case.system, case.q, case.v, case.tau)[::-1]
    close([form.acceleration_10_1(k) for k in every], theirs)
    printed = np.array([form.alpha2_10_2(k, as_printed=True) for k in every])
    right = np.array([form.alpha2_10_2(k) for k in every])
    assert np.abs(printed - right).max() > 1e-3 * np.abs(right).max()
    inverse = np.linalg.inv(M)
    close([[form.inverse_element(k, i) for i in every] for k in every], inverse, 1e-9)
    close([form.c_10_3(k) for k in every], np.diag(inverse), 1e-9)
    responses = Responses(kf.riccati(kf.as_estimation(case.system, case.q)))
    close([responses.c(N - k)[0, 0] for k in every], np.diag(inverse), 1e-9)
    close(inverse[::-1, ::-1], kf.mass_matrix_inverse(case.system, case.q), 1e-9)
