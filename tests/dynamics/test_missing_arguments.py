"""What a function cannot do without: None in its place is refused by name, never by an error from inside."""

from __future__ import annotations

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError


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


def test_a_frames_velocity_wants_velocities_and_its_acceleration_does_not():
    for system, q in (TREE, four_bar()):
        frame, still = system.body_names[-1], np.zeros(system.nv)
        with pytest.raises(ShapeError, match=r"^v must be an array of real numbers, got None"):
            kf.frame_velocity(system, q, None, frame)
        at_rest = kf.frame_acceleration(system, q, None, still + 1, frame)
        np.testing.assert_array_equal(at_rest, kf.frame_acceleration(system, q, still, still + 1, frame))


@pytest.mark.parametrize("frame", [["link_6"], {}, np.array(["link_6"]), None, 3], ids=str)
def test_a_frame_is_a_name(frame):
    system, q = TREE
    for call in (
        lambda: kf.jacobian(system, q, frame),
        lambda: kf.frame_pose(system, q, frame),
        lambda: kf.frame_velocity(system, q, Z, frame),
        lambda: kf.operational_space_control(system, q, Z, frame, (np.eye(3), np.zeros(3)), 1.0, 1.0),
        lambda: system.body_index(frame),
    ):
        with pytest.raises(ModelError, match="has no body"):
            call()
    with pytest.raises(ModelError, match="has no hinge"):
        system.v_slice(frame)


@pytest.mark.parametrize("method", ["newton_euler", "operators"])
def test_no_acceleration_is_zero_for_inverse_dynamics(method):
    system, q = TREE
    v = np.linspace(-1, 1, 6)
    for here in (q, list(q)):
        tau = kf.inverse_dynamics(system, here, v, None, method=method)
        np.testing.assert_allclose(tau, kf.bias_forces(system, q, v), rtol=1e-12, atol=1e-12)


Z = np.zeros(6)
ARGUMENTS = {
    "forward_dynamics": (Z, Z, Z),
    "inverse_dynamics": (Z, Z, Z),
    "hybrid_dynamics": (Z, Z, Z, Z, Z > 0),
    "forward_dynamics_derivatives": (Z, Z, Z),
    "inverse_dynamics_derivatives": (Z, Z, Z),
    "acceleration_causes": (Z, Z, Z),
    "dynamics_filter": (Z, Z, Z),
    "decompose_forces": (Z, Z, Z),
    "mass_matrix": (Z,),
    "mass_matrix_inverse": (Z,),
    "mass_matrix_trace": (Z,),
    "mass_matrix_logdet": (Z,),
    "mass_matrix_logdet_gradient": (Z,),
    "mass_matrix_sparsity": (),
    "bias_forces": (Z,),
    "operational_space_compliance": (Z, "tool"),
    "as_estimation": (Z,),
    "minimal_coordinates": (Z,),
    "assemble": (Z,),
    "impact": (Z, Z),
    "cut_joint": (Z, Z, Z),
    "constraint_forces": (Z, Z, Z),
    "kinetic_energy": (Z, Z),
    "potential_energy": (Z,),
    "center_of_mass": (Z,),
    "momentum": (Z, Z),
    "centroidal_momentum": (Z, Z),
    "frame_pose": (Z, "tool"),
    "frame_velocity": (Z, Z, "tool"),
    "frame_acceleration": (Z, Z, Z, "tool"),
    "jacobian": (Z, "tool"),
    "integrate": (Z, Z),
    "difference": (Z, Z),
    "absolute_angles": (),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_is_no_system_is_refused(name):
    function = getattr(kf, name)
    with pytest.raises(ModelError, match=r"^system must be a kfdyn\.System, got None$"):
        function(None, *ARGUMENTS[name])
    with pytest.raises(ModelError, match=r"^system must be a kfdyn\.System, got 'robot\.urdf'; kf\.load reads one"):
        function("robot.urdf", *ARGUMENTS[name])


@pytest.mark.parametrize("function", [kf.cut_joint, kf.constraint_forces])
def test_a_system_without_loops_has_none_to_cut(function):
    with pytest.raises(ModelError, match=r"'Stanford arm' has no loops; give it some by system\.with_loops"):
        function(*TREE, Z, Z)


@pytest.mark.parametrize("frames", [None, 3, [None]], ids=str)
def test_frames_are_names(frames):
    with pytest.raises(ModelError, match="frames must be names of bodies or frames of system 'Stanford arm', got"):
        kf.operational_space_compliance(*TREE, frames)


def test_what_a_mask_hides_is_no_number():
    system = kf.models.double_pendulum()
    hidden, shown = (np.ma.array([5.0, 0.0], mask=mask) for mask in ([1, 0], [0, 0]))
    for call in (kf.mass_matrix, kf.bias_forces, lambda s, q: kf.forward_dynamics(s, q, None, [0, 0])):
        with pytest.raises(ModelError, match=r"^q has entries that are not finite"):
            call(system, hidden)
        np.testing.assert_array_equal(call(system, shown), call(system, np.array([5.0, 0.0])))
