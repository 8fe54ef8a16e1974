"""M dβ/dt + b = f for one rigid body, in any of the four formulations, and the bridges between them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import SingularError
from kfdyn.spatial._arrays import Array, check_rotation, index_of, together, trailing
from kfdyn.spatial.inertia import inertia_parameters, momentum
from kfdyn.spatial.single_body.formulation import Formulation, formulation_named
from kfdyn.spatial.transform import (
    _inverse,
    _rigid,
    inverse_transform,
    rigid_transform,
    transform_force,
    transform_velocity,
)

SINGULAR = 1e-12  # of trace J: a principal moment this small is rounding


class BodyEquations(NamedTuple):
    """Equations of motion ``inertia @ dβ/dt + bias = force`` of one formulation at one state.

    velocity (..., 6): β. inertia (..., 6, 6): M. bias (..., 6): b. momentum (..., 6): h = Mβ.
    phi (..., 6, 6): φ(z, r), from the body frame's origin in inertial axes to the frame r of the formulation.

    Examples
    --------
    A wheel spun up about its axis, read at its mass centre: no gyroscopic force.

    >>> from kfdyn.spatial import spatial_inertia
    >>> wheel = spatial_inertia(2.0, [0, 0, 0], np.diag([0.5, 0.5, 1.0]))
    >>> eom = body_equations("cm", wheel, np.eye(3), np.zeros(3), [0, 0, 3.0, 0, 0, 0])
    >>> eom.momentum, eom.bias
    (array([0., 0., 3., 0., 0., 0.]), array([0., 0., 0., 0., 0., 0.]))
    """

    velocity: Array
    inertia: Array
    bias: Array
    momentum: Array
    phi: Array

    def force(self, f: ArrayLike) -> Array:
        """Force that goes with β, φ^-1 f, from the spatial force f (..., 6) about z in inertial axes."""
        return transform_force(inverse_transform(self.phi), f)


def body_equations(
    formulation: str, M6: ArrayLike, rotation: ArrayLike, position: ArrayLike, V: ArrayLike
) -> BodyEquations:
    """Equations of motion M dβ/dt + b = f of a rigid body in one formulation.

    Parameters
    ----------
    formulation : {"cm", "point", "body", "inertial"}
        A key of :data:`FORMULATIONS`.
    M6 : (..., 6, 6)
        Spatial inertia about the body frame's origin z, in body axes.
    rotation : (..., 3, 3)
        Body axes to inertial axes.
    position : (..., 3)
        Of z, from the inertial origin.
    V : (..., 6)
        Spatial velocity of the body at z, in inertial axes.

    Returns
    -------
    BodyEquations

    Notes
    -----
    Source: SRB, equations of motion with β = V(C), V(z), body-frame V(z), V_I.

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial import spatial_inertia
    >>> from kfdyn.spatial.single_body import body_equations
    >>> M6 = spatial_inertia(2.0, [0.5, 0, 0], np.diag([1.0, 2.0, 3.0]))
    >>> V = [0, 0, 3, 1, 0, 0]
    >>> body_equations("cm", M6, np.eye(3), [0, 0, 0], V).velocity
    array([0. , 0. , 3. , 1. , 1.5, 0. ])
    >>> body_equations("inertial", M6, np.eye(3), [0, 2, 0], V).momentum[2]
    np.float64(6.5)
    """
    one = formulation_named(formulation)
    M6, rotation, position, V, com = _state(M6, rotation, position, V)
    return equations_at(one, M6, com, rotation, position, V)


def equations_at(one: Formulation, M6: Array, com: Array, rotation: Array, position: Array, V: Array) -> BodyEquations:
    """What :func:`body_equations` returns, for arguments already checked: an integrator's inner loop."""
    phi = one.frame(rotation, position, com)
    beta = np.einsum("...ji,...j->...i", phi, V)
    to_frame = _inverse(phi) @ _rigid(np.zeros(3), rotation)  # φ^-1(z, r) diag(R, R): body axes at z to r
    inertia = to_frame @ M6 @ np.swapaxes(to_frame, -1, -2)
    inertia = 0.5 * (inertia + np.swapaxes(inertia, -1, -2))
    return BodyEquations(beta, inertia, one.gyroscopic(inertia, beta), momentum(inertia, beta), phi)


