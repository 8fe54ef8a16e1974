"""A state of a tree has the same bits alone, in any batch however it is cut, and from lists."""

import numpy as np
import pytest

import kfdyn as kf

ROWS = 11  # a pass of eight lanes and a part of one


SYSTEMS = {"arm": kf.models.puma560, "tree": lambda: kf.models.random_tree(9, 4), "free": kf.models.free_flyer}
CALLS = {
    "forward": lambda s, q, v, u: kf.forward_dynamics(s, q, v, u),
    "by the engine": lambda s, q, v, u: kf.forward_dynamics(s, q, v, u, method="engine"),
    "causes": lambda s, q, v, u: kf.acceleration_causes(s, q, v, u),
    "inverse": lambda s, q, v, u: kf.inverse_dynamics(s, q, v, u),
    "bias": lambda s, q, v, u: kf.bias_forces(s, q, v),
    "mass matrix": lambda s, q, v, u: kf.mass_matrix(s, q),
    "mass matrix inverse": lambda s, q, v, u: kf.mass_matrix_inverse(s, q),
    "trace": lambda s, q, v, u: kf.mass_matrix_trace(s, q),
    "logdet": lambda s, q, v, u: kf.mass_matrix_logdet(s, q),
    "logdet gradient": lambda s, q, v, u: kf.mass_matrix_logdet_gradient(s, q),
    "hybrid": lambda s, q, v, u: kf.hybrid_dynamics(s, q, v, u, v, np.arange(s.nv) % 2 == 0),
    "compliance": lambda s, q, v, u: kf.operational_space_compliance(s, q, [s.body_names[-1], s.body_names[0]]),
    "forward derivatives": lambda s, q, v, u: kf.forward_dynamics_derivatives(s, q, v, u),
    "inverse derivatives": lambda s, q, v, u: kf.inverse_dynamics_derivatives(s, q, v, u),
    "torque": lambda s, q, v, u: kf.computed_torque(s, q, v, q, u, u, 2.0, 1.0),
    "kinetic energy": lambda s, q, v, u: kf.kinetic_energy(s, q, v),
    "potential energy": lambda s, q, v, u: kf.potential_energy(s, q),
    "momentum": lambda s, q, v, u: kf.centroidal_momentum(s, q, v),
    "integrate": lambda s, q, v, u: kf.integrate(s, q, v),
    "difference": lambda s, q, v, u: kf.difference(s, q, np.asarray(q)),
    "Jacobian": lambda s, q, v, u: kf.jacobian(s, q, s.body_names[-1]),
    "pose": lambda s, q, v, u: kf.frame_pose(s, q, s.body_names[-1]),
    "frame velocity": lambda s, q, v, u: kf.frame_velocity(s, q, v, s.body_names[-1]),
    "frame acceleration": lambda s, q, v, u: kf.frame_acceleration(s, q, v, u, s.body_names[-1]),
}


@pytest.mark.parametrize("kind", SYSTEMS)
@pytest.mark.parametrize("name", CALLS)
def test_a_state_has_the_same_bits_whatever_goes_with_it(kind, name):
    system, rng = SYSTEMS[kind](), np.random.default_rng(0)
    q = np.stack([system.random_configuration(rng) for _ in range(ROWS)])
    given = (q, *rng.normal(size=(2, ROWS, system.nv)))

    def answers(*given):
        made = CALLS[name](system, *given)
        return made if isinstance(made, tuple) else (made,)

    whole = answers(*given)
    for part in (slice(0, 1), slice(2, 4), slice(1, 10), slice(3, ROWS)):
        for one, all_ in zip(answers(*(x[part] for x in given)), whole):
            np.testing.assert_array_equal(one, all_[part])
    for b in range(ROWS):
        for one, listed, all_ in zip(answers(*(x[b] for x in given)), answers(*(x[b].tolist() for x in given)), whole):
            np.testing.assert_array_equal(one, all_[b])
            np.testing.assert_array_equal(listed, all_[b])
    for one, all_ in zip(answers(*(x.tolist() for x in given)), whole):
        np.testing.assert_array_equal(one, all_)
