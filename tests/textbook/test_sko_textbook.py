"""SKO models in plain NumPy: ragged random forests against dense algebra, robots against code that shares nothing."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from r86_cases import arm_case, close
from random_models import cases, fast, few, seeds
from theory_cases import motion, pinocchio_accelerations, with_inputs

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError, SingularError, TreeError
from kfdyn.multibody.loops.closure import constraint_drift, constraint_jacobian
from kfdyn.textbook import r86, sko

ANY = cases(min_nodes=1, max_nodes=7)


def scaled(mine, theirs, tolerance=1e-9):
    """Agreement relative to the largest entry; random blocks have condition numbers up to 1e3 and more."""
    theirs = np.asarray(theirs)
    assert np.abs(np.asarray(mine) - theirs).max(initial=0.0) <= tolerance * max(1.0, np.abs(theirs).max(initial=0.0))


@given(ANY)
@fast
def test_gather_and_scatter_are_the_operators(case):
    """SKO:bwa, SKO:model, SKO:gather, SKO:scatter, ATBI:estimation-map. ℰ nilpotent, A its resolvent, products."""
    model, dense = sko.model_of(case.ss), case.dense()
    E, A, H, M, R = sko.operators(model)
    scaled(E, dense.E_phi)
    scaled(A, dense.phi)
    scaled(H, dense.H)
    scaled(M, dense.Q)
    scaled(R, dense.R)
    assert not np.linalg.matrix_power(np.where(E != 0, 1, 0), len(case.ss)).any()  # nilpotent in any numbering
    x = [case.xi[s] for s in dense.states]
    scaled(np.concatenate(sko.gather(model, x)), dense.phi @ case.xi)
    scaled(np.concatenate(sko.scatter(model, x)), dense.phi.T @ case.xi)
    strict = dense.phi - np.eye(len(dense.phi))
    scaled(np.concatenate(sko.gather(model, x, strict=True)), strict @ case.xi)
    scaled(np.concatenate(sko.scatter(model, x, strict=True)), strict.T @ case.xi)


@given(ANY)
@fast
def test_inverse_dynamics_of_any_model(case):
    """SKO:ne-id, SKO:crb-id, SKO:eom, SKO:ne-columns. T = 𝓜θ̈ + C by both ways, C = HA(MA*a + b)."""
    model, dense = sko.model_of(with_inputs(case)), case.dense()
    theta_ddot = case.T
    C = dense.H @ dense.phi @ (dense.Q @ dense.phi.T @ case.eta + case.xi)
    T = dense.output_cov @ theta_ddot + C
    scaled(sko.newton_euler(model, theta_ddot), T)
    scaled(sko.composite_inverse_dynamics(model, theta_ddot), T)
    scaled(sko.bias(model), C)
    scaled(sko.mass_matrix(model), dense.output_cov)
    scaled(sko.mass_matrix_by_columns(model), dense.output_cov)


@given(ANY)
@fast
def test_velocities_and_jacobian_of_any_model(case):
    """SKO 87: V = A*H*β, and each node's Jacobian is its block row."""
    model, dense = sko.model_of(case.ss), case.dense()
    C = dense.phi.T @ dense.H.T
    scaled(np.concatenate(sko.velocities(model, case.T)), C @ case.T)
    for k, states in enumerate(dense.states):
        scaled(sko.jacobian(model, k), C[states])


@given(ANY)
@fast
def test_forward_dynamics_of_any_model(case):
    """SKO:fd-quadratic, SKO:fd-operator, R86:11-PASS. One θ̈ by every way.

    O(N) with the biases inside or by inverse dynamics first, O(N²), O(N³), operators, Kane, absolute coordinates.
    """
    model, dense = sko.model_of(with_inputs(case)), case.dense()
    C = dense.H @ dense.phi @ (dense.Q @ dense.phi.T @ case.eta + case.xi)
    theirs = np.linalg.solve(dense.output_cov, case.T - C)
    for solve in (
        sko.forward_dynamics,
        sko.forward_dynamics_inverse_first,
        sko.forward_dynamics_quadratic,
        sko.forward_dynamics_cubic,
        sko.forward_dynamics_operators,
        sko.kane,
        lambda model, T: sko.newton_euler_absolute(model, T)[0],
    ):
        scaled(solve(model, case.T), theirs, 1e-8)
    alpha = dense.phi.T @ (dense.H.T @ theirs + case.eta)
    f = sko.newton_euler_absolute(model, case.T)[1]
    scaled(f, dense.phi @ (dense.Q @ alpha + case.xi), 1e-8)


