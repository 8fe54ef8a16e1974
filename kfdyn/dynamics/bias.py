"""Bias forces: what gravity, velocities and external forces ask of the hinges when nothing accelerates."""

from __future__ import annotations

from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.dynamics.inverse import by_engine
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
    system : System
        The robot.
    q : (..., nq)
        Configurations; leading axes of all arguments broadcast.
    v : (..., nv), optional
        At rest if not given: c is then the torque of gravity (and of the external forces).
    external_forces : (..., n_bodies, 6), optional
        [moment; force] on each body, world orientation, at the body's origin.
    gravity : (..., 3), optional
        ``system.gravity`` if not given.
    out : (..., nv) array of float64, optional
        Where the answer goes, instead of a new array; returned. It may overlap arguments. After an error its numbers
        mean nothing.

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


#: Inverse dynamics without an acceleration; of loops its answer depends on a choice of coordinates.
BIAS = Solver(
    "bias_forces",
    "kfdyn.dynamics.recursions.inverse",
    "INVERSE",
    coupled=True,
    explain=by_engine,
    inverts=False,
    minimal="bias",
)
