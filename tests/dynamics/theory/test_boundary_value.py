"""The boundary-value problem: solved whole, by sweeps, and put back into its equations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_models import cases, close, fast, few, random_case, seeds
from theory_cases import motion, pinocchio_accelerations, with_inputs

import kfdyn as kf
from kfdyn.dynamics import as_estimation
from kfdyn.dynamics.theory.boundary_value import BoundaryValueProblem
from kfdyn.errors import ModelError, ShapeError, SingularError
from kfdyn.estimation.dense import dense_posterior


def problem_of(case, T=None):
    return BoundaryValueProblem(with_inputs(case), case.T if T is None else T)


@given(cases(missing=True))
@fast
def test_solved_whole(case):
    """R86:6.1-6.6. One sparse solve gives the dense posterior's x, λ and a; NaN in T locks an output."""
    solution, dense = problem_of(case).solve(), dense_posterior(case.dense(), case.T)
    close(solution.x.flat, dense.mean)
    close(solution.costate.flat, dense.costate)
    close(solution.a, dense.a)


@given(cases(missing=True))
@fast
def test_sweep_method(case):
    """R86:8.1. x = z + P λ, with z and P of the filter, solves the same equations."""
    problem = problem_of(case)
    whole, swept = problem.solve(), problem.sweep()
    for mine, theirs in ((swept.x.flat, whole.x.flat), (swept.costate.flat, whole.costate.flat), (swept.a, whole.a)):
        close(mine, theirs)
    assert max(problem.residual(*swept)) < 1e-11
    assert max(problem.residual(*whole)) < 1e-11


@given(cases(missing=True, min_nodes=2), st.data())
@fast
def test_residual_finds_the_equation_at_fault(case, data):
    """A change of x, λ or a by 1e-3 is seen, and equations it does not enter stay satisfied."""
    problem = problem_of(case)
    x, costate, a = (np.array(u) for u in (lambda s: (s.x.flat, s.costate.flat, s.a))(problem.solve()))
    i = data.draw(st.integers(0, x.size - 1))
    x[i] += 1e-3
    wrong = problem.residual(x, costate, a)
    assert wrong.state > 1e-6
    assert wrong.costate < 1e-11
    x[i] -= 1e-3
    costate[i] += 1e-3
    wrong = problem.residual(x, costate, a)
    assert wrong.costate > 1e-6
    assert wrong.output < 1e-11
    costate[i] -= 1e-3
    if a.size:
        a[data.draw(st.integers(0, a.size - 1))] += 1e-3
        assert max(problem.residual(x, costate, a)[1:]) > 1e-6
        assert problem.residual(a=a).output > 1e-8


def test_matrix_is_the_equations():
    """The sparse matrix against dense blocks, row by row."""
    case = random_case(3, 7)
    dense = case.dense()
    n, m = dense.Q.shape[0], dense.R.shape[0]
    expected = np.block(
        [
            [np.eye(n) - dense.E_phi, -dense.Q, np.zeros((n, m))],
            [np.zeros((n, n)), np.eye(n) - dense.E_phi.T, -dense.H.T],
            [dense.H, np.zeros((m, n)), dense.R],
        ]
    )
    np.testing.assert_array_equal(problem_of(case).matrix.toarray(), expected)


def test_batches_broadcast():
    case = random_case(5, 8)
    rng = np.random.default_rng(0)
    T = rng.normal(size=(2, 3, case.ss.n_outputs))
    problem = problem_of(case, T)
    whole, swept = problem.solve(), problem.sweep()
    assert whole.a.shape == T.shape
    assert whole.x[0].shape == (2, 3, case.ss.n[0])
    close(whole.a, swept.a)
    residual = problem.residual(a=whole.a)
    assert residual.output.shape == (2, 3)
    assert residual.output.max() < 1e-11
    one = problem_of(case, T[1, 2]).solve()
    close(whole.x.flat[1, 2], one.x.flat)


@given(seeds)
@few
def test_against_pinocchio(seed):
    """R86:6.1-6.6. The accelerations, and the residual of Pinocchio's own answer."""
    system, q, v, tau, forces = motion(seed)
    theirs = pinocchio_accelerations(system, q, v, tau, forces)
    problem = BoundaryValueProblem.of_system(system, q, v, tau, forces)
    solution = problem.solve()
    np.testing.assert_allclose(solution.a, theirs, rtol=1e-10, atol=1e-10 * np.abs(theirs).max(initial=1.0))
    assert problem.residual(a=theirs).output < 1e-10
    assert max(problem.residual(*problem.sweep())) < 1e-11


def test_long_chain():
    """A thousand bodies: the sparse solve and the sweeps agree to twelve digits."""
    system = kf.models.chain(1000)
    rng = np.random.default_rng(1)
    q, v, tau = rng.uniform(-1, 1, (3, 1000))
    problem = BoundaryValueProblem.of_system(system, 0.1 * q, 0.1 * v, tau)
    whole, swept = problem.solve(), problem.sweep()
    np.testing.assert_allclose(swept.a, whole.a, rtol=0, atol=1e-12 * np.abs(whole.a).max())
    assert max(problem.residual(*whole)) < 1e-12
    assert max(problem.residual(*swept)) < 1e-12


def test_locked_hinge_is_nan():
    """R86:6.1-6.6 with a = 0 for (6.5): a locked elbow moves as one rigid body with the upper arm."""
    system = kf.models.double_pendulum()
    ss = as_estimation(system, [0.4, 0.9])
    solution = BoundaryValueProblem(ss, [1.0, np.nan]).solve()
    mass = kf.Covariances(ss).T.dense()
    bias = dense_posterior(ss, [0.0, 0.0]).a @ mass
    assert solution.a[1] == pytest.approx(0.0, abs=1e-15)
    np.testing.assert_allclose(solution.a[0], (1.0 + bias[0]) / mass[0, 0], rtol=1e-12)


def test_a_locked_hinge_that_moves_is_seen():
    """In the place of (6.5): any acceleration where T is NaN, however x and λ are given."""
    problem = BoundaryValueProblem(as_estimation(kf.models.double_pendulum(), [0.4, 0.9]), [1.0, np.nan])
    (x, costate, a), elbow = problem.solve(), np.array([0.0, 1.0])
    assert a[1] == 0
    assert max(problem.residual(x, costate, a)) < 1e-14
    assert max(problem.residual(x, costate, a + 1e-17 * elbow)) < 1e-14
    assert problem.residual(x, costate, a + 1e-3 * elbow).output > 1e-6
    assert problem.residual(a=a + 1e-3 * elbow).output > 1e-6


def test_errors_name_the_culprit():
    tip = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), [[[0.0]], [[1.0]]], names=["tool", "arm"])
    with pytest.raises(SingularError, match="tool"):
        BoundaryValueProblem(tip, [1.0, 1.0]).solve()
    good = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)))
    with pytest.raises(ShapeError, match="T has shape"):
        BoundaryValueProblem(good, [1.0, 2.0, 3.0])
    with pytest.raises(ModelError, match="T"):
        BoundaryValueProblem(good, [1.0, np.inf])
    with pytest.raises(ShapeError, match="pattern"):
        BoundaryValueProblem(good, [[1.0, np.nan], [1.0, 2.0]])
    problem = BoundaryValueProblem(good, [1.0, 3.0])
    with pytest.raises(ShapeError, match="accelerations a"):
        problem.residual([1.0, 1.0], [1.0, 1.0])
    with pytest.raises(ShapeError, match="costate"):
        problem.residual([1.0, 1.0], [1.0], [1.0, 1.0])
