"""Dynamics of systems with couplings: everything without them goes through X, modes as they are.

    X*𝓜X a + X*(c + 𝓜Ẋv) = tau,     c the bias forces without couplings at X v              THEORY section 12

X is constant, and Ẋv = 0, unless hinges follow functions of another. Small systems solve this in one
compiled sweep; large ones by the embedded filter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from kfdyn.dynamics.bias import bias_forces
from kfdyn.dynamics.declined import answered
from kfdyn.dynamics.entries import (
    DENSE,
    FORWARD,
    INVERSE,
    MASS_MATRIX,
    MASS_MATRIX_INVERSE,
    fused_forward_dynamics,
    fused_mass_matrix_inverse,
    is_swept,
    quick_geared,
)
from kfdyn.dynamics.forest import States, expect_method, told_place
from kfdyn.dynamics.inverse import inverse_dynamics
from kfdyn.dynamics.loops.aggregation import described
from kfdyn.dynamics.loops.embedding import embedded_forest
from kfdyn.dynamics.mass_matrix import mass_matrix
from kfdyn.dynamics.positive import solve_positive
from kfdyn.errors import SingularError
from kfdyn.multibody import System
from kfdyn.multibody.arguments import checked, configuration
from kfdyn.multibody.entries import has_gears
from kfdyn.multibody.expansion import Expansion
from kfdyn.multibody.overflow import expect_finite

Array = NDArray[np.float64]


def coupled_mass_matrix(system: System, q: ArrayLike, method: str = "composite") -> Array:
    """X*𝓜X (..., nv, nv); ``method`` is for 𝓜 of the open tree."""
    if method == "composite":
        quick = quick_geared(MASS_MATRIX, system, (system.nv, system.nv), q)
        if isinstance(quick, ndarray):
            return quick
    tree, q_tree = _opened(system, q)
    M, here = mass_matrix(tree, q_tree, method=method), _here(system, q)  # type: ignore[arg-type]
    return _finite(system, here.matrix, M, "the mass matrix", X=here.X)


def coupled_inverse_dynamics(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None,
    a: ArrayLike,
    external_forces: ArrayLike | None,
    gravity: ArrayLike | None,
    method: str = "newton_euler",
) -> Array:
    """X*(𝓜Xa + c) (..., nv)."""
    if method == "newton_euler":
        quick = quick_geared(INVERSE, system, (system.nv,), q, *_moving(system, q, v, a, external_forces, gravity))
        if isinstance(quick, ndarray):
            return quick
    tree, q_tree, v_tree, a_tree = _opened(system, q, v=v, a=a)
    tau = inverse_dynamics(tree, q_tree, v_tree, a_tree, external_forces, gravity, method=method)  # type: ignore
    here = _here(system, q)
    given = {"v": v, "a": a, "external_forces": external_forces, "X": here.X}
    return _finite(system, here.forces, tau, "tau", **given)


def coupled_bias_forces(
    system: System, q: ArrayLike, v: ArrayLike | None, external_forces: ArrayLike | None, gravity: ArrayLike | None
) -> Array:
    """X*c (..., nv)."""
    quick = quick_geared(INVERSE, system, (system.nv,), q, *_moving(system, q, v, None, external_forces, gravity))
    if isinstance(quick, ndarray):
        return quick
    tree, q_tree, v_tree, drift = _opened(system, q, v=v, a=None)
    if drift is None:
        tau = bias_forces(tree, q_tree, v_tree, external_forces, gravity)
    else:
        tau = inverse_dynamics(tree, q_tree, v_tree, drift, external_forces, gravity)
    here = _here(system, q)
    given = {"v": v, "external_forces": external_forces, "X": here.X}
    return _finite(system, here.forces, tau, "tau", **given)


def _moving(system: System, q: Any, v: Any, u: Any, force: Any, gravity: Any) -> tuple[Any, ...]:
    """What entries take beside q, with v = 0 and the system's gravity where none is given."""
    if v is None:
        v = np.zeros((*np.shape(q)[:-1], system.nv))
    return v, u, force, system.gravity if gravity is None else gravity


def _opened(system: System, q: ArrayLike, **rates: ArrayLike | None) -> tuple[Any, ...]:
    """The system without couplings, its q, and its rates, Ẋv with an acceleration; bodies that bend stay bent."""
    e, here = system._expansion, _here(system, q)
    opened: list[Array | None] = [
        _finite(system, e.positions, configuration(system, q), "the position of a hinge", q=q, X=here.X)
    ]
    given = {name: None if x is None else checked(system, x, (system.nv,), name) for name, x in rates.items()}
    with np.errstate(over="ignore", invalid="ignore"):
        for name, x in given.items():
            rate = here.accelerations(given["v"], x) if name == "a" else None if x is None else here.rates(x)
            what = f"the {'velocity' if name == 'v' else 'acceleration'} of a hinge"
            because = {key: y for key, y in given.items() if y is not None and (key == name or e.curves)}
            opened.append(None if rate is None else expect_finite(system, rate, what, **because, X=here.X))
    return system.uncoupled, *opened


def _here(system: System, q: ArrayLike) -> Expansion:
    """What leads from the system's rates to those of all hinges at q."""
    e = system._expansion
    return e.at(configuration(system, q)) if e.curves else e


