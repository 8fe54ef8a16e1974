"""A flexible joint: rotor, gear, spring, link. Two hinges about one axis, one with the rotor, one with the spring."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.multibody.body import Body


def flexible_joint(
    link: Body, *, rotor: float, stiffness: float, damping: float = 0.0, ratio: float = 1.0
) -> tuple[Body, Body]:
    """Put a spring between the motor of a hinge and its link: a series-elastic actuator.

    The rotor turns by θ behind the gear and counts with R = ratio² J; the spring's deflection is δ, and the link turns
    by θ + δ (Spong 1987, gyroscopic terms of the rotor left out)::

        R θ̈ = τ − (k δ + d δ̇ seen from the motor's side),     link equations with the torque −k δ − d δ̇

    Parameters
    ----------
    link : Body
        The link with its hinge of one dof; its armature must be 0, which the rotor takes over.
    rotor : float
        Inertia J of the rotor on the motor's side of the gear [kg m²].
    stiffness, damping : float
        Of the spring, on the link's side [N m, N m s].
    ratio : float
        Gear ratio.

    Returns
    -------
    motor, link : Body
        For a System: the dof of ``motor`` is θ, that of ``link`` is δ with stiffness and damping of the spring, which
        :func:`kfdyn.simulate` takes into account; its implicit method takes steps that the spring does not limit.

    Examples
    --------
    >>> import kfdyn as kf
    >>> arm = kf.models.uniform_chain(1, length=0.5).bodies[0]
    >>> pair = kf.System(kf.flexible_joint(arm, rotor=1e-4, ratio=100.0, stiffness=500.0))
    >>> pair.nv, kf.mass_matrix(pair, [0.0, 0.0]).round(4).tolist()
    (2, [[1.0833, 0.0833], [0.0833, 0.0833]])
    """
    if not isinstance(link, Body):
        raise ModelError(f"a flexible joint carries a rigid Body, and {link.name!r} is a {type(link).__name__}")
    if link.hinge.nv != 1:
        raise ModelError(f"hinge {link.hinge_name!r} has {link.hinge.nv} dofs; a flexible joint has one")
    if np.any(link.armature):
        raise ModelError(
            f"hinge {link.hinge_name!r} has armature {link.armature}; give it as the joint's rotor instead"
        )
    if not (rotor > 0 and stiffness > 0 and damping >= 0 and ratio != 0):
        raise ModelError(
            f"hinge {link.hinge_name!r}: rotor and stiffness must be positive, damping not negative, ratio not 0; got "
            f"{rotor}, {stiffness}, {damping}, {ratio}"
        )
    name = f"{link.name}/motor"
    motor = Body(
        name, np.zeros((6, 6)), link.hinge, link.parent, link.rotation, link.position, f"{link.hinge_name}/motor",
        armature=ratio**2 * rotor, effort=link.effort, lower=link.lower, upper=link.upper,
    )  # fmt: skip
    kept: dict[str, Any] = {f.name: getattr(link, f.name) for f in fields(link)}
    for key in ("lower", "upper", "effort"):
        kept.pop(key)
    kept |= {"parent": name, "rotation": np.eye(3), "position": np.zeros(3), "stiffness": stiffness, "damping": damping}
    return motor, Body(**kept)
