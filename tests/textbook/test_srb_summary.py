"""SRB's summary table, measured on tumbling bodies."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from spatial_cases import assert_close, random_cloud, random_rotation

from kfdyn.errors import ModelError, ShapeError, SingularError
from kfdyn.spatial import spatial_inertia
from kfdyn.textbook.srb import FORMULATIONS, body_equations, free_motion, measure_formulations, summary_table

# What SRB prints: β, b; conserved spatial momentum, non-working b, independent of linear velocity.
PRINTED = {
    "cm": ("ᴵV(C)", "V̄ω(C) M(C) Vω(C)", True, True, True),
    "point": ("ᴵV(z)", "V̄ω(z) M(z) Vω(z)", False, False, True),
    "body": ("ᴮV(z)", "V̄(z) h(z)", False, True, False),
    "inertial": ("V_I = φ*(z, I) V(z)", "V̄_I h_I", True, True, False),
}


def tumbling(seed, with_points=False):
    rng = np.random.default_rng(seed)
    cloud = random_cloud(rng)
    given = spatial_inertia(*cloud.parameters), random_rotation(rng), rng.normal(size=3), rng.normal(size=6)
    return (*given, cloud) if with_points else given


def as_printed(M6, R, z, V, cloud):
    """β, b and h of each row from the particles: sums of m r × ṙ and m ṙ, and the products that the table names."""
    m, s = cloud.m, cloud.s @ R.T  # from z, in inertial axes
    omega, v = V[:3], V[3:]
    l = m @ s / m.sum()
    turn = np.kron(np.eye(2), R.T)

    def momentum(about, linear, spin=omega):
        speeds = linear + np.cross(spin, s - about)
        return np.concatenate([m @ np.cross(s - about, speeds), m @ speeds])

    def bar(V, h):
        return np.concatenate([np.cross(V[:3], h[:3]) + np.cross(V[3:], h[3:]), np.cross(V[:3], h[3:])])

    def row(about, linear):
        return np.concatenate([omega, linear]), momentum(about, linear)

    (at_C, h_C), (at_z, h_z), (at_I, h_I) = (row(x, v + np.cross(omega, x)) for x in (l, np.zeros(3), -z))
    spin = np.concatenate([omega, np.zeros(3)])
    return {
        "cm": (at_C, bar(spin, momentum(l, np.zeros(3))), h_C),
        "point": (at_z, bar(spin, momentum(np.zeros(3), np.zeros(3))), h_z),
        "body": (turn @ at_z, bar(turn @ at_z, turn @ h_z), turn @ h_z),
        "inertial": (at_I, bar(at_I, h_I), h_I),
    }


@pytest.mark.parametrize("seed", [1, 2])
def test_the_table_is_srbs(seed):
    """SRB:table. Each row as printed; its β and b computed from particles are those of the equations."""
    table = {row.key: row for row in summary_table()}
    assert list(table) == list(FORMULATIONS) == list(PRINTED)
    for key, (beta, b, _) in as_printed(*tumbling(seed, with_points=True)).items():
        row, eom = table[key], body_equations(key, *tumbling(seed))
        claims = row.conserves_momentum, row.bias_does_no_work, row.free_of_linear_velocity
        assert (row.velocity, row.bias, *claims) == PRINTED[key]
        assert_close(eom.velocity, beta, 1e-12)
        assert_close(eom.bias, b, 1e-12)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_table_is_true(seed):
    """SRB:momentum, SRB:gyro-work, and the statements of SRB:table, as measured over two seconds of tumbling."""
    for key, (_, _, h) in as_printed(*tumbling(seed, with_points=True)).items():
        assert_close(body_equations(key, *tumbling(seed)).momentum, h, 1e-12)
    measured = measure_formulations(*tumbling(seed), np.linspace(0, 2, 21))
    for told in summary_table():
        key, row = told.key, measured[told.key]
        claims = told.conserves_momentum, told.bias_does_no_work, told.free_of_linear_velocity
        assert claims == PRINTED[key][2:]
        for value, holds in zip((row.momentum_drift, row.bias_work, row.linear_velocity_influence), claims):
            # the integrator's tolerance is 1e-12 a step; what does not hold fails by percents
            assert value < 1e-10 if holds else value > 1e-2, (key, row)
        assert row.energy_drift < 1e-10


def test_all_four_describe_one_motion():
    """SRB:eom-cm, SRB:eom-point, SRB:eom-body, SRB:eom-inertial: same poses and velocities at all times."""
    time = np.linspace(0, 1.5, 7)
    motions = {key: free_motion(key, *tumbling(4), time) for key in FORMULATIONS}
    for motion in motions.values():
        assert_close(motion.rotation, motions["cm"].rotation, 1e-10)
        assert_close(motion.position, motions["cm"].position, 1e-10)
        assert_close(motion.V, motions["cm"].V, 1e-10)
    uniform = motions["cm"].equations.velocity[:, 3:]
    assert_close(uniform, np.broadcast_to(uniform[0], uniform.shape), 1e-12)


@pytest.mark.parametrize("key", list(FORMULATIONS))
def test_a_symmetric_top_precesses_as_known(key):
    """Analytic: in body axes (ω_x, ω_y) turns at (J_z − J_x)/J_x ω_z; the mass centre moves uniformly."""
    M6 = spatial_inertia(2.0, [0.2, -0.1, 0.4], np.diag([1.2, 1.2, 2.0]))
    start = Rotation.from_rotvec([0.3, 1.0, -0.5]).as_matrix()
    body_omega, v = np.array([0.7, -0.2, 1.5]), np.array([0.1, 0.2, 0.3])
    V = np.concatenate([start @ body_omega, v])
    time = np.linspace(0, 2, 9)
    motion = free_motion(key, M6, start, [1.0, -1.0, 0.5], V, time)
    angle = (2.0 - 1.2) / 1.2 * body_omega[2] * time
    turning = (body_omega[0] + 1j * body_omega[1]) * np.exp(1j * angle)
    expected = np.stack([turning.real, turning.imag, np.full_like(time, body_omega[2])], axis=-1)
    assert_close(np.einsum("tji,tj->ti", motion.rotation, motion.V[:, :3]), expected, 1e-10)
    centre = motion.position + motion.rotation @ [0.2, -0.1, 0.4]
    drift = v + np.cross(V[:3], start @ [0.2, -0.1, 0.4])
    assert_close(centre, centre[0] + time[:, None] * drift, 1e-10)


def test_bad_input_is_named():
    M6, R, z, V = tumbling(0)
    with pytest.raises(ModelError, match="time must be a list of at least two increasing numbers"):
        free_motion("cm", M6, R, z, V, [0.0, 0.0])
    with pytest.raises(ModelError, match="no formulation"):
        free_motion("com", M6, R, z, V, [0.0, 1.0])
    with pytest.raises(SingularError, match="no mass"):
        free_motion("cm", np.zeros((6, 6)), R, z, V, [0.0, 1.0])
    with pytest.raises(ShapeError, match="one body at a time"):
        free_motion("cm", M6, R, z, np.stack([V, V]), [0.0, 1.0])
