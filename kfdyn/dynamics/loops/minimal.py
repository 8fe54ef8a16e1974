"""Minimal coordinates of a system with loops: a choice of independent ones, named, and the dynamics in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.dynamics.bias import bias_forces
from kfdyn.dynamics.loops.embedding import embedded_forest
from kfdyn.dynamics.mass_matrix import mass_matrix
from kfdyn.errors import ShapeError
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import expect_system

if TYPE_CHECKING:
    from kfdyn.estimation import InnovationsFactor, StateSpace


@dataclass(frozen=True, eq=False)
class MinimalCoordinates:
    """Independent coordinates of a system in one state, and its dynamics in them: M u̇ + c = X*tau.

    Attributes
    ----------
    independent : (f,) of int
        Which entries of v are independent, in the order of ``as_estimation``'s outputs.
    names : tuple of str
        Their hinges, as "knee", or "base[2]" for one of several dofs.
    X, drift : (nv, f), (nv,)
        v = X u and a = X u̇ + drift.
    mass_matrix, bias : (f, f), (f,)
        X*𝓜X and X*(c + 𝓜 drift).
    ss : StateSpace
        The embedded model, whose covariance of T is ``mass_matrix``.

    Examples
    --------
    >>> import kfdyn as kf
    >>> one = kf.minimal_coordinates(kf.models.four_bar(), kf.models.four_bar_configuration(0.4))
    >>> one.names[0] in kf.models.four_bar().hinge_names, one.mass_matrix.shape
    (True, (1, 1))
    """

    independent: NDArray[np.int64]
    names: tuple[str, ...]
    X: Array
    drift: Array
    mass_matrix: Array
    bias: Array
    ss: StateSpace

    @property
    def logdet(self) -> float:
        """Log-determinant of the mass matrix, Σ log det D(k); it depends on the choice of coordinates."""
        return float(self.factor.logdet())

    @property
    def factor(self) -> InnovationsFactor:
        """Innovations factor of the embedded model: solve, whiten, sample, single elements."""
        from kfdyn.estimation import innovations_factor

        return innovations_factor(self.ss)


def minimal_coordinates(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None = None,
    external_forces: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
) -> MinimalCoordinates:
    """Choose independent coordinates of a system with couplings or loops in one state, by pivoting.

    ::

        v = X u,   J X = 0,   X(independent, :) = 1;      a = X u̇ + Ẋu

    Parameters
    ----------
    system : System
        With couplings or loops; of a tree all coordinates are independent.
    q : (nq,)
        One configuration, on the loops.
    v : (nv,), optional
        At rest if not given.
    external_forces : (n_bodies, 6), optional
        [moment; force] on each body, world orientation, at the body's origin.
    gravity : (3,), optional
        ``system.gravity`` if not given.

    Returns
    -------
    MinimalCoordinates
        The choice, and mass matrix, bias forces and embedded model in it.

    Raises
    ------
    SingularError
        At a dead centre, where no choice is good.

    Notes
    -----
    The coordinates chosen are those that move the others least, so that the choice may change along a motion. Source:
    SKO "embedding"; THEORY section 12.

    Examples
    --------
    A slider and crank has one degree of freedom, and it knows which:

    >>> import kfdyn as kf
    >>> engine = kf.models.slider_crank()
    >>> one = kf.minimal_coordinates(engine, kf.assemble(engine, [0.5, 0.0, 0.0, 1.0]))
    >>> one.X.shape
    (4, 1)
    """
    expect_system(system)
    if np.ndim(q) != 1:
        raise ShapeError(f"minimal_coordinates takes one configuration of shape ({system.nq},), got {np.shape(q)}")
    expect_system(system)
    base = system.without_loops
    M, c = mass_matrix(base, q), bias_forces(base, q, v, external_forces, gravity)
    forest = embedded_forest(system, q, v, gravity, external_forces, named=True)
    X, drift = np.zeros((system.nv, forest.ss.n_outputs)), np.zeros(system.nv)
    chosen, at = [np.zeros(0, dtype=np.int64)], 0
    for node, free in zip(forest.plan.nodes, forest.freedoms):
        X[node.own, at : at + free.size] = free.X[0]
        drift[node.own] = free.drift[0]
        assert free.independent is not None
        chosen.append(node.own[free.independent])
        at += free.size
    independent = np.concatenate(chosen)
    names = system.dof_names
    return MinimalCoordinates(
        independent, tuple(names[int(i)] for i in independent), X, drift, X.T @ M @ X, X.T @ (c + M @ drift), forest.ss
    )
