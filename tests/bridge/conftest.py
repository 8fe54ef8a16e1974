"""JAX in doubles, for these tests alone; and what is run once is not to be compiled with care."""

import sys

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _doubles():
    """Elsewhere, and where there is no JAX, nothing."""
    jax = sys.modules.get("jax")
    if jax is None:
        yield
        return
    for setting, here, _ in SETTINGS:
        jax.config.update(setting, here)
    yield
    for setting, _, elsewhere in SETTINGS:
        jax.config.update(setting, elsewhere)


SETTINGS = (("jax_enable_x64", True, False), ("jax_disable_most_optimizations", True, False))


@pytest.fixture
def rng():
    return np.random.default_rng(20)
