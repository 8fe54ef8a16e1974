"""The operator identities of THEORY section 4, SKO, ATBI and R86 sections 8 to 10, on ragged random forests.

Both sides of an identity are :class:`Operator` s. ``same`` compares their matrices, and their products with vectors and
adjoint products, which never form a matrix. D^-1 and the inverses of φ, ψ are dense: they are the oracle's side.
"""

import numpy as np
from hypothesis import example, given
from random_models import cases, close, fast, random_case

import kfdyn as kf
from kfdyn.estimation.operators.operator import Operator


def same(left, right, digits=10):
    matrix = right.dense() if isinstance(right, Operator) else right
    close(left.dense(), matrix, digits)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=left.shape[1]), rng.normal(size=left.shape[0])
    close(left @ x, right @ x, digits)
    adjoint = right.H @ y if isinstance(right, Operator) else right.T @ y
    close(left.H @ y, adjoint, digits)


def from_matrix(matrix):
    return Operator(matrix.shape, lambda x: x @ matrix.T, lambda y: y @ matrix)


def symbols(case, seen=None):
    """(op, I on states, I on outputs, D^-1) with D^-1 by dense inversion."""
    op = kf.Operators(case.ss if seen is None else kf.riccati(case.ss, seen))
    return op, op.state_identity, op.output_identity, from_matrix(np.linalg.inv(op.D.dense()))


def psi_between(ss, G, k, i):
    """ψ(k⁻, i⁺) = φ τ̄ φ … τ̄ φ from above hinge i to below hinge k, an ancestor: R86 (10.6), node by node."""
    path = ss.tree.path(k, i)
    out = ss.phi[path[0]]
    for j in path[1:-1]:
        out = ss.phi[j] @ (np.eye(ss.n[j]) - G[j] @ ss.H[j]) @ out
    return out


# --- the operators themselves


@given(cases())
@fast
def test_nilpotent_kernel_and_its_resolvent(case):
    """SKO:bwa. ℰ_φ has φ(p,k) and nothing else, a power of it vanishes, φ = 1 + ℰ + ℰ² + …, in any numbering."""
    ss, op = case.ss, kf.Operators(case.ss)
    at, E, phi = ss.arrays.state, op.E_phi.dense(), op.phi.dense()
    series = power = np.eye(ss.n_states)
    for _ in range(int(ss.tree.depth.max()) + 1):
        power = E @ power
        series = series + power
    assert not power.any()
    close(phi, series)
    for i in range(len(ss)):
        for j in range(len(ss)):
            block, edge = (A[at[i] : at[i + 1], at[j] : at[j + 1]] for A in (phi, E))
            if ss.tree.parent[j] == i:
                np.testing.assert_array_equal(edge, ss.phi[j])
            else:
                assert not edge.any()
            if i != j and i not in ss.tree.ancestors(j):
                assert not block.any()  # unrelated nodes, and inboard of outboard ones


@given(cases())
@fast
def test_strict_operators(case):
    """SKO:strict. φ̃ = φ − 1 = φℰ = ℰφ, and the same for ψ, each as its own sweep."""
    op, I, _, _ = symbols(case)
    for full, strict, E in ((op.phi, op.phi_strict, op.E_phi), (op.psi, op.psi_strict, op.E_psi)):
        same(strict, full - I)
        same(full @ E, strict)
        same(E @ full, strict)
        same(full @ (I - E), I)
        same((I - E) @ full, I)


@given(cases())
@fast
def test_model_and_output_covariance(case):
    """SKO:model, ATBI:estimation-map. x = φw, T = Hx; 𝓜 = HφQφ*H* + R, positive definite, zero between strangers."""
    op, _, _, _ = symbols(case)
    same(op.output_cov, op.H @ op.phi @ op.Q @ op.phi.H @ op.H.H + op.R)
    same(op.output_cov, case.dense().output_cov)
    ss, mass_matrix = case.ss, op.output_cov.dense()
    assert (np.linalg.eigvalsh(mass_matrix) > 0).all()
    at = ss.arrays.output
    for i in range(len(ss)):
        for j in range(len(ss)):
            if i != j and i not in ss.tree.ancestors(j) and j not in ss.tree.ancestors(i):
                assert not mass_matrix[at[i] : at[i + 1], at[j] : at[j + 1]].any()


