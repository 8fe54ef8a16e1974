"""The four formulations against Newton's law for a cloud of point masses on a prescribed motion.

The motion is differentiated to 60 digits, so the forces, velocities and accelerations below share nothing
with the package: F = Σ m r̈ and N = Σ (r − x) × m r̈ about the reference point x of each formulation.
"""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from spatial_cases import (
    DIGITS,
    ZERO,
    Trajectory,
    as_float,
    assert_close,
    cross_mp,
    exact,
    fast,
    few,
    random_cloud,
    random_rotation,
    seeds,
    skew_mp,
)

from kfdyn.errors import ModelError, ShapeError, SingularError
from kfdyn.spatial import kinetic_energy, spatial_inertia
from kfdyn.textbook.srb import (
    FORMULATIONS,
    body_acceleration,
    body_equations,
    convert_acceleration,
    gyroscopic_about_point,
    gyroscopic_in_frame,
    inertia_rate,
    point_acceleration,
)


class Newton:
    """A cloud carried along a trajectory; everything at t = 0, per formulation, from first principles."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.cloud, self.path = random_cloud(rng), Trajectory(rng)
        self.m, self.s = exact(self.cloud.m), exact(self.cloud.s)
        self.M6 = spatial_inertia(*self.cloud.parameters)
        self.rotation, self.position = as_float(self.path.rotation(ZERO)), as_float(self.path.position(ZERO))
        self.V = as_float(self.path.V())

    def points(self, t):
        return self.path.position(t) + self.s.dot(self.path.rotation(t).T)

    def reference(self, key, t):
        """The point whose velocity is read."""
        if key == "cm":
            return self.m.dot(self.points(t)) / self.m.sum()
        return exact(np.zeros(3)) if key == "inertial" else self.path.position(t)

    def axes(self, key, t):
        return self.path.rotation(t).T if key == "body" else exact(np.eye(3))

    def beta(self, key, t):
        """Velocity of the body-fixed point now at the reference, from the rates of z and R."""
        omega = self.path.omega(t)
        arm = self.reference(key, t) - self.path.position(t)
        v = self.path.rate(self.path.position, t) + cross_mp(omega, arm)
        axes = self.axes(key, t)
        return np.concatenate([axes.dot(omega), axes.dot(v)])

    def beta_dot(self, key):
        return as_float(self.path.rate(lambda t: self.beta(key, t)))

    def _about(self, key, t, vectors):
        arm = self.points(t) - self.reference(key, t)
        axes = self.axes(key, t)
        moment = sum(cross_mp(a, f) for a, f in zip(arm, vectors))
        return np.concatenate([axes.dot(moment), axes.dot(vectors.sum(axis=0))])

    def force(self, key):
        r2 = self.path.rate(lambda t: self.path.rate(self.points, t))
        return as_float(self._about(key, ZERO, self.m[:, None] * r2))

    def momentum(self, key, t=ZERO):
        return self._about(key, t, self.m[:, None] * self.path.rate(self.points, t))

    def inertia(self, key, t):
        """Columns: momenta of unit velocities, [Σ −m a~a~, Σ m a~; −Σ m a~, Σ m]."""
        out = exact(np.zeros((6, 6)))
        for m, a in zip(self.m, self.points(t) - self.reference(key, t)):
            A = skew_mp(self.axes(key, t).dot(a))
            out[:3, :3] += -m * A.dot(A)
            out[:3, 3:] += m * A
            out[3:, :3] += -m * A
            out[3:, 3:] += m * exact(np.eye(3))
        return out

    @property
    def state(self):
        return self.M6, self.rotation, self.position, self.V


@few
@given(seeds)
def test_equations_of_motion_are_newtons(seed):
    """SRB:eom-cm, SRB:eom-point, SRB:eom-body, SRB:eom-inertial: M dβ/dt + b = f in all four."""
    with mp.workdps(DIGITS):
        newton = Newton(seed)
        for key in FORMULATIONS:
            eom = body_equations(key, *newton.state)
            assert_close(eom.velocity, as_float(newton.beta(key, ZERO)), 1e-13)
            assert_close(eom.inertia, as_float(newton.inertia(key, ZERO)), 1e-13)
            assert_close(eom.momentum, as_float(newton.momentum(key)), 1e-13)
            force, rate = newton.force(key), newton.beta_dot(key)
            assert_close(eom.inertia @ rate + eom.bias, force, 1e-13)
            assert_close(eom.force(newton.force("point")), force, 1e-13)
            # M^-1 amplifies the rounding of f − b by the condition of the cloud's inertia
            bound = 1e-14 * np.linalg.cond(eom.inertia)
            assert_close(body_acceleration(eom.inertia, force, eom.bias), rate, bound)


@few
@given(seeds)
def test_accelerations_convert(seed):
    """SRB:beta-dot. All sixteen pairs, and the general relation between two points."""
    with mp.workdps(DIGITS):
        newton = Newton(seed)
        rates = {key: newton.beta_dot(key) for key in FORMULATIONS}
        for source in FORMULATIONS:
            for target in FORMULATIONS:
                converted = convert_acceleration(source, target, rates[source], *newton.state)
                assert_close(converted, rates[target], 1e-13)
        arm = newton.rotation @ newton.cloud.parameters[1]
        assert_close(point_acceleration(rates["point"], newton.V[:3], arm), rates["cm"], 1e-13)
        assert_close(point_acceleration(rates["cm"], newton.V[:3], -arm), rates["point"], 1e-13)


@few
@given(seeds)
def test_rate_of_the_spatial_inertia(seed):
    """SRB:M-dot. At a point of the body V^ω, inertially referenced V_I."""
    with mp.workdps(DIGITS):
        newton = Newton(seed)
        for key in ("cm", "point", "inertial"):
            eom = body_equations(key, *newton.state)
            V = eom.velocity if key == "inertial" else np.append(eom.velocity[:3], np.zeros(3))
            exact_rate = as_float(newton.path.rate(lambda t, key=key: newton.inertia(key, t)))
            assert_close(inertia_rate(eom.inertia, V), exact_rate, 1e-13)


@few
@given(seeds)
def test_momentum_balance_tells_who_conserves(seed):
    """SRB:momentum. f = dh/dt at the CM and inertially referenced, on a forced motion; not at a point."""
    with mp.workdps(DIGITS):
        newton = Newton(seed)
        for key, one in FORMULATIONS.items():
            rate = as_float(newton.path.rate(lambda t, key=key: newton.momentum(key, t)))
            gap = np.abs(rate - newton.force(key)).max() / np.abs(rate).max()
            assert (gap < 1e-13) == one.conserves_momentum
            assert gap < 1e-13 or gap > 1e-6  # nothing in between


@fast
@given(seeds)
def test_gyroscopic_terms(seed):
    """SRB:gyro-work, and the four terms from their common cause, the velocity of the frame."""
    rng = np.random.default_rng(seed)
    cloud = random_cloud(rng)
    mass, com, J_c = cloud.parameters
    state = spatial_inertia(mass, com, J_c), random_rotation(rng), rng.normal(size=3), rng.normal(size=6)
    _, R, _, V = state
    omega, p, J = V[:3], R @ com, R @ J_c @ R.T
    eom = {key: body_equations(key, *state) for key in FORMULATIONS}

    assert_close(eom["cm"].bias, np.concatenate([np.cross(omega, J @ omega), np.zeros(3)]), 1e-12)
    J_z = J + mass * (p @ p * np.eye(3) - np.outer(p, p))
    centrifugal = mass * np.cross(omega, np.cross(omega, p))
    assert_close(eom["point"].bias, np.concatenate([np.cross(omega, J_z @ omega), centrifugal]), 1e-12)
    frame_velocity = {
        "cm": np.append(np.zeros(3), eom["cm"].velocity[3:]),
        "point": np.append(np.zeros(3), eom["point"].velocity[3:]),
        "body": eom["body"].velocity,
        "inertial": np.zeros(6),
    }
    for key, one in FORMULATIONS.items():
        M6, beta, b = eom[key].inertia, eom[key].velocity, eom[key].bias
        assert_close(gyroscopic_in_frame(M6, beta, frame_velocity[key]), b, 1e-12)
        work = abs(beta @ b) / (np.linalg.norm(beta) * np.linalg.norm(b))
        assert work < 1e-13 or not one.bias_does_no_work  # SRB:gyro-work
    # the work of "point", in closed form: v · m ω×(ω×p), the angular row does none
    assert_close(eom["point"].velocity @ eom["point"].bias, V[3:] @ centrifugal, 1e-12)
    # SRB:ke-invariant: one kinetic energy in all four
    energies = [kinetic_energy(e.inertia, e.velocity) for e in eom.values()]
    assert_close(energies, [energies[0]] * 4, 1e-13)


def test_bad_input_is_named():
    M6, eye, zero = spatial_inertia(1.0, [0, 0, 1], np.eye(3)), np.eye(3), np.zeros(3)
    with pytest.raises(ModelError, match="no formulation 'hinge'; choose one of cm, point, body, inertial"):
        body_equations("hinge", M6, eye, zero, np.zeros(6))
    with pytest.raises(ModelError, match="rotation is not orthonormal"):
        body_equations("cm", M6, 2 * eye, zero, np.zeros(6))
    with pytest.raises(ShapeError, match=r"rotation must have shape \(3, 3\), one body at a time; got \(2, 3, 3\)"):
        body_equations("cm", M6, np.stack([eye, eye]), zero, np.zeros(6))
    point_mass = spatial_inertia(1.0, [0.3, 0.4, 0.5], np.zeros((3, 3)))
    for hopeless in (np.zeros((6, 6)), point_mass):
        with pytest.raises(SingularError, match="no mass or no inertia about some axis"):
            body_acceleration(hopeless, np.zeros(6), gyroscopic_about_point(hopeless, np.ones(6)))
