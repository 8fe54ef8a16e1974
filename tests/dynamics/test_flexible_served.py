"""What is served on flexible systems is right, and what is not is refused in words, never read as the rigid tree."""

import flexible_cases
import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError
from kfdyn.spatial import spatial_inertia

ROD = kf.beam("rod", 1.5, 0.8, bending=(0.0, 60.0), modes=2, hinge=kf.Hinge.revolute([0, 1, 0]))
TOOL = kf.Body("tool", spatial_inertia(0.5, [0, 0, 0], 1e-3 * np.eye(3)), None, "rod", position=[1.5, 0, 0])
ARM = kf.FlexibleSystem([ROD, TOOL], frames={"end": kf.Frame("rod", position=[1.5, 0, 0])})
HELD = ARM.with_loops([kf.Loop(None, "end", rows="point")])
ALONE = kf.FlexibleSystem([ROD])  # as many bodies as its rigid tree: nothing else gives it away
Q, V = np.zeros(3), np.zeros(3)
TORQUE = [kf.sensors.JointTorque(0.1)]

REFUSED = {
    "absolute_angles": lambda s: kf.absolute_angles(s),
    "acceleration_causes": lambda s: kf.acceleration_causes(s, Q, V, V),
    "decompose_forces": lambda s: kf.decompose_forces(s, Q, V, V),
    "describe": lambda s: kf.describe(s),
    "forward_dynamics_derivatives": lambda s: kf.forward_dynamics_derivatives(s, Q, V, V),
    "inverse_dynamics_derivatives": lambda s: kf.inverse_dynamics_derivatives(s, Q, V, V),
    "mass_matrix_logdet_gradient": lambda s: kf.mass_matrix_logdet_gradient(s, Q),
    "mass_matrix_sparsity": lambda s: kf.mass_matrix_sparsity(s),
    "state_derivative": lambda s: kf.state_derivative(s, np.zeros(6)),
    "URDF": lambda s: kf.save_urdf(s),
    "a formula in symbols": lambda s: kf.symbolic.mass_matrix(s),
}


@pytest.mark.parametrize("system", [ALONE, ARM, HELD], ids=["alone", "arm", "held"])
@pytest.mark.parametrize("function", REFUSED)
def test_what_is_for_rigid_bodies_says_so(function, system):
    with pytest.raises(ModelError, match=f"{function} is for rigid bodies, .*bend: rod") as refusal:
        REFUSED[function](system)
    assert "open_tree" not in str(refusal.value)  # which is no robot: its rod has no mass


@pytest.mark.parametrize(
    "call", [lambda: kf.estimate_dynamics(HELD, Q, V, TORQUE, [V]), lambda: kf.observability(HELD, Q, TORQUE)]
)
def test_sensors_with_loops_say_so(call):
    with pytest.raises(ModelError, match=r"flexible bodies and 1 loop: sensors are served .* system\.without_loops"):
        call()


def test_courses_of_hinges_say_so():
    with pytest.raises(ModelError, match=r"simulate with courses is for rigid bodies, .*kf\.hybrid_dynamics"):
        kf.simulate(ARM, Q, V, [0, 0.1], courses={"rod": lambda t: (0.0, 0.0, 0.0)})


@pytest.mark.parametrize("function", [kf.multibody.link_terms, kf.dynamics.as_forest])
def test_what_reads_a_rigid_tree_says_so(function):
    with pytest.raises(ModelError, match="flexible bodies, and this function is for rigid bodies"):
        function(ARM, Q)
    assert not hasattr(ARM, "no_such_thing")


def test_states_of_other_libraries_are_refused():
    mujoco = pytest.importorskip("mujoco")
    joint = '<joint name="rod" axis="0 1 0"/><geom size="0.1"/>'
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody><body>{joint}</body></worldbody></mujoco>")
    with pytest.raises(ModelError, match="is for rigid bodies"):
        kf.to_mujoco(ALONE, model, Q)