# --- Riccati


@given(cases())
@example(random_case(7, 7, m=1))  # one output a node, as in R86: scalar divisions, other formulas of the engine
@example(random_case(8, 7, m=1, noise=False))
@fast
def test_riccati_operator_equation(case):
    """SKO:riccati-operator, ATBI:riccati. Q = P − ℰ_ψPℰ_φ* = P − ℰ_ψPℰ_ψ* − KRK*, any R."""
    op, _, _, _ = symbols(case)
    same(op.P - op.E_psi @ op.P @ op.E_phi.H, op.Q)
    same(op.P - op.E_psi @ op.P @ op.E_psi.H - op.K @ op.R @ op.K.H, op.Q)
    same(op.P - op.E_phi @ op.P_plus @ op.E_phi.H, op.Q)


@given(cases())
@fast
def test_riccati_quadratic_form(case):
    """SKO:riccati-quadratic. Q = P − ℰ_φ[P − PH*D^-1HP]ℰ_φ*."""
    op, _, _, D_inverse = symbols(case)
    inner = op.P - op.P @ op.H.H @ D_inverse @ op.H @ op.P
    same(op.P - op.E_phi @ inner @ op.E_phi.H, op.Q)
    same(op.P_plus, inner)


# --- local identities


@given(cases())
@fast
def test_gain_and_innovations_covariance(case):
    """ATBI:gain, SKO:identities-local. D = HPH* + R, G = PH*D^-1, HG = 1 − RD^-1, K = ℰ_φG, for any R."""
    op, _, I, D_inverse = symbols(case)
    same(op.D, op.H @ op.P @ op.H.H + op.R)
    same(op.G, op.P @ op.H.H @ D_inverse)
    same(op.H @ op.G, I - op.R @ D_inverse)
    same(op.K, op.E_phi @ op.G)
    same(op.proj, op.G @ op.H)


@given(cases(noise=False))
@fast
def test_local_identities_without_noise(case):
    """SKO:identities-local, ATBI:gain at R = 0. HG = 1, Hτ = H, Hτ̄ = 0, 1 + HφK = HφG."""
    op, I_n, I, _ = symbols(case)
    same(op.H @ op.G, I)
    same(op.H @ op.proj, op.H)
    same(op.H @ op.proj_bar, 0 * op.H)
    same(I + op.H @ op.phi @ op.K, op.H @ op.phi @ op.G)
    same(op.factor, op.H @ op.phi @ op.G)
    same(op.proj_bar, I_n - op.proj)


@given(cases(noise=False))
@fast
def test_projections_without_noise(case):
    """ATBI:projections, ATBI:projections-P, ATBI:crossing. Only at R = 0 are τ and τ̄ projections."""
    op, _, _, _ = symbols(case)
    tau, bar, P = op.proj, op.proj_bar, op.P
    same(tau @ tau, tau)
    same(bar @ bar, bar)
    same(tau @ bar, 0 * tau)
    same(tau @ op.G, op.G)
    same(bar @ op.G, 0 * op.G)
    same(bar.H @ op.H.H, 0 * op.H.H)
    same(tau @ P, P @ tau.H)
    same(tau @ P, tau @ P @ tau.H)
    same(bar @ P, P @ bar.H)
    same(bar @ P, bar @ P @ bar.H)
    same(op.P_plus, P @ bar.H)
    same(op.P_plus, bar @ P @ bar.H)
    same(tau @ P, op.G @ op.D @ op.G.H)


# --- ψ, and what connects it with φ


