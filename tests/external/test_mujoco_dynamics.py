"""Mass matrix, bias and accelerations against MuJoCo, to 1e-10, on an MJCF written from the System.

Asserts SKO:eom, SKO:mass-algorithm, R86:7-ID, R86:8.2-8.9 and R86:8.10-8.13.

MuJoCo keeps a free joint's velocity as [linear, world; angular, body], kfdyn as [angular; linear], both in the body.
With v_mj = A v: 𝓜 = A* M_mj A, and c = A*(c_mj + M_mj Ȧv), where Ȧv is the turning of the linear velocity. A rotor's
force is its inertia times the rate of the hinge's own velocity, which for a free hinge's linear part is not the same
in the two coordinates; so free hinges have no rotors here.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kfdyn.multibody as mb
from kfdyn.dynamics import bias_forces, forward_dynamics, mass_matrix
from kfdyn.spatial import inertia_parameters

mujoco = pytest.importorskip("mujoco")
JOINTS = ("revolute", "prismatic", "ball", "fixed")


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10 * max(1.0, np.abs(expected).max(initial=0.0)))


def text(values):
    return " ".join(repr(float(x)) for x in np.ravel(values))


def quaternion(rotation):
    """(w, x, y, z) of a rotation matrix, by MuJoCo itself."""
    out = np.empty(4)
    mujoco.mju_mat2Quat(out, np.ascontiguousarray(rotation).ravel())
    return out


def joint(body):
    """MuJoCo's joint of a hinge; the anchor is the point of the axis nearest to the body's origin."""
    rotor = f'armature="{text(body.armature[:1])}"'
    match body.hinge.kind:
        case "fixed":
            return ""
        case "ball" | "free" as kind:
            return f'<joint name="{body.name}" type="{kind}" {rotor}/>'
        case "revolute" | "succession" if body.hinge.nv == 1:
            w, u = body.hinge.screws[0, :3], body.hinge.screws[0, 3:]
            return f'<joint name="{body.name}" type="hinge" axis="{text(w)}" pos="{text(np.cross(w, u))}" {rotor}/>'
        case "prismatic":
            return f'<joint name="{body.name}" type="slide" axis="{text(body.hinge.screws[0, 3:])}" {rotor}/>'
    raise ValueError(f"MuJoCo has no {body.hinge.kind} joint")


def mjcf(system):
    def element(k):
        body = system.bodies[k]
        mass, com, J = inertia_parameters(body.inertia)
        full = text([J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2]])
        inside = "".join(element(j) for j in np.flatnonzero(system.parent == k))
        return (
            f'<body name="{body.name}" pos="{text(body.position)}" quat="{text(quaternion(body.rotation))}">'
            f'{joint(body)}<inertial pos="{text(com)}" mass="{text(mass)}" fullinertia="{full}"/>{inside}</body>'
        )

    roots = "".join(element(k) for k in np.flatnonzero(system.parent < 0))
    return (
        f'<mujoco><compiler angle="radian"/><option gravity="{text(system.gravity)}">'
        f'<flag contact="disable" constraint="disable"/></option><worldbody>{roots}</worldbody></mujoco>'
    )


class MuJoCo:
    """MuJoCo's answers in kfdyn's coordinates."""

    def __init__(self, system):
        self.system = system
        self.model = mujoco.MjModel.from_xml_string(mjcf(system))
        self.data = mujoco.MjData(self.model)

    def solve(self, q, v, tau, force):
        """𝓜, c without external forces, and the accelerations."""
        system, model, data = self.system, self.model, self.data
        A, turning = np.zeros((system.nv, system.nv)), np.zeros(system.nv)  # rows in MuJoCo's order
        for body in system.bodies:
            own_q, own = system.q_slice(body.hinge_name), system.v_slice(body.hinge_name)
            if own.stop == own.start:
                continue
            address = model.joint(body.name)
            at_q, at = int(address.qposadr[0]), int(address.dofadr[0])
            if body.hinge.kind == "free":
                pose = mb.frame_pose(system, q, body.name)
                data.qpos[at_q : at_q + 3] = pose.position
                data.qpos[at_q + 3 : at_q + 7] = quaternion(pose.rotation)
                A[at : at + 3, own.start + 3 : own.stop] = pose.rotation
                A[at + 3 : at + 6, own.start : own.start + 3] = np.eye(3)
                turning[at : at + 3] = pose.rotation @ np.cross(v[own][:3], v[own][3:])
            else:
                x = q[own_q]
                data.qpos[at_q : at_q + x.size] = np.roll(x, 1) if body.hinge.kind == "ball" else x
                A[at : at + own.stop - own.start, own] = np.eye(own.stop - own.start)
        data.qvel[:] = A @ v
        data.qfrc_applied[:] = A @ tau  # A is orthogonal
        data.xfrc_applied[:] = 0.0
        mujoco.mj_kinematics(model, data)
        for k, name in enumerate(system.body_names):
            i = model.body(name).id
            lever = data.xipos[i] - data.xpos[i]
            data.xfrc_applied[i] = np.r_[force[k, 3:], force[k, :3] - np.cross(lever, force[k, 3:])]
        mujoco.mj_forward(model, data)
        M = np.empty((system.nv, system.nv))
        for column, unit in enumerate(np.eye(system.nv)):
            mujoco.mj_mulM(model, data, M[column], unit)
        return A.T @ M @ A, A.T @ (data.qfrc_bias + M @ turning), A.T @ (data.qacc_smooth - turning)


def random_system(seed, n, floating):
    """Random trees of MuJoCo's joints, free ones at the roots only; one rotor inertia per hinge, as it wants."""
    rng = np.random.default_rng(seed)
    trees = int(rng.integers(1, min(n, 2) + 1))
    made = mb.models.random_tree(n, seed, JOINTS, trees, rng.uniform())
    return mb.System([for_mujoco(body, floating, rng) for body in made.bodies], rng.normal(size=3)), rng


def for_mujoco(body, floating, rng):
    hinge = mb.Hinge.free() if floating and body.parent is None else body.hinge
    if hinge.kind == "revolute":  # move the axis beside the body's origin
        axis = hinge.screws[0, :3]
        hinge = mb.Hinge.succession([np.r_[axis, np.cross(rng.normal(size=3, scale=0.3), axis)]])
    rotor = 0.0 if hinge.kind == "free" else rng.uniform(0.0, 0.2)
    return mb.Body(body.name, body.inertia, hinge, body.parent, body.rotation, body.position, armature=rotor)


def assert_same(system, rng):
    peer = MuJoCo(system)
    for _ in range(2):
        q = system.random_configuration(rng)
        v, tau = rng.normal(size=(2, system.nv))
        force = rng.normal(size=(system.n_bodies, 6))
        M, c, a = peer.solve(q, v, tau, force)
        close(mass_matrix(system, q), M)
        close(bias_forces(system, q, v), c)
        close(forward_dynamics(system, q, v, tau, force), a)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(2, 12), st.booleans())
def test_random_trees(seed, n, floating):
    """Hinge, slide, ball and free joints with rotors; forces on every body."""
    assert_same(*random_system(seed, n, floating))


def test_a_floating_tree_of_every_joint():
    """One known case, so that no draw of the random ones can leave a joint out."""
    rng = np.random.default_rng(1)
    made = mb.models.random_tree(9, 4, JOINTS, branching=0.7)
    assert {body.hinge.kind for body in made.bodies[1:]} == set(JOINTS)
    assert_same(mb.System([for_mujoco(body, True, rng) for body in made.bodies]), rng)