@given(ANY)
@fast
def test_articulated_inertias_are_the_engines(case):
    model, cov = sko.model_of(case.ss), kf.riccati(case.ss)
    mine = sko.articulated(model)
    for k in range(len(case.ss)):
        for own, theirs in ((mine.P, cov.P), (mine.P_plus, cov.P_plus), (mine.D, cov.D), (mine.G, cov.G)):
            scaled(own[k], theirs[k])
        scaled(mine.tau_bar(k), np.eye(len(cov.P[k])) - cov.G[k] @ case.ss.H[k])


@given(ANY, seeds)
@fast
def test_hybrid_dynamics_of_any_model(case, seed):
    """SKO:hybrid. Free and prescribed dofs mixed, hinges split: the partitioned dense equations."""
    rng = np.random.default_rng(seed)
    model, dense = sko.model_of(with_inputs(case)), case.dense()
    given_a = rng.random(case.T.size) < 0.5
    wanted = rng.normal(size=case.T.size)
    C = dense.H @ dense.phi @ (dense.Q @ dense.phi.T @ case.eta + case.xi)
    M, a = dense.output_cov, np.where(given_a, wanted, 0.0)
    free = ~given_a
    a[free] = np.linalg.solve(M[np.ix_(free, free)], (case.T - C - M @ a)[free])
    T, found = sko.hybrid_dynamics(model, case.T, wanted, given_a)
    scaled(found, a, 1e-8)
    scaled(T, M @ a + C, 1e-8)


@given(seeds)
@few
def test_robots_against_pinocchio(seed):
    """PART:1. Trees with every kind of hinge, rotors and external forces: f = φf + Mα + b is Pinocchio's."""
    system, q, v, tau, forces = motion(seed)
    model = sko.model_of(kf.as_estimation(system, q, v, external_forces=forces))
    theirs = pinocchio_accelerations(system, q, v, tau, forces)
    scaled(sko.forward_dynamics(model, tau), theirs, 1e-8)
    scaled(sko.forward_dynamics_quadratic(model, tau), theirs, 1e-8)
    scaled(sko.newton_euler(model, theirs), tau, 1e-8)


@pytest.mark.parametrize("base", [0, 2, 5])
def test_another_base_body(base):
    """SKO 15: the same accelerations of hinges and bodies and the same hinge forces, on another tree."""
    robot, rng = kf.models.humanoid(), np.random.default_rng(base)
    q = robot.random_configuration(rng)
    v, tau = rng.normal(size=(2, robot.nv))
    model = sko.model_of(kf.as_estimation(robot, q, v))
    other, T = sko.reroot(model, tau, base)
    assert other.parent[base] == -1
    first, f = sko.newton_euler_absolute(model, tau)
    second, f_other = sko.newton_euler_absolute(other, T)
    first, second = model.by_node(first), other.by_node(second)
    on_path, k = [], base
    while k >= 0:
        on_path.append(k)
        k = model.parent[k]
    for k in range(robot.n_bodies):
        if k not in on_path:
            scaled(second[k], first[k], 1e-8)
    f, f_other = f.reshape(-1, 6), f_other.reshape(-1, 6)
    for k, p in pairwise(on_path):  # the hinge between k and p now belongs to p, its force turned round
        scaled(second[p], first[k], 1e-8)
        scaled(-other.A[p] @ f_other[p], f[k], 1e-8)
    scaled(sko.forward_dynamics(other, T), np.concatenate(second), 1e-8)


def test_a_base_must_be_free():
    model = sko.model_of(kf.as_estimation(kf.models.puma560(), np.zeros(6)))
    with pytest.raises(ModelError, match="free body"):
        sko.reroot(model, np.zeros(6), 3)


