"""Rotors behind gears as bodies of their own: their inertia counts with the square of the ratio, and they are gyros."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.multibody.calls.arguments import expect_system
from kfdyn.multibody.parts.body import Body
from kfdyn.multibody.parts.coupling import Coupling, told
from kfdyn.multibody.parts.hinge import Hinge

if TYPE_CHECKING:
    from kfdyn.multibody.flexible import FlexibleSystem
    from kfdyn.multibody.system import System


class Rotor(NamedTuple):
    """A motor's rotor on the inboard side of a revolute hinge, about the hinge's axis.

    Attributes
    ----------
    inertia : float
        Moment of inertia about its axis.
    ratio : float
        Its rate for unit rate of the hinge, both against the inboard body; negative if it turns the other way.
    transverse : float, optional
        Moment of inertia across the axis; half of ``inertia``, that of a disc, if not given.
    mass : float
        Mass, at the hinge point.

    Examples
    --------
    >>> Rotor(1e-4, ratio=100.0).inertia
    0.0001
    """

    inertia: float
    ratio: float
    transverse: float | None = None
    mass: float = 0.0


Robot = TypeVar("Robot", "System", "FlexibleSystem")


def with_rotors(system: Robot, rotors: Mapping[str, Rotor]) -> Robot:
    """Return the system with rotors as bodies, each geared to its hinge: armature, and the gyroscopic part beside it.

    An ``armature`` of ratio² · inertia says how a rotor resists being sped up. A rotor that is carried about resists
    being turned, too: its angular momentum ratio · inertia · rate is a gyro's. Here it is a body coupled to its hinge,
    so that everything of the system knows.

    Parameters
    ----------
    system : System or FlexibleSystem
        Without loops on the hinges in question; its coordinates stay as they are.
    rotors : mapping of str to Rotor
        Rotors by the name of their hinge. An armature that the hinge has stays: take it away where it was the rotor's.

    Returns
    -------
    System or FlexibleSystem

    Raises
    ------
    ModelError
        If a hinge is not revolute, or coupled already.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> geared = kf.with_rotors(kf.models.pendulum(length=1.0), {"pivot": kf.Rotor(1e-3, ratio=10.0)})
    >>> geared.nv, kf.mass_matrix(geared, [0.0]).round(9)  # 1 + 10² · 0.001
    (1, array([[1.1]]))
    """
    expect_system(system)
    bodies, couplings = list(system.bodies), list(system.couplings)
    for name, rotor in rotors.items():
        given = system.bodies[system.hinge_index(name)]
        body: Body = getattr(given, "rigid", given)  # type: ignore[arg-type]
        if body.hinge.kind != "revolute":
            raise ModelError(f"hinge {name!r}: rotors are for revolute hinges, and it is {body.hinge.kind}")
        if not (np.isfinite(rotor.ratio) and rotor.ratio):
            raise ModelError(f"hinge {name!r}: the ratio of its rotor must be finite and not 0, got {rotor.ratio}")
        coupled = next((c for c in couplings if name in c.hinges), None)
        if coupled is not None:
            raise ModelError(
                f"hinge {name!r} is coupled already ({told(coupled.hinges)}); make the rotor a body, and its hinge one "
                "more of that coupling"
            )
        bodies.append(rotor_body(f"{name} rotor", body, rotor))
        couplings.append(Coupling([name, f"{name} rotor"], [1.0, rotor.ratio]))
    geared = type(system)(bodies, system.gravity, dict(system.frames), system.name, couplings=couplings)
    return geared.with_loops(system.loops)


def rotor_body(name: str, body: Body, rotor: Rotor) -> Body:
    """A rotor as a body of its own, on a hinge beside that of the body it drives."""
    axis = body.hinge.screws[0, :3]
    across = 0.5 * rotor.inertia if rotor.transverse is None else rotor.transverse
    M = np.zeros((6, 6))
    M[:3, :3] = across * np.eye(3) + (rotor.inertia - across) * np.outer(axis, axis)
    M[3:, 3:] = rotor.mass * np.eye(3)
    return Body(name, M, Hinge.revolute(axis), body.parent, rotation=body.rotation, position=body.position)
