"""A mass matrix that is singular in double precision is refused, though every hinge seems to feel something."""

import dataclasses

import numpy as np
import pytest
from robot_agreement import example_robots

import kfdyn as kf
from kfdyn.errors import SingularError
from kfdyn.spatial import spatial_inertia


def neck(off):
    """Three axes through one point, and a mass without extent ``off`` metres beside the second axis."""
    point = spatial_inertia(1.3, [0.11, off, 0.0], np.zeros((3, 3)))
    axes = {"pitch": [0, 1, 0], "roll": [1, 0, 0], "yaw": [0, 0, 1]}
    bodies, parent = [], None
    for name, axis in axes.items():
        inertia = point if name == "yaw" else np.zeros((6, 6))
        bodies.append(kf.Body(f"{name}_link", inertia, kf.Hinge.revolute(axis), parent, hinge_name=name))
        parent = f"{name}_link"
    return kf.System(bodies)


def answers(system, q):
    zero, one = np.zeros((*q.shape[:-1], system.nv)), np.ones((*q.shape[:-1], system.nv))
    yield lambda: kf.forward_dynamics(system, q, zero, one)
    yield lambda: kf.forward_dynamics(system, q, zero, one, method="engine")
    yield lambda: kf.mass_matrix_inverse(system, q)
    yield lambda: kf.mass_matrix_logdet(system, q)
    yield lambda: kf.mass_matrix_logdet_gradient(system, q)
    yield lambda: kf.operational_space_compliance(system, q, system.body_names[-1])
    yield lambda: kf.forward_dynamics_derivatives(system, q, zero, one)
    yield lambda: kf.hybrid_dynamics(system, q, zero, one, one, prescribed=np.zeros(system.nv, bool))


@pytest.mark.parametrize("off", [0.0, 1e-9, 4e-7, 1e-4, 1e-2, 0.1])
@pytest.mark.parametrize("lead", [(), (2,)])
def test_three_axes_through_a_mass_without_extent(off, lead):
    """The point cannot move along its own lever, so 𝓜 (3, 3) has rank 2, wherever it is."""
    system = neck(off)
    for call in answers(system, np.zeros((*lead, 3))):
        with pytest.raises(SingularError, match=r"roll|pitch"):
            call()


def test_a_rotor_is_the_cure_that_is_named():
    system = neck(4e-7)
    cured = kf.System([*system.bodies[:1], dataclasses.replace(system.bodies[1], armature=1e-4), *system.bodies[2:]])
    M = kf.mass_matrix(cured, np.zeros(3))
    a = kf.forward_dynamics(cured, np.zeros(3), None, np.ones(3), gravity=np.zeros(3))
    np.testing.assert_allclose(M @ a, np.ones(3), rtol=1e-8)


@pytest.mark.filterwarnings("ignore::kfdyn.io.loaded.LoadWarning")
@pytest.mark.parametrize("file", [f for f in example_robots() if f.stem == "icub"], ids=lambda f: f.stem)
def test_the_neck_of_icub(file):
    """Its head is a point mass, 4e-7 m beside an axis: forward dynamics said 2e17 rad/s²."""
    system = kf.load(file)
    for call in answers(system, system.neutral()):
        with pytest.raises(SingularError, match="neck_"):
            call()