def body_acceleration(M6: ArrayLike, force: ArrayLike, bias: ArrayLike) -> Array:
    """Acceleration dβ/dt = M^-1 (f − b) of a free body, solved at its mass centre.

    Parameters
    ----------
    M6 : (..., 6, 6)
        Spatial inertia in the frame of the formulation.
    force, bias : (..., 6)
        f and b there.

    Returns
    -------
    (..., 6)

    Raises
    ------
    SingularError
        If the body has no mass, or no inertia about some axis: its M, the innovations covariance D of a free
        hinge, is then singular.

    Notes
    -----
    M^-1 = φ^-* diag(J_c^-1, 1/m) φ^-1 with φ = φ(r, C). Cost: one 3×3 solve.

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial import spatial_inertia
    >>> from kfdyn.spatial.single_body import body_acceleration
    >>> body_acceleration(spatial_inertia(2.0, [0, 0, 0], np.eye(3)), [1, 0, 0, 0, 0, 4], np.zeros(6))
    array([1., 0., 0., 0., 0., 2.])
    """
    M6, f, b = trailing(M6, (6, 6), "M6"), trailing(force, (6,), "force"), trailing(bias, (6,), "bias")
    together((M6, 2, "M6"), (f, 1, "force"), (b, 1, "bias"))
    mass, com, J_c = inertia_parameters(M6)
    least = SINGULAR * np.trace(M6[..., :3, :3], axis1=-2, axis2=-1)
    fault = (mass <= 0) | (np.linalg.eigvalsh(J_c)[..., 0] <= least)
    if fault.any():
        raise SingularError(
            f"M6{index_of(fault)} has no mass or no inertia about some axis, so its acceleration is not "
            "determined; give the body a mass and three positive principal moments"
        )
    to_mass_centre = inverse_transform(rigid_transform(com))
    at_c = transform_force(to_mass_centre, f - b)
    angular = np.linalg.solve(J_c, at_c[..., :3, None])[..., 0]
    acceleration = np.concatenate([angular, at_c[..., 3:] / mass[..., None]], axis=-1)
    return transform_velocity(to_mass_centre, acceleration)


def point_acceleration(acceleration: ArrayLike, omega: ArrayLike, l: ArrayLike) -> Array:
    """Acceleration of point y of the body from that of x: dV(y)/dt = φ*(x, y) dV(x)/dt + [0; ω × (ω × l)].

    Parameters
    ----------
    acceleration : (..., 6)
        Inertial derivative of V(x).
    omega : (..., 3)
        Angular velocity.
    l : (..., 3)
        l(x, y), from x to y.

    Returns
    -------
    (..., 6)
        Inertial derivative of V(y).

    Notes
    -----
    The second term is −V~(y) V(x). Source: SRB, general acceleration relationship.

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial.single_body import point_acceleration
    >>> point_acceleration(np.zeros(6), [0, 0, 2], [1, 0, 0])  # centripetal
    array([ 0.,  0.,  0., -4.,  0.,  0.])
    """
    omega, l = trailing(omega, (3,), "omega"), trailing(l, (3,), "l")
    together((omega, 1, "omega"), (l, 1, "l"))
    moved = transform_velocity(rigid_transform(l), acceleration)
    centripetal = np.cross(omega, np.cross(omega, l))
    return moved + np.concatenate([np.zeros_like(centripetal), centripetal], axis=-1)


def convert_acceleration(
    source: str,
    target: str,
    acceleration: ArrayLike,
    M6: ArrayLike,
    rotation: ArrayLike,
    position: ArrayLike,
    V: ArrayLike,
) -> Array:
    """Generalised acceleration dβ/dt of one formulation turned into that of another.

    dβ/dt = φ*(z, r) dV(z)/dt + (dφ*/dt) V(z), solved for dV(z)/dt in the source, applied in the target.

    Parameters
    ----------
    source, target : {"cm", "point", "body", "inertial"}
    acceleration : (..., 6)
        dβ/dt of the source.
    M6, rotation, position, V
        As in :func:`body_equations`.

    Returns
    -------
    (..., 6)
        dβ/dt of the target.

    Notes
    -----
    Source: SRB, relation to CM generalised velocities and between body and inertial derivative. Inertially
    referenced, the correction is −[0; ω × v(z)].

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial import spatial_inertia
    >>> from kfdyn.spatial.single_body import convert_acceleration
    >>> M6 = spatial_inertia(2.0, [0.5, 0, 0], np.eye(3))
    >>> convert_acceleration("cm", "point", np.zeros(6), M6, np.eye(3), np.zeros(3), [0, 0, 2, 0, 0, 0])
    array([0., 0., 0., 2., 0., 0.])
    """
    M6, rotation, position, V, com = _state(M6, rotation, position, V)
    old, old_drift = _map_and_drift(formulation_named(source), rotation, position, V, com)
    new, new_drift = _map_and_drift(formulation_named(target), rotation, position, V, com)
    rate = trailing(acceleration, (6,), "acceleration")
    at_z = transform_velocity(inverse_transform(old), rate - old_drift)
    return transform_velocity(new, at_z) + new_drift


def _map_and_drift(one: Formulation, rotation: Array, position: Array, V: Array, com: Array) -> tuple[Array, Array]:
    """φ(z, r) and (dφ*/dt) V(z), the latter in the axes of r."""
    phi = one.frame(rotation, position, com)
    l = np.einsum("...ij,...j->...i", rotation, com)
    linear = one.coriolis(V[..., :3], V[..., 3:], l)
    turned = np.einsum("...ji,...j->...i", phi[..., :3, :3], linear)
    return phi, np.concatenate([np.zeros_like(turned), turned], axis=-1)


def _state(
    M6: ArrayLike, rotation: ArrayLike, position: ArrayLike, V: ArrayLike
) -> tuple[Array, Array, Array, Array, Array]:
    M6, V = trailing(M6, (6, 6), "M6"), trailing(V, (6,), "V")
    rotation = check_rotation(trailing(rotation, (3, 3), "rotation"))
    position = trailing(position, (3,), "position")
    together((M6, 2, "M6"), (rotation, 2, "rotation"), (position, 1, "position"), (V, 1, "V"))
    return M6, rotation, position, V, inertia_parameters(M6).com