def test_newton_euler_kane_and_lagrange_agree():
    """SKO 10, 83: one arm by absolute coordinates, partial velocities, energies, and the recursions."""
    case = arm_case(4, n=3)
    model = sko.model_of(kf.as_estimation(case.system, case.q, case.v))

    def chain(u):
        return r86.chain_of(case.arm, u, np.zeros(3))

    def mass_matrix(u):
        return r86.inertia_matrix_7_11(chain(u))

    def potential(u):
        """Of gravity, from where the mass centres are: places summed from the base outward."""
        at, turn, total = np.zeros(3), np.eye(3), 0.0
        for k in range(3, 0, -1):
            link = case.arm.link(k)
            turn = turn @ r86.change_of_frame(link, np.cos(u[k - 1]), np.sin(u[k - 1]))[:3, :3]
            total = total - link.m * (np.asarray(case.arm.gravity) @ (at + turn @ np.asarray(link.p)))
            at = at + turn @ np.asarray(link.L)
        return total

    theirs = kf.forward_dynamics(case.system, case.q, case.v, case.tau)
    by_energies = sko.lagrange(mass_matrix, potential, case.q[::-1], case.v[::-1], case.tau[::-1])
    close(by_energies[::-1], theirs, 1e-9)
    close(sko.kane(model, case.tau), theirs)
    close(sko.newton_euler_absolute(model, case.tau)[0], theirs)


@pytest.mark.parametrize("seed", range(4))
def test_projected_dynamics_of_loops(seed):
    """SKO:projected. Linkages and random rows: the projected equations give what constraint embedding gives."""
    rng = np.random.default_rng(seed)
    loops = kf.models.four_bar(), kf.models.slider_crank()
    for closed, guess in zip(loops, (kf.models.four_bar_configuration(0.7), [0.5, -0.7, -0.2, 3.0])):
        q = kf.assemble(closed, guess)
        v = kf.minimal_coordinates(closed, q).X @ rng.normal(size=kf.minimal_coordinates(closed, q).X.shape[1])
        tau, base = rng.normal(size=closed.nv), closed.without_loops
        J, drift = constraint_jacobian(closed, q), constraint_drift(closed, q, v)
        rank = np.linalg.matrix_rank(J, tol=1e-9)
        rows = np.linalg.svd(J)[0][:, :rank].T  # independent combinations: planar loops have more rows than rank
        M, C = kf.mass_matrix(base, q), kf.bias_forces(base, q, v)
        theirs = kf.forward_dynamics(closed, q, v, tau, method="embedding")
        close(sko.projected_dynamics(M, rows @ J, rows @ drift, tau, C), theirs, 1e-9)
    root = rng.normal(size=(7, 7))
    M, J, drift, T, C = (
        root @ root.T + np.eye(7),
        rng.normal(size=(3, 7)),
        *rng.normal(size=(1, 3)),
        *rng.normal(size=(2, 7)),
    )
    whole = np.block([[M, -J.T], [J, np.zeros((3, 3))]])
    close(sko.projected_dynamics(M, J, drift, T, C), np.linalg.solve(whole, np.r_[T - C, -drift])[:7], 1e-9)


def test_recipe_builds_a_model_that_is_no_robot():
    """SKO 86: masses on a line with one angle each, no 6-vectors; the mass matrix is the textbook's."""
    rng = np.random.default_rng(0)
    q, m = rng.normal(size=3), rng.uniform(1, 2, 3)
    tips = np.stack([-np.sin(q), np.cos(q)], axis=1)  # rods of unit length, absolute angles

    def velocity(k, V, beta):
        return (np.zeros(2) if V is None else V) + tips[k] * beta[0]

    model = sko.recipe([-1, 0, 1], [2, 2, 2], [1, 1, 1], velocity, lambda k, V: 0.5 * m[k] * V @ V)
    below = np.array([[m[max(i, j) :].sum() for j in range(3)] for i in range(3)])
    close(sko.mass_matrix(model), below * np.cos(q[:, None] - q))


def test_strict_recursions_are_those_of_the_slides():
    """SKO 25: y(k) = Σ A(k,j) [y(j) + x(j)]; taking x from the whole instead loses what is small beside x."""
    ones = sko.model_of(kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1))))
    x = [np.array([1e-20]), np.array([1.0])]
    assert sko.gather(ones, x, strict=True)[1] == 1e-20
    assert sko.scatter(ones, x[::-1], strict=True)[0] == 1e-20


def test_errors_name_the_culprit():
    model = sko.model_of(kf.as_estimation(kf.models.puma560(), np.zeros(6)))
    with pytest.raises(ShapeError, match="have 6 dofs"):
        sko.forward_dynamics(model, np.zeros(5))
    light = model._replace(M=[*model.M[:5], np.zeros((6, 6))], R=[0 * R for R in model.R])
    with pytest.raises(SingularError, match="D of node 5"):
        sko.forward_dynamics(light, np.zeros(6))
    with pytest.raises(TreeError, match="loop"):
        _ = model._replace(parent=[1, 0, 1, 2, 3, 4]).outward