@given(cases(missing=True))
@fast
def test_psi_identities(case):
    """SKO:identities-psi. ψ^-1 − φ^-1 = KH and its four products; true for any gain, so with outputs missing too."""
    op, I, _, _ = symbols(case, ~np.isnan(case.T))
    phi_inverse, psi_inverse = I - op.E_phi, I - op.E_psi
    same(psi_inverse - phi_inverse, op.K @ op.H)
    same(psi_inverse @ op.phi, I + op.K @ op.H @ op.phi)
    same(op.phi @ psi_inverse, I + op.phi @ op.K @ op.H)
    same(phi_inverse @ op.psi, I - op.K @ op.H @ op.psi)
    same(op.psi @ phi_inverse, I - op.psi @ op.K @ op.H)
    close(op.psi.dense(), np.linalg.inv(psi_inverse.dense()))


@given(cases(missing=True))
@fast
def test_HpsiK_identities(case):
    """SKO:identities-HpsiK, SKO:innovations-inverse. Any R, any gain."""
    op, _, I, _ = symbols(case, ~np.isnan(case.T))
    H, phi, psi, K = op.H, op.phi, op.psi, op.K
    C, B = I + H @ phi @ K, I - H @ psi @ K
    same(B @ H @ phi, H @ psi)
    same(phi @ K @ B, psi @ K)
    same(C @ H @ psi, H @ phi)
    same(psi @ K @ C, phi @ K)
    same(C @ B, I)
    same(B @ C, I)
    same(op.factor, C)
    same(op.factor_inverse, B)


@given(cases())
@fast
def test_phi_Q_psi(case):
    """SKO:AMpsi. φQψ* = P + φ̃P + Pψ̃*, any R."""
    op, _, _, _ = symbols(case)
    same(op.phi @ op.Q @ op.psi.H, op.P + op.phi_strict @ op.P + op.P @ op.psi_strict.H)


@given(cases())
@fast
def test_psi_Q_psi(case):
    """SKO:psiMpsi. ψ(Q + KRK*)ψ* = P + ψ̃P + Pψ̃*; D = HψQψ*H* + (1−HψK)R(1−HψK)*, any R."""
    op, _, _, _ = symbols(case)
    noise = op.Q + op.K @ op.R @ op.K.H
    same(op.psi @ noise @ op.psi.H, op.P + op.psi_strict @ op.P + op.P @ op.psi_strict.H)
    B = op.factor_inverse
    same(op.H @ op.psi @ op.Q @ op.psi.H @ op.H.H + B @ op.R @ B.H, op.D)


@given(cases(noise=False))
@fast
def test_psi_Q_psi_without_noise(case):
    """SKO:psiMpsi as printed, at R = 0: ψQψ* = P + ψ̃P + Pψ̃* and HψQψ*H* = D."""
    op, _, _, _ = symbols(case)
    same(op.psi @ op.Q @ op.psi.H, op.P + op.psi_strict @ op.P + op.P @ op.psi_strict.H)
    same(op.H @ op.psi @ op.Q @ op.psi.H @ op.H.H, op.D)


@given(cases())
@fast
def test_phi_Q_phi(case):
    """SKO:AMA-riccati. φQφ* = P + φ̃P + Pφ̃* + φKDK*φ*, any R."""
    op, _, _, _ = symbols(case)
    gathered = op.phi @ op.K
    right = op.P + op.phi_strict @ op.P + op.P @ op.phi_strict.H + gathered @ op.D @ gathered.H
    same(op.phi @ op.Q @ op.phi.H, right)


# --- the factorisation


@given(cases())
@fast
def test_innovations_factorisation(case):
    """SKO:innovations, SKO:mass-inverse. 𝓜 = (1+HφK)D(1+HφK)*, 𝓜^-1 = (1−HψK)*D^-1(1−HψK)."""
    op, _, I, D_inverse = symbols(case)
    same(op.factor @ op.D @ op.factor.H, op.output_cov)
    same(op.factor_inverse.H @ D_inverse @ op.factor_inverse, op.output_cov_inverse)
    same(op.output_cov @ op.output_cov_inverse, I)
    same(op.output_cov_inverse @ op.output_cov, I)
    close(op.output_cov_inverse.dense(), np.linalg.inv(case.dense().output_cov))