def _finite(system: System, expand: Callable[[Array], Array], x: Array, what: str, **given: Any) -> Array:
    """What X makes of x; refused where that is more than a double holds."""
    with np.errstate(over="ignore", invalid="ignore"):
        return expect_finite(system, expand(x), what, **given)


def coupled_forward_dynamics(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None,
    tau: ArrayLike,
    external_forces: ArrayLike | None,
    gravity: ArrayLike | None,
    method: str = "filter",
) -> Array:
    """(X*𝓜X)⁻¹(tau − X*c) (..., nv): by a small factor, or by the embedded filter and smoother."""
    expect_method(method, ("filter", "engine", "embedding", "mass_matrix"), "forward_dynamics of a coupled system")
    quick = None
    if method == "filter" and system.nv <= DENSE:
        quick = quick_geared(FORWARD, system, (system.nv,), q, *_moving(system, q, v, tau, external_forces, gravity))
    if isinstance(quick, ndarray):
        return quick
    states = States.of(system, q, v, external_forces, gravity, tau=tau)
    a, declined = np.empty((states.size, system.nv)), np.ones(states.size, dtype=bool)
    dense = method == "mass_matrix" or (method == "filter" and system.nv <= DENSE)
    if method == "filter" and dense and is_swept(system):  # bodies that bend, and functions, have no such sweep
        a, declined = fused_forward_dynamics(states) if quick is None else quick.alone(states)

    def engine(few: States) -> dict[str, Array]:
        return {"the acceleration": dense_forward(few) if dense else by_embedding(system, few)}

    return answered(states, (a,), declined, engine)[0]


def dense_forward(states: States) -> Array:
    """Accelerations (size, nv) by a factor of X*𝓜X; where it has none, by the embedded filter, which names nodes."""
    system = states.system
    rhs = states["tau"] - coupled_bias_forces(system, *states.part(slice(None)))
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused, with words
        found, fine = solve_positive(coupled_mass_matrix(system, states["q"]), rhs[..., None])
    return found[..., 0] if fine.all() else by_embedding(system, states)


def by_embedding(system: System, states: States) -> Array:
    """Accelerations (size, nv) by filter and smoother on the aggregated forest; loops included."""
    from kfdyn.estimation import bryson_frazier, kalman_filter

    a = np.empty((states.size, system.nv))

    def solve(part: slice) -> None:
        q, v, force, g = states.part(part)
        forest = embedded_forest(system, q, v, g, force)
        try:
            filt = kalman_filter(forest.ss, forest.stack(states["tau"][part]))
        except SingularError as error:
            node = forest.plan.nodes[(error.node or 0) % len(forest.plan.nodes)]
            where = states.place(part.start) if part.stop - part.start == 1 else ()
            raise without_inertia(system, described(system, node), where) from None
        a[part] = forest.by_dof(bryson_frazier(forest.ss, filt, covariances=False).a)

    states.in_parts(solve)
    return a


def coupled_mass_matrix_inverse(system: System, q: ArrayLike) -> Array:
    """(X*𝓜X)⁻¹ (..., nv, nv), symmetric to the bit."""
    quick = quick_geared(MASS_MATRIX_INVERSE, system, (system.nv, system.nv), q)
    if isinstance(quick, ndarray):
        return quick
    states = States.of(system, q)
    out, declined = np.empty((states.size, system.nv, system.nv)), np.ones(states.size, dtype=bool)
    if type(system) is System and has_gears(system):  # bodies that bend, and functions, have no such sweep
        out, declined = fused_mass_matrix_inverse(states) if quick is None else quick.alone(states)
    return answered(states, (out,), declined, lambda few: {"the inverse mass matrix": dense_inverse(few)})[0]


def dense_inverse(states: States) -> Array:
    """(X*𝓜X)⁻¹ (size, nv, nv) where no more than rounding tells it from a singular one."""
    M = coupled_mass_matrix(states.system, states["q"])
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused, with words
        inverse, fine = solve_positive(M, np.broadcast_to(np.eye(M.shape[-1]), M.shape), tolerance=0.0)
    if not fine.all():
        refuse_singular(states)
    return 0.5 * (inverse + np.swapaxes(inverse, -1, -2))


def refuse_singular(states: States) -> NoReturn:
    """Say which hinges of a system with couplings do it, and in which of the states, some of which are singular."""
    states.expect_invertible()
    nothing = np.zeros((states.size, states.system.nv))
    by_embedding(states.system, replace(states, arrays={"q": states["q"], "tau": nothing}))  # it names the node
    raise without_inertia(states.system, "some hinges")


def without_inertia(system: System, hinges: str, where: tuple[int, ...] = ()) -> SingularError:
    """The reduced mass matrix is singular, in words."""
    several = not hinges.startswith("hinge ")
    left = "move no inertia that is left to their independent coordinates" if several else "moves no inertia left to it"
    return SingularError(
        f"system {system.name!r}{told_place(where)}: {hinges} {left}, so that the innovation variance is 0; give what "
        f"is carried a mass or the {'hinges' if several else 'hinge'} an armature"
    )
