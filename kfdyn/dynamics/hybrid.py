"""Hybrid dynamics: a hinge whose motion is prescribed is a measurement that is missing."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.dynamics.solving.forest import DENSE, States
from kfdyn.dynamics.solving.kinds import own_way
from kfdyn.dynamics.solving.solver import Solver
from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import expect_system
from kfdyn.multibody.parts.body import as_floats

Mask = NDArray[np.bool_]


def hybrid_dynamics(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None,
    tau: ArrayLike,
    a: ArrayLike,
    prescribed: ArrayLike,
    external_forces: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Solve 𝓜 a + c = tau with a known at the prescribed dofs p and tau at the free dofs f.

    ::

        η ← η + H_p* a_p,   T_p missing:  G_p = 0, so P⁺ = P and z⁺ = z + P(H*a + η) at a prescribed hinge
        ε_f = T_f − H_f z,  smoother as ever,   tau_p = H_p x̂ + R_p a_p

    A hinge may be split: some of its dofs prescribed, the others free. None prescribed is forward dynamics, all
    prescribed inverse dynamics; a locked hinge has a = 0.

    Parameters
    ----------
    system, q, v, external_forces, gravity
        As for :func:`kfdyn.forward_dynamics`.
    tau : (..., nv)
        Generalised forces; the entries of prescribed dofs are not read and may be NaN.
    a : (..., nv)
        Accelerations; the entries of free dofs are not read and may be NaN.
    prescribed : (nv,) of bool
        Which dofs have their acceleration given.

    Returns
    -------
    tau, a : (..., nv) arrays
        Both complete.

    Raises
    ------
    SingularError
        If a free hinge has no inertia to move; names the hinge.

    Notes
    -----
    O(N). Sources: SKO "hybrid"; ATBI "locked"; THEORY section 6 (the armature is diagonal, so R_fp = 0).

    Examples
    --------
    Lock the elbow of a double pendulum, hanging sideways, and let the shoulder fall:

    >>> import kfdyn as kf
    >>> arm = kf.models.double_pendulum()
    >>> tau, a = hybrid_dynamics(arm, [0.5 * np.pi, 0.0], None, [0, np.nan], [np.nan, 0], prescribed=[False, True])
    >>> a.round(3), tau.round(3)
    (array([-5.886,  0.   ]), array([ 0.   , -1.962]))
    """
    expect_system(system)
    mask = _mask(system, prescribed)

    def explain(states: States) -> dict[str, Array]:
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused, with words
            found: dict[str, Array] = (own_way(system, "hybrid_of") or by_engine)(states, mask)
        states.expect_invertible(~mask)
        return found

    given = (mask.astype(np.int64), q, v, tau, a, external_forces, gravity)
    answers: tuple[Array, Array] = HYBRID.rows(system, given, None, explain)
    return answers


def by_engine(states: States, mask: Mask) -> dict[str, Array]:
    """The generic filter and smoother on the assembled forest, (size, nv) each."""
    from kfdyn.estimation import Operators, bryson_frazier, kalman_filter

    tau_out, a_out = (np.empty((states.size, states.system.nv)) for _ in range(2))

    def solve(part: slice) -> None:
        forest = states.forest(part)
        ss, op = forest.ss, Operators(forest.ss)
        given = forest.stack(states["a"][part])
        T = forest.stack(np.where(mask, np.nan, states["tau"][part])) - op.R.forward(given)  # R_fp a_p
        filt = kalman_filter(ss, T, eta=ss.eta + op.H.backward(given))  # η ← η + H_p* a_p
        smooth = bryson_frazier(ss, filt, covariances=False)
        rate = given + smooth.a  # the smoother's a is 0 where T is missing
        force = op.H.forward(smooth.x.flat) + op.R.forward(rate)  # T = H x̂ + R a
        a_out[part] = forest.by_dof(rate)
        tau_out[part] = np.where(mask, forest.by_dof(force), states["tau"][part])

    states.in_parts(solve)
    return {"tau": tau_out, "the acceleration": a_out}


def _mask(system: System, prescribed: ArrayLike) -> Mask:
    try:
        mask = np.asarray(prescribed)
    except ValueError as error:
        raise ShapeError(f"prescribed must be a mask of shape ({system.nv},): {error}") from error
    if mask.shape != (system.nv,):
        raise ShapeError(
            f"prescribed must have shape ({system.nv},), one entry for each dof of system {system.name!r}, got "
            f"{mask.shape}; system.v_slice(hinge) tells where a hinge's dofs are"
        )
    if mask.dtype != bool and system.nv:
        raise ModelError(
            f"prescribed must be a mask of booleans, got {mask.dtype}; indices become one by mask[i] = True"
        )
    return mask.astype(bool)


def _known(value: ArrayLike, known: Mask, what: str) -> Array:
    """The value with zeros where it is not known, so that only what is used is checked."""
    array = as_floats(value, what)
    return np.where(known, array, 0.0) if array.shape[-1:] == known.shape else array


class _Hybrid(Solver):
    """Solver of hybrid dynamics; it does not look at what is not given."""

    called = MappingProxyType({"known": "a"})

    def bound(self, system: System, arguments: tuple[Any, ...]) -> Any:
        """The arguments, checked by name where they are given."""
        marked, q, v, tau, a, *others = arguments
        mask = marked != 0
        return super().bound(system, (marked, q, v, _known(tau, ~mask, "tau"), _known(a, mask, "a"), *others))


HYBRID = _Hybrid(
    "hybrid_dynamics",
    "kfdyn.dynamics.recursions.hybrid",
    "HYBRID",
    coupled="kfdyn.dynamics.recursions.coupled.geared",
    bending="kfdyn.dynamics.recursions.flexible.flexible_hybrid",
    most=DENSE,
    inverts=False,
)
