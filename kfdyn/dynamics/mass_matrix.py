"""The mass matrix, three ways; its trace, determinant and zeros."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.dynamics.inverse import inverse_dynamics
from kfdyn.dynamics.solving.forest import DENSE, States, expect_method
from kfdyn.dynamics.solving.kinds import own_way
from kfdyn.dynamics.solving.solver import Solver
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import expect_system, filled
from kfdyn.multibody.kinds import expect_rigid

METHODS = ("composite", "columns", "operator")


def mass_matrix(
    system: System,
    q: ArrayLike,
    *,
    method: Literal["composite", "columns", "operator"] = "composite",
    out: Array | None = None,
) -> Array:
    """Return the mass matrix 𝓜 = HφMφ*H* + R, the covariance of T, by composite bodies (CRBA); exactly symmetric.

    ==============  ==========================================================================  =============
    ``composite``   gather ℛ, then walk from each hinge to the root: Hφ̃ℛH* below the diagonal   SKO, R86 7.11
    ``columns``     column i is inverse dynamics of a unit acceleration                         SKO, O(N²)
    ``operator``    H φ M φ* H* + R by sweeps over unit vectors                                 PART (1), O(N²)
    ==============  ==========================================================================  =============

    Parameters
    ----------
    system : System
        The robot.
    q : (..., nq)
        Configurations.
    method : {"composite", "columns", "operator"}
        The first is fused, O(N depth), and the one to use; the others agree with it and are there to show why.
    out : (..., nv, nv) array of float64, optional
        Where the answer goes, instead of a new array; returned. It may overlap arguments. After an error its numbers
        mean nothing.

    Returns
    -------
    (..., nv, nv) array
        Rotors included on the diagonal; zero between unrelated hinges.

    Notes
    -----
    Sources: R86 (7.9)–(7.11); SKO "mass-algorithm", "mass-decomp", "ne-columns"; of cov T, ATBI "cov-T",
    the closed form is ``kfdyn.Covariances(ss).T``.

    Examples
    --------
    >>> import kfdyn as kf
    >>> mass_matrix(kf.models.double_pendulum(), [0.0, 0.0])
    array([[5., 2.],
           [2., 1.]])
    """
    if method != "composite":
        return filled(out, _by_method(system, q, method))
    answer: Array = MASS_MATRIX.solve(system, q, out)
    return answer


def _by_method(system: System, q: ArrayLike, method: Any) -> Array:
    """Another way than the compiled one."""
    expect_system(system)
    expect_method(method, METHODS, "mass_matrix")
    own = own_way(system, "mass_matrix_by")
    if own is not None:
        return np.asarray(own(system, q, method))
    other = MASS_MATRIX.other(system)
    if other is not None:
        return np.asarray(other(system, q))
    states = States.of(system, q)
    return states.shaped(MASS_MATRIX.mended(states, None, None, lambda few: _formed(few, method))[0])


def _formed(states: States, method: Any = "operator") -> dict[str, Array]:
    """𝓜 (size, nv, nv) by the engine, or column by column."""
    out = np.zeros((states.size, states.system.nv, states.system.nv))
    if method == "columns":
        _by_columns(states, out)
    else:
        states.in_parts(lambda part: _by_sweeps(states, part, out))
    return {"the mass matrix": out}


def mass_matrix_trace(system: System, q: ArrayLike) -> Array:
    """Trace of the mass matrix, Σ tr(HℛH* + R), without forming it.

    Parameters
    ----------
    system : System
        The robot.
    q : (..., nq)
        Configurations.

    Returns
    -------
    (...) array
        O(N) each. Source: SKO "trace".

    Examples
    --------
    >>> import kfdyn as kf
    >>> mass_matrix_trace(kf.models.double_pendulum(), [0.0, 0.0])
    array(6.)
    """
    answer: Array = TRACE.solve(system, q)
    return answer


def mass_matrix_logdet(system: System, q: ArrayLike) -> Array:
    """Log-determinant of the mass matrix, Σ log det D(k): the innovations' covariances, nothing formed.

    Parameters
    ----------
    system : System
        The robot.
    q : (..., nq)
        Configurations.

    Returns
    -------
    (...) array
        O(N) each. Half of it is the Fixman potential in units of kT. Source: SKO "determinant".

    Examples
    --------
    >>> import kfdyn as kf
    >>> np.round(np.exp(mass_matrix_logdet(kf.models.double_pendulum(), [0.0, 0.0])), 12)
    np.float64(1.0)
    """
    return np.asarray(np.log(VARIANCES.solve(system, q)).sum(axis=-1))


def innovation_variances(states: States) -> dict[str, Array]:
    """Pivots of the D(k) of whole nodes by the engine, (size, nv): their product is the determinant."""
    from kfdyn.estimation.inference.riccati import riccati

    out = np.empty((states.size, states.system.nv))

    def work(part: slice) -> None:
        L = riccati(states.forest(part).ss).D_factor
        out[part] = np.concatenate([np.diag(L[k]) for k in range(len(L))]).reshape(-1, states.system.nv) ** 2

    states.in_parts(work)
    return {"the log-determinant of the mass matrix": out}


def mass_matrix_sparsity(system: System) -> NDArray[np.bool_]:
    """Mark where the mass matrix may be non-zero, (nv, nv): between hinges of which one carries the other.

    Source: SKO "mass-sparsity".

    Parameters
    ----------
    system : System
        The robot.

    Returns
    -------
    (nv, nv) array of bool
        True where an entry may differ from 0.

    Examples
    --------
    >>> import kfdyn as kf
    >>> mass_matrix_sparsity(kf.models.chain(3)).all()
    np.True_
    """
    expect_system(system)
    expect_rigid(system, "mass_matrix_sparsity")
    own = own_way(system, "mass_matrix_sparsity")
    if own is not None:
        return np.asarray(own(system))
    related = np.eye(system.n_bodies, dtype=bool)
    for k in system.layout.order:
        if system.parent[k] >= 0:
            related[k] |= related[system.parent[k]]  # k and its ancestors
    owner = np.repeat(np.arange(system.n_bodies), np.diff(system.layout.v_start))
    return (related | related.T)[np.ix_(owner, owner)]


def _by_columns(states: States, out: Array) -> None:
    unit, weightless = np.eye(states.system.nv), np.zeros(3)
    out[:] = inverse_dynamics(states.system, states["q"][:, None], None, unit, gravity=weightless).swapaxes(-1, -2)


def _by_sweeps(states: States, part: slice, out: Array) -> None:
    """Row i of ``unit`` is the same unit vector for every tree of the forest: nv right-hand sides serve them all."""
    from kfdyn.estimation import Operators

    forest = states.forest(part)
    nv = states.system.nv
    size = part.stop - part.start
    unit = np.tile(np.eye(nv), size)
    columns = Operators(forest.ss).output_cov.forward(unit)
    out[part] = columns.reshape(nv, size, nv).transpose(1, 2, 0)


_ROOM, _COUPLED = "kfdyn.dynamics.recursions.mass_matrix", "kfdyn.dynamics.recursions.coupled.geared"

MASS_MATRIX = Solver(
    "mass_matrix", _ROOM, "MASS_MATRIX", coupled=True, explain=_formed, inverts=False, minimal="mass_matrix"
)
TRACE = Solver(
    "mass_matrix_trace", _ROOM, "TRACE", inverts=False,
    explain=lambda states: {"the trace": np.trace(mass_matrix(states.system, states["q"]), axis1=-2, axis2=-1)},
)  # fmt: skip
VARIANCES = Solver(
    "mass_matrix_logdet", "kfdyn.dynamics.recursions.logdet", "VARIANCES", coupled=_COUPLED,
    explain=innovation_variances, minimal="logdet", most=DENSE,
)  # fmt: skip
