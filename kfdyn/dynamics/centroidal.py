"""The centroidal momentum matrix: momentum about the mass centre, as rates bring it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.multibody import System, centroidal_momentum
from kfdyn.multibody.calls.kernel import Kernel
from kfdyn.multibody.energy import expect_mass


def centroidal_momentum_matrix(system: System, q: ArrayLike, *, out: Array | None = None) -> Array:
    """Matrix A(q) of the momentum about the mass centre, ``centroidal_momentum(system, q, v)`` = A v.

    Parameters
    ----------
    system : System
        The robot.
    q : (..., nq)
        Configurations.
    out : (..., 6, nv) array of float64, optional
        Where the answer goes, instead of a new array; returned.

    Returns
    -------
    (..., 6, nv) array
        Rows are [angular; linear], world orientation. Rotors carry no momentum; loops leave the coordinates as they
        are.

    Notes
    -----
    O(N): each column is the inertia of the composite body outboard of a hinge, times the hinge's axis. Pinocchio's
    ``ccrba`` has rows [linear; angular].

    Examples
    --------
    The linear part is the mass times the Jacobian of the mass centre:

    >>> import kfdyn as kf
    >>> centroidal_momentum_matrix(kf.models.pendulum(length=1.0, mass=2.0), [0.0])[3:, 0].round(12) + 0.0
    array([-2.,  0.,  0.])
    """
    answer: Array = CENTROIDAL_MATRIX.solve(system, q, out)
    expect_mass(system)
    return answer


def _by_columns(system: System, q: ArrayLike) -> Array:
    """The momenta that unit rates bring."""
    here = np.asarray(q, float)
    return np.swapaxes(centroidal_momentum(system, here[..., None, :], np.eye(system.nv)), -1, -2)


CENTROIDAL_MATRIX = Kernel(
    "kfdyn.dynamics.recursions.centroidal",
    "CENTROIDAL_MATRIX",
    coupled=True,
    meaning="the momentum",
    otherwise=_by_columns,
)