@given(cases())
@fast
def test_determinant_and_quadratic_form(case):
    """SKO:determinant. det 𝓜 = Π det D(k), T*𝓜^-1T = Σ ε*D^-1ε; the factor has determinant one."""
    op, _, _, _ = symbols(case)
    mass_matrix = case.dense().output_cov
    close(sum(np.linalg.slogdet(D)[1] for D in op.covariances.D), np.linalg.slogdet(mass_matrix)[1])
    close(np.linalg.slogdet(op.factor.dense())[1], 0.0)
    filt = kf.kalman_filter(case.ss, case.T)
    close(filt.eps @ filt.nu, case.T @ np.linalg.solve(mass_matrix, case.T))
    close(filt.eps, op.factor_inverse @ case.T)


@given(cases())
@fast
def test_costate_covariance(case):
    """R86:9.19-9.21. Ω = ψ*H*D^-1Hψ = φ*H*𝓜^-1Hφ; its diagonal blocks are Λ(k)."""
    op, _, _, D_inverse = symbols(case)
    Omega = op.psi.H @ op.H.H @ D_inverse @ op.H @ op.psi
    same(Omega, op.phi.H @ op.H.H @ op.output_cov_inverse @ op.H @ op.phi)
    at, dense = case.ss.arrays.state, Omega.dense()
    for k, Lambda in enumerate(op.covariances.smoothed.Lambda):
        close(Lambda, dense[at[k] : at[k + 1], at[k] : at[k + 1]])


# --- the same statements node by node (R86 section 10, ATBI)


@given(cases())
@fast
def test_filter_transition_matrix(case):
    """R86:10.6,10.13, R86:10.10-10.12. ψ(k⁻,i⁺) by products along the path is the block of φ̃ and ψ it should be:
    ψ(k, i) = ψ(k⁻,i⁺)τ̄(i)."""
    ss, op = case.ss, kf.Operators(case.ss)
    psi, at, G = op.psi.dense(), ss.arrays.state, op.covariances.G
    for i in range(len(ss)):
        bar = np.eye(ss.n[i]) - G[i] @ ss.H[i]
        for k in ss.tree.ancestors(i):
            close(psi_between(ss, G, k, i) @ bar, psi[at[k] : at[k + 1], at[i] : at[i + 1]])


@given(cases())
@fast
def test_states_through_the_filter_transition(case):
    """R86:10.4-10.5, R86:10.7,10.15, R86:10.10-10.12, ATBI:z-plus, ATBI:z-next. z, ε, z⁺ from equivalent inputs."""
    ss = case.ss
    filt = kf.kalman_filter(ss, case.T, case.xi, case.eta)
    T, xi, eta, eps, nu = (
        blocks(v)
        for blocks, v in (
            (ss.output_blocks, case.T),
            (ss.state_blocks, case.xi),
            (ss.state_blocks, case.eta),
            (ss.output_blocks, filt.eps),
            (ss.output_blocks, filt.nu),
        )
    )
    bar = [np.eye(ss.n[k]) - filt.G[k] @ ss.H[k] for k in range(len(ss))]
    equivalent = [bar[i] @ xi[i] + filt.G[i] @ T[i] + filt.P_plus[i] @ eta[i] for i in range(len(ss))]
    for k in range(len(ss)):
        arrived = xi[k] + sum(psi_between(ss, filt.G, k, i) @ equivalent[i] for i in ss.tree.descendants(k))
        close(filt.z[k], arrived)
        close(eps[k], T[k] - ss.H[k] @ arrived)
        close(filt.D[k] @ nu[k], eps[k])
        close(filt.z_plus[k], bar[k] @ filt.z[k] + filt.G[k] @ T[k] + filt.P_plus[k] @ eta[k])
        close(filt.z_plus[k], filt.z[k] + filt.G[k] @ eps[k] + filt.P_plus[k] @ eta[k])
        closed = xi[k] + sum(
            ss.phi[j] @ (bar[j] @ filt.z[j] + filt.P_plus[j] @ eta[j]) + filt.K[j] @ T[j] for j in ss.tree.children(k)
        )
        close(filt.z[k], closed)


