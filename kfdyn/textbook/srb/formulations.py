"""M dβ/dt + b = f for one rigid body, in four formulations: which frame r the velocity β = φ*(z, r) V(z) is read in.

z is the origin of the body frame, V(z) the spatial velocity there in inertial axes. With φ = φ(z, r) follow the force
φ⁻¹f(z), the momentum φ⁻¹h(z) and the inertia φ⁻¹M(z)φ⁻*. V̄ = [ω~ v~; 0 ω~] and V~ = −V̄*.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kfdyn.errors import ModelError, ShapeError, SingularError
from kfdyn.textbook.algebra import Array, block, cross, identity, inverse, tilde, zeros

_ROUNDED = 1e-12  # of trace J: a principal moment this small is rounding


class Formulation(NamedTuple):
    """One row of the summary table: β and b as SRB writes them, and three statements about them.

    Attributes
    ----------
    key, title : str
        Short and long name.
    velocity, bias : str
        β and b as SRB writes them.
    conserves_momentum, bias_does_no_work, free_of_linear_velocity : bool
        What the table states of them.

    Examples
    --------
    >>> from kfdyn.textbook import srb
    >>> point = srb.FORMULATIONS["point"]
    >>> point.velocity, point.bias, point.conserves_momentum
    ('ᴵV(z)', 'V̄ω(z) M(z) Vω(z)', False)
    """

    key: str
    title: str
    velocity: str
    bias: str
    conserves_momentum: bool
    bias_does_no_work: bool
    free_of_linear_velocity: bool


FORMULATIONS = {
    row[0]: Formulation(*row)
    for row in (
        ("cm", "mass centre, inertial derivative", "ᴵV(C)", "V̄ω(C) M(C) Vω(C)", True, True, True),
        ("point", "any point, inertial derivative", "ᴵV(z)", "V̄ω(z) M(z) Vω(z)", False, False, True),
        ("body", "any point, body derivative", "ᴮV(z)", "V̄(z) h(z)", False, True, False),
        ("inertial", "inertially referenced", "V_I = φ*(z, I) V(z)", "V̄_I h_I", True, True, False),
    )
}


class BodyEquations(NamedTuple):
    """M dβ/dt + b = f at one state.

    velocity (6,): β. inertia (6, 6): M. bias (6,): b. momentum (6,): h = Mβ. phi (6, 6): φ(z, r).

    Examples
    --------
    A wheel spun up about its axis, read at its mass centre: no gyroscopic force.

    >>> import numpy as np
    >>> wheel = np.diag([0.5, 0.5, 1.0, 2.0, 2.0, 2.0])
    >>> eom = body_equations("cm", wheel, np.eye(3), np.zeros(3), [0, 0, 3.0, 0, 0, 0])
    >>> eom.momentum, eom.bias
    (array([0., 0., 3., 0., 0., 0.]), array([0., 0., 0., 0., 0., 0.]))
    """

    velocity: Array
    inertia: Array
    bias: Array
    momentum: Array
    phi: Array

    def force(self, f: Array) -> Array:
        """Return the force that goes with β, φ⁻¹f, from the spatial force f (6,) about z in inertial axes."""
        return _inverse(self.phi) @ np.asarray(f)


def body_equations(formulation: str, M6: Array, rotation: Array, position: Array, V: Array) -> BodyEquations:
    """Write M dβ/dt + b = f of a rigid body in one formulation.

    Parameters
    ----------
    formulation : {"cm", "point", "body", "inertial"}
        A key of ``FORMULATIONS``.
    M6 : (6, 6)
        Spatial inertia about z, in body axes.
    rotation : (3, 3)
        Body axes to inertial axes.
    position, V : (3,), (6,)
        Of z from the inertial origin, and the body's spatial velocity there, in inertial axes.

    Returns
    -------
    BodyEquations

    Notes
    -----
    Source: SRB, equations of motion with β = V(C), V(z), body-frame V(z), V_I.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> M6 = kf.spatial.spatial_inertia(2.0, [0.5, 0, 0], np.diag([1.0, 2.0, 3.0]))
    >>> V = [0, 0, 3, 1, 0, 0]
    >>> body_equations("cm", M6, np.eye(3), [0, 0, 0], V).velocity
    array([0. , 0. , 3. , 1. , 1.5, 0. ])
    >>> body_equations("inertial", M6, np.eye(3), [0, 2, 0], V).momentum[2]
    np.float64(6.5)
    """
    M6, rotation, position, V = _state(formulation, M6, rotation, position, V)
    phi = _frame(formulation, rotation, position, _mass_centre(M6))
    back = _inverse(phi)
    turn = _shift(position * 0, rotation)
    inertia = back @ turn @ M6 @ turn.T @ back.T
    beta = phi.T @ V
    gyroscopic = gyroscopic_about_point if formulation in ("cm", "point") else gyroscopic_about_body
    return BodyEquations(beta, inertia, gyroscopic(inertia, beta), inertia @ beta, phi)


def body_acceleration(M6: Array, force: Array, bias: Array) -> Array:
    """Return dβ/dt = M⁻¹(f − b) (6,) of a free body, solved at its mass centre, with φ = φ(r, C).

    Parameters
    ----------
    M6 : (6, 6)
        Spatial inertia in the frame of the formulation.
    force, bias : (6,)
        f and b there.

    Raises
    ------
    SingularError
        If the body has no mass, or no inertia about some axis.

    Examples
    --------
    >>> import numpy as np
    >>> body_acceleration(np.diag([1.0, 1, 1, 2, 2, 2]), [1, 0, 0, 0, 0, 4], np.zeros(6))
    array([1., 0., 0., 0., 0., 2.])
    """
    M6, off = np.asarray(M6), np.asarray(force) - np.asarray(bias)
    what, mass = "a body that has no mass or no inertia about some axis", M6[5, 5]
    if not mass > 0:
        raise SingularError(f"{what} has no acceleration; give it a mass and three positive principal moments")
    com = _mass_centre(M6)
    J = M6[:3, :3] + mass * (tilde(com) @ tilde(com))
    if J.dtype != object and np.linalg.eigvalsh(J)[0] <= _ROUNDED * np.trace(M6[:3, :3]):
        raise SingularError(f"{what} has no acceleration; give it a mass and three positive principal moments")
    back = _inverse(_shift(com, identity(3, M6)))
    at_c = back @ off
    return back.T @ np.concatenate([inverse(J, what) @ at_c[:3], at_c[3:] / mass])


def point_acceleration(acceleration: Array, omega: Array, l: Array) -> Array:
    """Return dV(y)/dt = φ*(x, y) dV(x)/dt + [0; ω × (ω × l)] (6,) of a point y of the body, l = l(x, y).

    Source: SRB, general acceleration relationship; the second term is −V~(y)V(x).

    Parameters
    ----------
    acceleration : (6,)
        Inertial derivative of V(x).
    omega, l : (3,)
        Angular velocity, and l(x, y).

    Examples
    --------
    >>> import numpy as np
    >>> point_acceleration(np.zeros(6), [0, 0, 2], [1, 0, 0])  # centripetal
    array([ 0.,  0.,  0., -4.,  0.,  0.])
    """
    omega, l = np.asarray(omega), np.asarray(l)
    moved = _shift(l, identity(3, l)).T @ np.asarray(acceleration)
    return moved + np.concatenate([l * 0, cross(omega, cross(omega, l))])


def convert_acceleration(
    source: str, target: str, acceleration: Array, M6: Array, rotation: Array, position: Array, V: Array
) -> Array:
    """Convert dβ/dt (6,) of one formulation into that of another.

    dβ/dt = φ*(z, r) dV(z)/dt + (dφ*/dt) V(z), solved for dV(z)/dt in the source, applied in the target. The other
    arguments are those of :func:`body_equations`. Source: SRB, relation to CM generalised velocities, and between body
    and inertial derivative.

    Parameters
    ----------
    source, target : {"cm", "point", "body", "inertial"}
        Keys of ``FORMULATIONS``.
    acceleration : (6,)
        dβ/dt of the source.
    M6, rotation, position, V
        As in :func:`body_equations`.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> M6 = kf.spatial.spatial_inertia(2.0, [0.5, 0, 0], np.eye(3))
    >>> convert_acceleration("cm", "point", np.zeros(6), M6, np.eye(3), np.zeros(3), [0, 0, 2, 0, 0, 0])
    array([0., 0., 0., 2., 0., 0.])
    """
    M6, rotation, position, V = _state(source, M6, rotation, position, V)
    old, old_drift = _map_and_drift(source, M6, rotation, position, V)
    new, new_drift = _map_and_drift(target, M6, rotation, position, V)
    return new.T @ (_inverse(old).T @ (np.asarray(acceleration) - old_drift)) + new_drift


def gyroscopic_about_point(M6: Array, V: Array) -> Array:
    """Return b (6,) = V̄^ω M V^ω = [ω × Jω; m ω × (ω × p)] at a point of the body, inertial derivative.

    V^ω = [ω; 0]. Does no work at the mass centre; elsewhere it does. The cheapest of the four: no linear velocity need
    be known.

    Parameters
    ----------
    M6 : (6, 6)
        Spatial inertia about the point.
    V : (6,)
        Spatial velocity of the point; its linear part has no influence.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> M6 = kf.spatial.spatial_inertia(2.0, [0.5, 0, 0], np.eye(3))
    >>> gyroscopic_about_point(M6, [0, 0, 3, 9, 9, 9])  # the pull that keeps the mass centre circling
    array([ 0.,  0.,  0., -9.,  0.,  0.])
    """
    spin = np.asarray(V)
    spin = np.concatenate([spin[:3], spin[3:] * 0])
    return _bar(spin) @ (np.asarray(M6) @ spin) + spin * 0


def gyroscopic_about_body(M6: Array, V: Array) -> Array:
    """Return b (6,) = V̄ M V = V̄h for the body derivative and the inertially referenced velocity: no work.

    Parameters
    ----------
    M6 : (6, 6)
        Spatial inertia about a point of the body in the body's axes, or about a fixed point in inertial axes.
    V : (6,)
        Spatial velocity at that point in those axes.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> V = np.array([0.0, 0.0, 3.0, 1.0, 0.0, 0.0])
    >>> b = gyroscopic_about_body(kf.spatial.spatial_inertia(2.0, [0.5, 0, 0], np.eye(3)), V)
    >>> b, V @ b
    (array([ 0.,  0.,  3., -9.,  6.,  0.]), np.float64(0.0))
    """
    return _bar(V) @ (np.asarray(M6) @ np.asarray(V)) + np.asarray(V) * 0


def gyroscopic_in_frame(M6: Array, V: Array, frame_velocity: Array) -> Array:
    """Return the gyroscopic force b (6,) = V̄MV + M F~V in a frame that itself moves with spatial velocity F.

    The four formulations are four frames: F = 0 (inertially referenced), F = V (body derivative), and F = [0; v]
    (inertial derivative at a point, or at the mass centre). In the frame dh/dt + F̄h = f, and the body's inertia has the
    rate W̄M − MW~ with W = V − F. So momentum is conserved exactly when F̄h = 0, and b works when V*M F~V ≠ 0.

    Parameters
    ----------
    M6 : (6, 6)
        Spatial inertia about the frame's origin, in its axes.
    V, frame_velocity : (6,)
        Spatial velocities of body and frame there.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> M6, V = kf.spatial.spatial_inertia(2.0, [0.5, 0, 0], np.eye(3)), np.arange(6.0)
    >>> np.array_equal(gyroscopic_in_frame(M6, V, V), gyroscopic_about_body(M6, V))
    True
    """
    return gyroscopic_about_body(M6, V) + np.asarray(M6) @ (-_bar(frame_velocity).T @ np.asarray(V))


def inertia_rate(M6: Array, V: Array) -> Array:
    """Return dM/dt = V̄M − MV~ (6, 6) of a body that moves past its reference with V, in inertial axes.

    V is [ω; 0] for a point that moves with the body, the inertially referenced velocity for a point fixed in space.
    Source: SRB, time derivative of the spatial inertia.

    Parameters
    ----------
    M6 : (6, 6)
        Spatial inertia about the reference point, in inertial axes.
    V : (6,)
        Spatial velocity of the body relative to the reference.

    Examples
    --------
    >>> import numpy as np
    >>> M6 = np.diag([1.0, 2.0, 3.0, 1.0, 1.0, 1.0])
    >>> inertia_rate(M6, [0, 0, 1, 0, 0, 0])[0, 1]  # a spin about z makes J_xy grow at J_xx − J_yy
    np.float64(-1.0)
    """
    half = _bar(V) @ np.asarray(M6)
    return half + half.T


def generalized_force(A: Array, f: Array) -> Array:
    """Return T = A*f (m,), the generalised force of β where V = Aβ: T*β = f*V.

    The hinge map is the same rule: V = H*β gives T = Hf. Source: SRB, generalised forces from power.

    Parameters
    ----------
    A : (n, m)
        V = Aβ.
    f : (n,)
        Force whose power is f*V.

    Examples
    --------
    >>> generalized_force([[2.0]], [3.0])  # half the velocity, twice the force
    array([6.])
    """
    A, f = np.asarray(A), np.asarray(f)
    if A.ndim != 2 or f.shape != A.shape[:1]:
        raise ShapeError(f"A and f must have shapes (n, m) and (n,), got {A.shape} and {f.shape}")
    return A.T @ f


def change_velocities(A: Array, inertia: Array, bias: Array, drift: Array | None = None) -> tuple[Array, Array]:
    """Return A*MA (m, m) and A*(b + M (dA/dt)β) (m,): equations of motion for β where V = Aβ.

    Parameters
    ----------
    A, inertia, bias : (n, m), (n, n), (n,)
        Change of velocities, square or tall; M and b of M dV/dt + b = f.
    drift : (n,), optional
        (dA/dt)β; zero for a constant A.

    Notes
    -----
    Source: SRB, transforming generalised velocities.

    Examples
    --------
    >>> import numpy as np
    >>> change_velocities(2 * np.eye(2), np.eye(2), [1.0, 0.0])[0]
    array([[4., 0.],
           [0., 4.]])
    """
    A, M, b = np.asarray(A), np.asarray(inertia), np.asarray(bias)
    if drift is not None:
        b = b + M @ np.asarray(drift)
    return A.T @ M @ A, generalized_force(A, b)


def summary_table() -> tuple[Formulation, ...]:
    """Return SRB's summary of the equations of motion, a row each; ``measure_formulations`` puts numbers to it.

    Returns
    -------
    tuple of Formulation

    Examples
    --------
    >>> [row.key for row in summary_table() if row.conserves_momentum]
    ['cm', 'inertial']
    """
    return tuple(FORMULATIONS.values())


def _state(formulation: str, M6: Array, rotation: Array, position: Array, V: Array) -> tuple[Array, ...]:
    if formulation not in FORMULATIONS:
        raise ModelError(f"there is no formulation {formulation!r}; choose one of {', '.join(FORMULATIONS)}")
    state = tuple(np.asarray(x) for x in (M6, rotation, position, V))
    for x, name, shape in zip(state, ("M6", "rotation", "position", "V"), ((6, 6), (3, 3), (3,), (6,))):
        if x.shape != shape:
            raise ShapeError(f"{name} must have shape {shape}, one body at a time; got {x.shape}")
    R = state[1]
    if R.dtype != object and np.abs(R @ R.T - np.eye(3)).max() > 1e-8:
        raise ModelError("rotation is not orthonormal; its columns are the body's axes")
    return state


def _frame(formulation: str, rotation: Array, position: Array, com: Array) -> Array:
    """Return φ(z, r)."""
    if formulation not in FORMULATIONS:
        raise ModelError(f"there is no formulation {formulation!r}; choose one of {', '.join(FORMULATIONS)}")
    straight = identity(3, rotation)
    at = {
        "cm": (rotation @ com, straight),
        "point": (position * 0, straight),
        "body": (position * 0, rotation),
        "inertial": (-position, straight),
    }
    return _shift(*at[formulation])


def _map_and_drift(formulation: str, M6: Array, rotation: Array, position: Array, V: Array) -> tuple[Array, Array]:
    """Return φ(z, r), and (dφ*/dt) V(z) in the axes of r."""
    phi = _frame(formulation, rotation, position, _mass_centre(M6))
    omega, v, l = V[:3], V[3:], rotation @ _mass_centre(M6)
    linear = {
        "cm": cross(omega, cross(omega, l)),
        "point": v * 0,
        "body": -cross(omega, v),
        "inertial": -cross(omega, v),
    }[formulation]
    return phi, np.concatenate([v * 0, phi[:3, :3].T @ linear])


def _mass_centre(M6: Array) -> Array:
    """Return l(z, C) (3,), from the entries m l~."""
    product = M6[:3, 3:]
    mass = M6[5, 5]
    l = np.array([product[2, 1], product[0, 2], product[1, 0]])
    return l / mass if mass else l * 0


def _shift(l: Array, axes: Array) -> Array:
    """Return φ = [A l~A; 0 A] (6, 6): forces about a frame at l with axes A, seen from here."""
    return block([[axes, tilde(l) @ axes], [zeros((3, 3), axes), axes]])


def _inverse(phi: Array) -> Array:
    """Return φ⁻¹ = [A* (l~A)*; 0 A*], as (l~A)* = −A*l~."""
    A, lA = phi[:3, :3], phi[:3, 3:]
    return block([[A.T, lA.T], [zeros((3, 3), A), A.T]])


def _bar(V: Array) -> Array:
    """Return V̄ = [ω~ v~; 0 ω~] (6, 6)."""
    V = np.asarray(V)
    return block([[tilde(V[:3]), tilde(V[3:])], [zeros((3, 3), V), tilde(V[:3])]])
