"""What a function cannot do without: None in its place is refused by name, never by an error from inside."""

from __future__ import annotations

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ShapeError


def four_bar() -> tuple[kf.System, np.ndarray]:
    system = kf.models.four_bar()
    return system, kf.assemble(system, [0.3, 0.2, 0.1])


TREE = kf.models.stanford_arm(), np.full(6, 0.4)
CALLS = {
    "forward_dynamics": (kf.forward_dynamics, "tau"),
    "forward_dynamics_derivatives": (kf.forward_dynamics_derivatives, "tau"),
    "inverse_dynamics_derivatives": (kf.inverse_dynamics_derivatives, "a"),
    "acceleration_causes": (kf.acceleration_causes, "tau"),
}


@pytest.mark.parametrize("lead", [(), (3,)], ids=["one", "batch"])
@pytest.mark.parametrize("name", CALLS)
def test_none_is_refused_by_its_name(name, lead):
    function, missing = CALLS[name]
    system, q = TREE
    with pytest.raises(ShapeError, match=f"^{missing} must be an array of real numbers, got None"):
        function(system, np.broadcast_to(q, (*lead, 6)), np.zeros(6), None)


@pytest.mark.parametrize("method", ["cut", "embedding", "proximal"])
def test_none_is_refused_by_its_name_with_loops(method):
    system, q = four_bar()
    with pytest.raises(ShapeError, match=r"^tau must be an array of real numbers, got None"):
        kf.forward_dynamics(system, q, None, None, method=method)
    for function in (kf.cut_joint, kf.constraint_forces):
        with pytest.raises(ShapeError, match=r"^tau must be an array of real numbers, got None"):
            function(system, q, None, None)


def test_kinetic_energy_wants_velocities():
    for system, q in (TREE, four_bar()):
        with pytest.raises(ShapeError, match=r"^v must be an array of real numbers, got None"):
            kf.kinetic_energy(system, q, None)


@pytest.mark.parametrize("method", ["newton_euler", "operators", "composite"])
def test_no_acceleration_is_zero_for_inverse_dynamics(method):
    system, q = TREE
    v = np.linspace(-1, 1, 6)
    for here in (q, list(q)):
        tau = kf.inverse_dynamics(system, here, v, None, method=method)
        np.testing.assert_allclose(tau, kf.bias_forces(system, q, v), rtol=1e-12, atol=1e-12)
