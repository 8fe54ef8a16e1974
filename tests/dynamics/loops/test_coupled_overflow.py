"""Couplings and loops with numbers near 1e308: what is too large is refused, with the argument that made it so."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError

ARM = kf.models.chain(3)
GEARED = ARM.with_couplings([kf.Coupling(ARM.hinge_names[:2], [1.0, 2.0])])


def first(value, lead, n):
    out = np.zeros((*lead, n))
    out[..., 0] = value
    return out


@pytest.mark.parametrize(
    "X", [[1.0, 1e155], [1e-200, 1e-200], [[1.0, 0.0], [0.0, 1e200]], [[1e-180, 1e180], [1e-180, 0]]]
)
def test_ratios_whose_squares_are_no_doubles_are_not_dependent(X):
    """They were, since the length of such a column is infinite, or 0."""
    np.testing.assert_array_equal(kf.Coupling(["a", "b"], X).X, np.array(X).reshape(2, -1))


@pytest.mark.parametrize("X", [[0.0, 0.0], [[1e200, 2e200], [2e200, 4e200]], [[1e-200, 1e-200], [1e-200, 1e-200]]])
def test_dependent_columns_of_any_size_are_refused(X):
    with pytest.raises(ModelError, match="linearly dependent"):
        kf.Coupling(["a", "b"], X)


@pytest.mark.parametrize("lead", [(), (3,)])
def test_a_ratio_is_named_where_it_makes_inertias_overflow(lead):
    """X*𝓜X is infinite, which forward dynamics took for a locked hinge."""
    system = ARM.with_couplings([kf.Coupling(ARM.hinge_names[:2], [1.0, 1e155])])
    q = np.zeros((*lead, 2))
    for call in (
        lambda: kf.mass_matrix(system, q),
        lambda: kf.mass_matrix_inverse(system, q),
        lambda: kf.mass_matrix_logdet(system, q),
        lambda: kf.forward_dynamics(system, q, q, q),
        lambda: kf.inverse_dynamics(system, q, q, q + 1.0),
        lambda: kf.operational_space_compliance(system, q, ARM.body_names[-1]),
    ):
        with pytest.raises(ModelError, match=r"too large for a double.*X reaches 1e\+155"):
            call()


@pytest.mark.parametrize("lead", [(), (3,)])
def test_a_rate_beyond_doubles_is_named(lead):
    zero, large = np.zeros((*lead, 2)), first(1e308, lead, 2)
    for call, culprit in (
        (lambda: kf.inverse_dynamics(GEARED, zero, zero, large), "a"),
        (lambda: kf.inverse_dynamics(GEARED, zero, large, zero), "v"),
        (lambda: kf.bias_forces(GEARED, zero, large), "v"),
        (lambda: kf.forward_dynamics(GEARED, zero, large, zero), "v"),
        (lambda: kf.computed_torque(GEARED, zero, zero, zero, zero, large, 1.0, 1.0), "a"),
        (lambda: kf.hybrid_dynamics(GEARED, zero, zero, zero, large, np.array([True, False])), "a"),
    ):
        with pytest.raises(ModelError, match=rf"too large for a double.* {culprit} reaches 1e\+308"):
            call()


@pytest.mark.parametrize("method", ["cut", "proximal"])
def test_loops_blame_the_force_that_is_too_large(method):
    """They blamed v, after which the norm of accelerations is called."""
    system = kf.models.four_bar()
    q = kf.models.four_bar_configuration(0.7)
    zero, tau = np.zeros(system.nv), np.full(system.nv, 1e308)
    with pytest.raises(ModelError, match=r"acceleration.*too large for a double.*: tau reaches 1e\+308"):
        kf.forward_dynamics(system, q, zero, tau, method=method)
    with pytest.raises(ModelError, match=r"too large for a double.*: tau reaches 1e\+308"):
        kf.constraint_forces(system, q, zero, tau)
    with pytest.raises(ModelError, match=r"too large for a double.*: a reaches 1e\+308"):
        kf.inverse_dynamics(system, q, zero, tau)
    with pytest.raises(ModelError, match=r"too large for a double.*: tau reaches 1e\+308"):
        kf.hybrid_dynamics(system, q, zero, first(1e308, (), system.nv), zero, np.arange(system.nv) == 2)


@pytest.mark.parametrize("method", ["cut", "proximal", "embedding"])
def test_what_is_large_and_a_double_is_answered(method):
    """Accelerations are linear in tau: 1e200 times as much where nothing else acts, whatever the method squares."""
    system = kf.models.four_bar()
    q, none = kf.models.four_bar_configuration(0.7), np.zeros(3)
    tau = np.array([1.0, -2.0, 0.5])[: system.nv]
    one = kf.forward_dynamics(system, q, None, tau, gravity=none, method=method)
    many = kf.forward_dynamics(system, q, None, 1e200 * tau, gravity=none, method=method)
    np.testing.assert_allclose(many / 1e200, one, rtol=1e-9)
