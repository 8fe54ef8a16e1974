"""Hybrid dynamics: a hinge whose motion is prescribed is a measurement that is missing."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.dynamics.declined import answered
from kfdyn.dynamics.entries import fused_hybrid_dynamics, is_swept, quick_hybrid_dynamics
from kfdyn.dynamics.forest import States, hinges_without_inertia, moved_by, told_place
from kfdyn.errors import ModelError, ShapeError, SingularError
from kfdyn.multibody import FlexibleSystem, System
from kfdyn.multibody.arguments import expect_system
from kfdyn.multibody.body import as_floats
from kfdyn.multibody.overflow import expect_finite

Array = NDArray[np.float64]
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
    system : System
        The robot.
    q : (..., nq)
        Configurations; leading axes of all arguments broadcast.
    v : (..., nv) or None
        Velocities; None is at rest.
    tau : (..., nv)
        Generalised forces; the entries of prescribed dofs are not read and may be NaN.
    a : (..., nv)
        Accelerations; the entries of free dofs are not read and may be NaN.
    prescribed : (nv,) of bool
        Which dofs have their acceleration given.
    external_forces : (..., n_bodies, 6), optional
        [moment; force] on each body, world orientation, at the body's origin.
    gravity : (..., 3), optional
        ``system.gravity`` if not given.

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
    if isinstance(system, FlexibleSystem) and not (system.couplings or system.loops):
        from kfdyn.dynamics import flexible

        return flexible.hybrid_dynamics(system, q, v, tau, a, mask, external_forces, gravity)
    quick = None
    if is_swept(system):
        quick = quick_hybrid_dynamics(system, q, v, tau, a, mask, external_forces, gravity)
    if isinstance(quick, tuple):
        return quick
    states = States.of(
        system, q, v, external_forces, gravity, tau=_known(tau, ~mask, "tau"), a=_known(a, mask, "a")
    )  # fmt: skip
    if is_swept(system):
        found, declined = fused_hybrid_dynamics(states, mask) if quick is None else quick.of(states)
    else:
        found, declined = (states["tau"].copy(), states["a"].copy()), np.ones(states.size, dtype=bool)
    engine = _by_engine if system.is_tree else _constrained
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused, with words
        tau_all, a_all = answered(states, found, declined, lambda few: engine(few, mask), ~mask)
    return tau_all, a_all


def _by_engine(states: States, mask: Mask) -> dict[str, Array]:
    """The generic filter and smoother on the assembled forest, (size, nv) each."""
    from kfdyn.estimation import Operators, bryson_frazier, kalman_filter

    tau_out, a_out = (np.empty((states.size, states.system.nv)) for _ in range(2))

    def solve(part: slice) -> None:
        forest = states.forest(part)
        ss, op = forest.ss, Operators(forest.ss)
        given = forest.stack(states["a"][part])
        T = forest.stack(np.where(mask, np.nan, states["tau"][part]))
        filt = kalman_filter(ss, T, eta=ss.eta + op.H.backward(given))  # η ← η + H_p* a_p
        smooth = bryson_frazier(ss, filt, covariances=False)
        rate = given + smooth.a  # the smoother's a is 0 where T is missing
        force = op.H.forward(smooth.x.flat) + op.R.forward(rate)  # T = H x̂ + R a
        a_out[part] = forest.by_dof(rate)
        tau_out[part] = np.where(mask, forest.by_dof(force), states["tau"][part])

    states.in_parts(solve)
    return {"tau": tau_out, "the acceleration": a_out}


def _constrained(states: States, mask: Mask) -> dict[str, Array]:
    """With couplings or loops, dense and state by state, (size, nv) each: what is prescribed is one more constraint."""
    from kfdyn.dynamics.bias import bias_forces
    from kfdyn.dynamics.mass_matrix import mass_matrix
    from kfdyn.multibody.closure import CONSISTENT, Ranked, column_units, row_units
    from kfdyn.multibody.loop_tables import loop_readings

    system, base = states.system, states.system.without_loops
    here, rate, force, g = states.part(slice(None))
    M, c = mass_matrix(base, here), bias_forces(base, here, rate, force, g)
    tau_out, a_out, free = np.array(states["tau"]), np.array(states["a"]), ~mask
    J, drift = np.zeros((states.size, 0, system.nv)), np.zeros((states.size, 0))
    row, column = np.zeros(0), np.ones((states.size, system.nv))
    if system.loops:
        read = loop_readings(system, here, rate)
        J, drift, row, column = read.J, read.drift, row_units(system), column_units(system, here, read)
    for b in range(states.size):
        wanted = -drift[b] - J[b][:, mask] @ a_out[b, mask]
        rows = Ranked.of(J[b : b + 1, :, free], row, column[b : b + 1, free])
        a_free, N = rows.solve(wanted[None])[0], rows.free()[0]
        left = J[b][:, free] @ a_free - wanted
        if np.abs(left / row).max(initial=0.0) > CONSISTENT * (1 + np.abs(wanted / row).max(initial=0.0)):
            raise ModelError(
                f"system {system.name!r}: the loops do not allow what is prescribed, by {np.abs(left).max():.3g} "
                "(m/s², rad/s²); prescribe fewer dofs, or accelerations that the loops have"
            )
        rest = states["tau"][b, free] - c[b, free] - M[b][np.ix_(free, mask)] @ a_out[b, mask]
        inside = N.T @ M[b][np.ix_(free, free)] @ N
        unit = np.sqrt(np.diag(inside))
        if N.shape[1] and not (unit.all() and np.linalg.cond(inside / np.outer(unit, unit)) < 1e15):
            raise _without_inertia(states, free, b, unit)
        a_free = a_free + N @ np.linalg.solve(inside, N.T @ (rest - M[b][np.ix_(free, free)] @ a_free))
        a_out[b, free] = a_free
        balance = expect_finite(system, M[b] @ a_out[b] + c[b], "tau", **states.arrays)
        f = rows.forces((balance[free] - states["tau"][b, free])[None])[0]
        tau_out[b, mask] = balance[mask] - (J[b].T @ f)[mask]
    return {"tau": tau_out, "the acceleration": a_out}


def _without_inertia(states: States, free: Mask, b: int, unit: Array) -> SingularError:
    """State b has free coordinates that move nothing, in words; without loops ``unit`` is 0 where they carry none."""
    system = states.system
    if system.loops or type(system) is not System:
        at = told_place(states.place(b))
        return SingularError(
            f"system {system.name!r}{at}: some free coordinates move no inertia; give them an armature"
        )
    states.expect_invertible(free)  # it may know which hinges do it
    own = np.flatnonzero(free)
    idle = own[unit == 0] if (unit == 0).any() else own
    return hinges_without_inertia(system, moved_by(system, idle), states.place(b))


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
