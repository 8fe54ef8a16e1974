"""Long chains against 50 digits: how much of a double the sweeps keep over a thousand hinges."""

import mpmath as mp
import numpy as np
import pytest
from exact_chain import aligned_chain, exact_forward_dynamics, heavy_tip

import kfdyn as kf

# Of the largest acceleration. Measured at a thousand links: 1e-13 and 3e-11.
BOUNDS = {1.0: 3e-12, 1e6: 3e-8}

CHAINS = {
    "aligned": aligned_chain,
    "random": lambda n, seed, tip: heavy_tip(kf.models.chain(n, seed=seed), tip),
}


def state(n, seed):
    rng = np.random.default_rng(seed)
    return rng.uniform(-np.pi, np.pi, n), *rng.normal(size=(2, n))


def relative_error(a, exact):
    return float(max(abs(mp.mpf(x) - y) for x, y in zip(a, exact)) / max(map(abs, exact)))


@pytest.mark.parametrize("tip", BOUNDS)
@pytest.mark.parametrize("kind", CHAINS)
@pytest.mark.parametrize("n", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_forward_error_of_a_chain(n, kind, tip):
    """R86:12-NUM. The recursions keep their digits over a thousand hinges, a million-fold heavier tip included."""
    system = CHAINS[kind](n, 0, tip)
    q, v, tau = state(n, 1)
    exact = exact_forward_dynamics(system, q, v, tau)
    for method in ("filter", "engine"):
        assert relative_error(kf.forward_dynamics(system, q, v, tau, method=method), exact) <= BOUNDS[tip]
    batch = kf.forward_dynamics(system, *(np.tile(x, (9, 1)) for x in (q, v, tau)))
    assert relative_error(batch[8], exact) <= BOUNDS[tip]


@pytest.mark.parametrize("kind", CHAINS)
def test_the_oracle_is_pinocchio_on_a_short_chain(kind):
    pin = pytest.importorskip("pinocchio")
    from pinocchio_models import pinocchio_model

    system = CHAINS[kind](7, 3, 10.0)
    q, v, tau = state(7, 4)
    theirs = pinocchio_model(system)
    expected = pin.aba(theirs.model, theirs.data, theirs.q(q), theirs.v(v), theirs.v(tau))[theirs.v_index]
    np.testing.assert_allclose(exact_forward_dynamics(system, q, v, tau).astype(float), expected, rtol=1e-12)
