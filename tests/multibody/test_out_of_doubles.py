"""Overflow: an answer that no double can hold is refused by name, in every function that takes v, a, tau or g."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import KfdynError, ModelError

TREE = kf.models.random_tree(6, 1)
RNG = np.random.default_rng(0)
Q, SIGNS = TREE.random_configuration(RNG), np.sign(RNG.normal(size=TREE.nv))
ZERO, TIP = np.zeros(TREE.nv), TREE.body_names[-1]
HELD = np.arange(TREE.nv) % 2 == 0

SQUARED = {
    "forward_dynamics": lambda v: kf.forward_dynamics(TREE, Q, v, ZERO),
    "by the engine": lambda v: kf.forward_dynamics(TREE, Q, v, ZERO, method="engine"),
    "by the mass matrix": lambda v: kf.forward_dynamics(TREE, Q, v, ZERO, method="mass_matrix"),
    "of a batch": lambda v: kf.forward_dynamics(TREE, np.stack([Q] * 5), np.outer([0, 1, 0, 0, 0], v), ZERO),
    "inverse_dynamics": lambda v: kf.inverse_dynamics(TREE, Q, v, ZERO),
    "bias_forces": lambda v: kf.bias_forces(TREE, np.stack([Q] * 2), np.stack([v] * 2)),
    "hybrid_dynamics": lambda v: np.stack(kf.hybrid_dynamics(TREE, Q, v, ZERO, ZERO, prescribed=HELD)),
    "as_estimation": lambda v: kf.as_estimation(TREE, Q, v).xi,
    "dynamics_filter": lambda v: kf.dynamics_filter(TREE, Q, v, ZERO)[1].a,
    "acceleration_causes": lambda v: kf.acceleration_causes(TREE, Q, v, ZERO).total,
    "kinetic_energy": lambda v: kf.kinetic_energy(TREE, Q, v),
    "frame_acceleration": lambda v: kf.frame_acceleration(TREE, Q, v, ZERO, TIP),
    "frame_bias_acceleration": lambda v: kf.frame_bias_acceleration(TREE, Q, v, TIP),
    "computed_torque": lambda v: kf.computed_torque(TREE, Q, v, Q, ZERO, ZERO, 1.0, 1.0),
}
LINEAR = {
    "forward_dynamics": lambda x: kf.forward_dynamics(TREE, Q, ZERO, x * SIGNS),
    "inverse_dynamics": lambda x: kf.inverse_dynamics(TREE, Q, ZERO, x * SIGNS),
    "gravity": lambda x: kf.inverse_dynamics(TREE, Q, ZERO, ZERO, gravity=np.full(3, x)),
    "potential_energy": lambda x: kf.potential_energy(TREE, Q, gravity=np.full(3, x)),
    "momentum": lambda x: kf.momentum(TREE, Q, x * SIGNS),
    "centroidal_momentum": lambda x: kf.centroidal_momentum(TREE, Q, x * SIGNS),
    "frame_velocity": lambda x: kf.frame_velocity(TREE, Q, x * SIGNS, TIP),
    "integrate": lambda x: kf.integrate(TREE, Q, x * SIGNS),
}


@pytest.mark.parametrize("name", SQUARED)
def test_a_velocity_whose_square_overflows(name):
    assert np.isfinite(SQUARED[name](1e140 * SIGNS)).all()
    for size in (1e154, 1e300, 1.7e308):
        with pytest.raises(ModelError, match=r"too large for a double.*v reaches"):
            SQUARED[name](size * SIGNS)


@pytest.mark.parametrize("name", LINEAR)
def test_a_number_near_the_largest_double(name):
    assert np.isfinite(LINEAR[name](1e100)).all()
    with pytest.raises(KfdynError, match="too large for a double"):
        LINEAR[name](1.7e308)


def test_a_slide_too_long_for_its_inertia():
    rail = kf.System(
        [
            kf.Body("post", np.eye(6), kf.Hinge.revolute([0, 0, 1])),
            kf.Body("cart", np.eye(6), kf.Hinge.prismatic([1, 0, 0]), "post"),
        ]
    )
    far = np.array([0.0, 1e160])
    with pytest.raises(ModelError, match=r"too large for a double.*q reaches 1e\+160"):
        kf.mass_matrix(rail, far)
    with pytest.raises(ModelError, match=r"'post'.*too large for a double"):
        kf.mass_matrix_inverse(rail, far)


def test_the_model_is_the_culprit_where_no_argument_is_large():
    heavy = kf.models.uniform_chain(100, mass=1e304)  # each link is a double, a hundred about the first hinge are not
    with pytest.raises(ModelError, match=r"too large for a double.*masses, inertias or lengths"):
        kf.mass_matrix(heavy, np.zeros(100))


def test_words_for_a_quaternion_that_is_nearly_unit():
    ball = kf.System([kf.Body("ball", np.eye(6), kf.Hinge.ball())])
    with pytest.raises(ModelError, match=r"has length 1\.000002, not 1"):
        kf.mass_matrix(ball, [0, 0, 0, 1.000002])


def test_an_impact_too_hard_or_at_rest():
    wall = kf.models.pendulum(length=1.0).with_loops([kf.Loop(None, "bob", rows=(1,))])
    np.testing.assert_allclose(kf.impact(wall, [0.2], [1e300], restitution=0.5).v, [-5e299])
    np.testing.assert_array_equal(kf.impact(wall, [0.2], None).v, [0.0])
    with pytest.raises(ModelError, match=r"too large for a double.*v reaches 1.7e\+308"):
        kf.impact(wall, [0.2], [1.7e308], restitution=0.5)
