"""The fused compliance against the engine's Λ and against J 𝓜⁻¹ J*: any frames on any trees, any batch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kfdyn as kf
from kfdyn.dynamics.operational_space import COMPLIANCE as KERNEL
from kfdyn.dynamics.operational_space import _by_engine, _frames
from kfdyn.dynamics.solving.forest import States
from kfdyn.multibody.calls.packed_model import model_of


def configurations(system, rng, size):
    return np.stack([system.random_configuration(rng) for _ in range(size)]) if size else np.zeros((0, system.nq))


def swept(states, bodies, positions):
    """Ω, and which states the sweep declines."""
    of = 6 * len(bodies), *_frames(model_of(states.system), states.system, bodies, positions)
    (Omega,), flagged = KERNEL.swept(states, of)
    return Omega, flagged


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 14), st.integers(0, 10**6), st.integers(1, 6), st.sampled_from([1, 3, 4, 9]), st.integers(1, 3))
def test_compliance_is_the_engines(n, seed, frames, size, trees):
    """SKO:48-50. Ancestors, branches, a body twice, different trees; the bound is 1e-12 of the largest entry."""
    system, rng = kf.models.random_tree(n, seed, trees=min(trees, n)), np.random.default_rng(seed)
    q = configurations(system, rng, size)
    bodies, positions = rng.integers(n, size=frames), rng.normal(size=(frames, 3))
    states = States.of(system, q)
    Omega, flagged = swept(states, bodies, positions)
    assert not flagged.any()
    (expected,) = _by_engine(states, bodies, positions).values()
    np.testing.assert_allclose(Omega, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_array_equal(Omega, Omega.swapaxes(1, 2))


def test_all_bodies_of_a_humanoid():
    """Every branch meets every other; the oracle is a dense product."""
    system = kf.models.humanoid()
    q = configurations(system, np.random.default_rng(0), 3)
    J = np.concatenate([kf.jacobian(system, q, name) for name in system.body_names], axis=1)
    expected = J @ np.linalg.solve(kf.mass_matrix(system, q), J.swapaxes(1, 2))
    Omega = kf.operational_space_compliance(system, q, system.body_names)
    np.testing.assert_allclose(Omega, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_a_long_chain_of_frames():
    """A frame on each of 60 links: products of 60 filters and no loss."""
    system = kf.models.chain(60)
    q = configurations(system, np.random.default_rng(0), 2)
    names = system.body_names
    Omega = kf.operational_space_compliance(system, q, names)
    (expected,) = _by_engine(States.of(system, q), np.arange(60), np.zeros((60, 3))).values()
    np.testing.assert_allclose(Omega, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("size", [0, 1, 7, 17, 4097])
def test_results_do_not_depend_on_batch_size_or_threads(size, monkeypatch):
    system = kf.models.random_tree(9, seed=5)
    q = configurations(system, np.random.default_rng(size), size)
    names = [system.body_names[k] for k in (8, 3, 5, 3)]
    answers = []
    for workers in ("1", "2", "3"):
        monkeypatch.setenv("KFDYN_NUM_THREADS", workers)
        answers.append(kf.operational_space_compliance(system, q, names))
    for other in answers[1:]:
        np.testing.assert_array_equal(answers[0], other)
    for b in range(0, size, 1000):
        np.testing.assert_array_equal(kf.operational_space_compliance(system, q[b], names), answers[0][b])


def test_a_frame_among_others_is_the_frame_alone():
    """Which other bodies are kept changes rounding at most."""
    system = kf.models.humanoid()
    q = configurations(system, np.random.default_rng(2), 2)
    names = [system.body_names[k] for k in (-1, 4, 9)]
    together = kf.operational_space_compliance(system, q, names)
    for f, name in enumerate(names):
        own = slice(6 * f, 6 * f + 6)
        alone = kf.operational_space_compliance(system, q, name)
        np.testing.assert_allclose(together[:, own, own], alone, rtol=0, atol=1e-12 * np.abs(alone).max())


def test_lanes_and_plain_numbers_do_not_show():
    from kfdyn.dynamics.recursions.compliance import COMPLIANCE

    system = kf.models.random_tree(9, seed=3)
    q, model = configurations(system, np.random.default_rng(0), 11), model_of(system)
    bodies, positions = np.array([8, 2, 7]), np.random.default_rng(1).normal(size=(3, 3))
    expected, _ = swept(States.of(system, q), bodies, positions)
    of = (18, *_frames(model, system, bodies, positions))
    for rows, enter in ((11, COMPLIANCE.compiled(2)), (1, lambda address, _, *args: COMPLIANCE.plain(model, *args))):
        out = np.full((rows, 18, 18), np.nan)
        assert enter(model.address, 0, *of, q[:rows], out) == 1
        # a float may be rounded otherwise than a lane: the compiler fuses other products
        bound = 1e-11 * np.abs(expected).max() * (rows == 1)
        np.testing.assert_allclose(out, expected[:rows], rtol=0, atol=bound)
