"""Bias torques of gravity, velocities and external forces when nothing accelerates; and those of gravity alone."""

from __future__ import annotations

from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.dynamics.inverse import by_engine, inverse_dynamics
from kfdyn.dynamics.solving.forest import States
from kfdyn.dynamics.solving.solver import Solver
from kfdyn.multibody import System


def bias_forces(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None = None,
    external_forces: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
    *,
    out: Array | None = None,
) -> Array:
    """Bias c = Hφ(ξ + Mφ*η) of the equations of motion 𝓜 a + c = tau: the mean of T in the estimation problem.

    Parameters
    ----------
    system, q, external_forces, gravity, out
        As for :func:`kfdyn.forward_dynamics`.
    v : (..., nv), optional
        At rest if not given: c is then the torque of gravity (and of the external forces).

    Returns
    -------
    (..., nv) array
        Coriolis, centrifugal and gravity forces, less external ones.

    Notes
    -----
    O(N): inverse dynamics with a = 0. Sources: R86 (7.1), (7.11); SKO "eom"; PART (1).

    Examples
    --------
    >>> import kfdyn as kf
    >>> import numpy as np
    >>> bias_forces(kf.models.pendulum(length=1.0, mass=2.0), [0.5 * np.pi])
    array([19.62])
    """
    answer: Array = BIAS.solve(system, q, v, None, external_forces, gravity, out)
    return answer


def gravity_torques(
    system: System, q: ArrayLike, gravity: ArrayLike | None = None, *, out: Array | None = None
) -> Array:
    """Generalised forces that hold a robot at rest against gravity: the gradient of −Σ m g·c in tangent coordinates.

    Parameters
    ----------
    system : System
        The robot.
    q : (..., nq)
        Configurations; leading axes of both arguments broadcast.
    gravity : (..., 3), optional
        ``system.gravity`` if not given.
    out : (..., nv) array of float64, optional
        Where the answer goes, instead of a new array; returned. It may overlap arguments. After an error its numbers
        mean nothing.

    Returns
    -------
    (..., nv) array
        Generalised forces. Springs of hinges and of bodies that bend have no part in them.

    Notes
    -----
    O(N). For rigid bodies it is :func:`bias_forces` at rest, in fewer operations.

    Examples
    --------
    >>> import kfdyn as kf
    >>> import numpy as np
    >>> gravity_torques(kf.models.pendulum(length=1.0, mass=2.0), [0.5 * np.pi])
    array([19.62])
    """
    answer: Array = GRAVITY_TORQUES.solve(system, q, gravity, out)
    return answer


def _at_rest(states: States) -> dict[str, Array]:
    """Inverse dynamics at rest, of bodies that bend without what bends them."""
    return {"tau": inverse_dynamics(states.system.slack, states["q"], None, None, None, states.arrays.get("gravity"))}


#: Inverse dynamics without an acceleration; of loops its answer depends on a choice of coordinates.
BIAS = Solver(
    "bias_forces",
    "kfdyn.dynamics.recursions.inverse",
    "INVERSE",
    coupled=True,
    bending="kfdyn.dynamics.recursions.flexible.flexible_inverse",
    explain=by_engine,
    inverts=False,
    minimal="bias",
)
GRAVITY_TORQUES = Solver(
    "gravity_torques",
    "kfdyn.dynamics.recursions.gravity",
    "GRAVITY_TORQUES",
    coupled=True,
    explain=_at_rest,
    inverts=False,
    minimal="bias",
)
