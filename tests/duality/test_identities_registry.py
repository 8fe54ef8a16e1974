"""The registry of identities: residuals vanish on random forests and robots, and show an error where there is one."""

import numpy as np
import pytest
from hypothesis import given
from random_models import cases, few

import kfdyn as kf
from kfdyn.duality.atlas import atlas
from kfdyn.duality.identities import IDENTITIES, TOLERANCE, identity_residuals
from kfdyn.duality.symbols import Symbols


@given(cases())
@few
def test_they_hold_with_noise(case):
    """SKO:AMpsi, SKO:psiMpsi, SKO:AMA-riccati and every other identity that R does not spoil."""
    residuals = identity_residuals(case.ss)
    assert max(residuals.values()) < 1e-10, max(residuals, key=residuals.get)


@given(cases(noise=False))
@few
def test_they_hold_without_noise(case):
    """SKO:identities-local, SKO:identities-psi, SKO:identities-HpsiK and all the others, R = 0."""
    residuals = identity_residuals(case.ss)
    assert set(residuals) == set(IDENTITIES)
    assert max(residuals.values()) < 1e-10, max(residuals, key=residuals.get)


def test_each_states_itself_and_its_source():
    assert len(IDENTITIES) >= 30
    for name, one in IDENTITIES.items():
        assert one.source in atlas(), name
        assert one.statement in one.residual.__doc__


@pytest.mark.parametrize("name", [n for n in IDENTITIES if n not in ("sparsity", "quadratic_form", "determinant")])
def test_each_can_fail(name):
    """Perturb what the identity is about by 1 %, and its residual shows it."""
    system = kf.models.random_tree(5, seed=1)
    ss = kf.as_estimation(system, system.random_configuration(np.random.default_rng(1)))
    if IDENTITIES[name].exact_only:
        ss = kf.StateSpace(ss.tree, [None if p < 0 else b for p, b in zip(ss.tree.parent, ss.phi)], ss.H, ss.Q)
    rng = np.random.default_rng(0)
    assert IDENTITIES[name].residual(Symbols(ss)) < TOLERANCE
    shown = 0.0
    for letter in (
        "P",
        "K",
        "G",
        "proj",
        "proj_bar",
        "psi_inv",
        "phi_inv",
        "composite",
        "Lambda",
        "D",
        "R",
        "P_plus",
        "S",
    ):
        wrong = Symbols(ss)
        matrix = getattr(wrong, letter)
        setattr(wrong, letter, matrix + 0.01 * np.abs(matrix).max() * rng.normal(size=matrix.shape))
        if letter == "P_plus":
            wrong.P_plus = 1.1 * wrong.P
        shown = max(shown, IDENTITIES[name].residual(wrong))
    assert shown > 1e-6
