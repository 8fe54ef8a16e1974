"""Absolute angles: the same robot in coordinates that are counted from the world and not from the parent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kfdyn.arrays import Array
from kfdyn.multibody.calls.arguments import expect_system
from kfdyn.multibody.kinds import expect_tree
from kfdyn.multibody.parts.coupling import Coupling
from kfdyn.multibody.parts.hinge import Coordinates

if TYPE_CHECKING:
    from kfdyn.multibody.system import System


# Axes whose directions differ by less are meant to be parallel: files give angles with some ten digits.
PARALLEL = 1e-9


def absolute_angles(system: System) -> System:
    """Return the same robot with hinges that turn about parallel axes measured by their sums.

    ::

        θ_absolute(k) = θ(k) ± θ_absolute(j),     j the next hinge inboard whose axis is parallel to that of k

    Links of a planar arm are then told by their angles to the vertical, and a leg's hip, knee and ankle by the
    inclinations of thigh, shank and foot. Whatever is computed of the result (𝓜, forward dynamics, simulation) is in
    these coordinates; generalised forces are those that do work on them.

    Parameters
    ----------
    system : System
        A tree. Hinges whose axis is parallel to no other one inboard, and those of several dofs, keep their
        coordinates; fixed hinges and slides in between turn nothing and are passed over.

    Returns
    -------
    System
        With one :class:`Coupling` for each set of parallel hinges, of as many coordinates as hinges; ``expand(q)``
        gives the relative angles.

    Notes
    -----
    A choice of coordinates is a coupling with a square X: 𝓜_absolute = X*𝓜X with relative rates = X times absolute
    ones. Source: SRB, generalised coordinates and generalised velocities.

    Examples
    --------
    Of a double pendulum in absolute angles, 𝓜 depends on the difference of the angles alone, and the lower link's
    own moment of inertia is all that its angle sees:

    >>> import kfdyn as kf
    >>> arm = kf.absolute_angles(kf.models.double_pendulum())
    >>> arm.expand([0.3, 0.8]).round(12)
    array([0.3, 0.5])
    >>> kf.mass_matrix(arm, [0.3, 0.8])[1, 1]
    np.float64(1.0)
    """
    expect_system(system)
    expect_tree(system, "absolute_angles", "ask for absolute angles of system.open_tree, and couple the result")
    inboard = {k: found for k in range(system.n_bodies) if (found := _next_parallel(system, k)) is not None}
    sets: dict[int, list[int]] = {}
    for k in map(int, system.layout.order):
        first = k
        while first in inboard:
            first = inboard[first][0]
        if _axis(system, k) is not None:
            sets.setdefault(first, []).append(k)
    couplings = []
    for members in (members for members in sets.values() if len(members) > 1):
        X, place = np.eye(len(members)), {k: i for i, k in enumerate(members)}
        for k in members:
            if k in inboard:
                j, sign = inboard[k]
                X[place[k], place[j]] = -sign
        couplings.append(Coupling([system.hinge_names[k] for k in members], X))
    return system.with_couplings(couplings)


def _axis(system: System, k: int) -> Array | None:
    """Axis of a hinge of one dof that turns, in its body's frame, where it stays; None of others."""
    hinge = system.bodies[k].hinge
    if hinge.coordinates is not Coordinates.SCREWS or hinge.nv != 1 or not hinge.screws[0, :3].any():
        return None
    return np.asarray(hinge.screws[0, :3])


def _next_parallel(system: System, k: int) -> tuple[int, float] | None:
    """The next hinge inboard that turns, and ±1 as its axis points, if it is parallel; else None."""
    axis = _axis(system, k)
    while axis is not None:
        axis, k = np.asarray(system.bodies[k].rotation) @ axis, int(system.parent[k])
        if k < 0 or (system.bodies[k].hinge.nv > 0 and system.bodies[k].hinge.coordinates is not Coordinates.SCREWS):
            return None
        other = _axis(system, k)
        if other is not None:
            return (k, float(np.sign(axis @ other))) if np.linalg.norm(np.cross(axis, other)) <= PARALLEL else None
        if system.bodies[k].hinge.screws[:, :3].any():  # turns about several axes
            return None
    return None