@given(cases())
@fast
def test_costates_through_the_filter_transition(case):
    """R86:10.14,10.20, R86:10.22, R86:10.7,10.15. λ⁺ and a from the residuals of all nodes inboard."""
    ss = case.ss
    filt = kf.kalman_filter(ss, case.T, case.xi, case.eta)
    smooth = kf.bryson_frazier(ss, filt)
    eta, nu, a = ss.state_blocks(case.eta), ss.output_blocks(filt.nu), ss.output_blocks(smooth.a)
    equivalent = [eta[i] - ss.H[i].T @ (filt.G[i].T @ eta[i] - nu[i]) for i in range(len(ss))]
    for k in range(len(ss)):
        arrived = sum(
            (psi_between(ss, filt.G, i, k).T @ equivalent[i] for i in ss.tree.ancestors(k)), np.zeros(ss.n[k])
        )
        close(smooth.costate_plus[k], arrived)
        close(a[k], nu[k] - filt.G[k].T @ eta[k] - filt.G[k].T @ arrived)


@given(cases())
@fast
def test_costate_covariance_as_a_sum(case):
    """R86:10.29-10.31. Λ⁺(k) = Σ ψ*(i⁻,k⁺)H*D^-1Hψ(i⁻,k⁺) over the ancestors i, = φ*Λ(p)φ, and Λ = τ̄*Λ⁺τ̄ + H*D^-1H."""
    ss, cov = case.ss, kf.riccati(case.ss)
    Lambda = cov.smoothed.Lambda
    for k, p in enumerate(ss.tree.parent):
        total = np.zeros((ss.n[k], ss.n[k]))
        for i in ss.tree.ancestors(k):
            seen = ss.H[i] @ psi_between(ss, cov.G, i, k)
            total += seen.T @ np.linalg.solve(cov.D[i], seen)
        if p >= 0:
            close(ss.phi[k].T @ Lambda[p] @ ss.phi[k], total)
        bar = np.eye(ss.n[k]) - cov.G[k] @ ss.H[k]
        close(Lambda[k], bar.T @ total @ bar + ss.H[k].T @ np.linalg.solve(cov.D[k], ss.H[k]))


@given(cases())
@fast
def test_blocks_of_the_inverse(case):
    """R86:10.1-10.3 on trees. 𝓜^-1(k,i) = d(k)ψ(k⁻,i⁺)G(i) for i outboard of k; through Λ(c) at the nearest common
    ancestor c for strangers; zero between different trees."""
    ss, cov = case.ss, kf.riccati(case.ss)
    inverse, Lambda, at = kf.innovations_factor(ss).inverse(), cov.smoothed.Lambda, ss.arrays.output
    for k, p in enumerate(ss.tree.parent):
        above = ss.phi[k].T @ Lambda[p] @ ss.phi[k] if p >= 0 else np.zeros((ss.n[k], ss.n[k]))
        c = np.linalg.inv(cov.D[k]) + cov.G[k].T @ above @ cov.G[k]
        d = cov.G[k].T @ above - c @ ss.H[k]
        close(inverse[at[k] : at[k + 1], at[k] : at[k + 1]], c)
        for i in range(len(ss)):
            block = inverse[at[k] : at[k + 1], at[i] : at[i + 1]]
            meet = ss.tree.nearest_common_ancestor(k, i)
            if meet is None:
                assert not block.any()
            elif meet == k and i != k:
                close(block, d @ psi_between(ss, cov.G, k, i) @ cov.G[i])
            elif meet not in (k, i):
                left, right = psi_between(ss, cov.G, meet, k), psi_between(ss, cov.G, meet, i)
                close(block, cov.G[k].T @ left.T @ Lambda[meet] @ right @ cov.G[i])