@pytest.mark.parametrize(
    ("word", "call"),
    {
        "mass_matrix": lambda: kf.mass_matrix(HELD, Q),
        "bias": lambda: kf.modes(HELD, Q),
        "logdet": lambda: kf.mass_matrix_logdet(HELD, Q),
    }.items(),
)
def test_what_depends_on_a_choice_of_coordinates_says_where_it_is(word, call):
    with pytest.raises(ModelError, match=rf"kf\.minimal_coordinates\(system, q\)\.{word}"):
        call()
    bent = [0.1, 0.05, 0.02]  # straight, the rod is at a dead centre of the loop
    assert np.isfinite(getattr(kf.minimal_coordinates(HELD, bent), word)).all()  # the advice is good
    with pytest.raises(kf.errors.SingularError, match="dead centre"):
        kf.minimal_coordinates(HELD, Q)


def test_minimal_coordinates_of_a_flexible_tree_are_all_of_them():
    system = flexible_cases.tree(3)
    q, v = flexible_cases.state(system, 4)
    found = kf.minimal_coordinates(system, q, v)
    assert found.names == system.dof_names
    np.testing.assert_array_equal(found.X, np.eye(system.nv))
    np.testing.assert_allclose(found.mass_matrix, kf.mass_matrix(system, q), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.bias, kf.bias_forces(system, q, v), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.logdet, kf.mass_matrix_logdet(system, q), rtol=1e-12)


def test_dynamics_filter_of_a_flexible_tree():
    system = flexible_cases.tree(5)
    q, v = flexible_cases.state(system, 6)
    tau = np.random.default_rng(7).normal(size=system.nv)
    _, smooth = kf.dynamics_filter(system, q, v, tau)
    np.testing.assert_allclose(smooth.a, kf.forward_dynamics(system, q, v, tau), rtol=1e-9, atol=1e-9)


NONE = np.zeros((0, 3))
FREE = np.array([True, False, False])


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        (lambda: kf.inverse_dynamics(ARM, NONE, NONE, NONE), (0, 3)),
        (lambda: kf.bias_forces(ARM, NONE, NONE), (0, 3)),
        (lambda: kf.mass_matrix(ARM, NONE), (0, 3, 3)),
        (lambda: kf.mass_matrix_inverse(ARM, NONE), (0, 3, 3)),
        (lambda: kf.mass_matrix_logdet(ARM, NONE), (0,)),
        (lambda: kf.mass_matrix_trace(ARM, NONE), (0,)),
        (lambda: kf.hybrid_dynamics(ARM, NONE, NONE, NONE, NONE, FREE)[0], (0, 3)),
        (lambda: kf.forward_dynamics(ARM, NONE, NONE, NONE, method="engine"), (0, 3)),
        (lambda: kf.forward_dynamics(HELD, NONE, NONE, NONE), (0, 3)),
        (lambda: kf.inverse_dynamics(HELD, NONE, NONE, NONE), (0, 3)),
        (lambda: kf.constraint_forces(HELD, NONE, NONE, NONE)[0], (0, 3)),
        (lambda: kf.inverse_dynamics(kf.models.four_bar(), NONE, NONE, NONE), (0, 3)),
    ],
)
def test_no_states_have_no_answers(call, shape):
    assert call().shape == shape


def test_flexible_bodies_do_not_enter_rigid_systems():
    with pytest.raises(ModelError, match=r"given 'rod', a FlexibleBody; .*kf\.FlexibleSystem"):
        kf.System([ROD])
    with pytest.raises(ModelError, match="given 3"):
        kf.System([3])
    with pytest.raises(ModelError, match="'rod' is a FlexibleBody; give the joint to its hinge"):
        kf.FlexibleJoint(rotor_inertia=1.0, stiffness=1.0).split(ROD)


def test_a_cut_without_loops_says_so():
    with pytest.raises(ModelError, match="has no loops"):
        kf.cut_joint(ARM, Q, V, V)


def test_a_skeleton_has_the_frames_of_bodies_that_bend():
    drawn = kf.viz.skeleton(ARM, Q)
    np.testing.assert_allclose(drawn.strokes[1], [[0, 0, 0], [1.5, 0, 0]], atol=1e-12)
