"""Dynamics of systems with couplings: everything without them goes through X, modes as they are.

    X*𝓜X a + X*(c + 𝓜Ẋv) = tau,     c the bias forces without couplings at X v              THEORY section 12

X is constant, and Ẋv = 0, unless hinges follow functions of another. Small systems solve this in one
compiled sweep; large ones by the embedded filter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.dynamics.bias import bias_forces
from kfdyn.dynamics.derivatives import inverse_dynamics_derivatives
from kfdyn.dynamics.forward import FORWARD, by_engine
from kfdyn.dynamics.inverse import INVERSE, expect_all_actuated, inverse_dynamics
from kfdyn.dynamics.loops.aggregation import without_inertia
from kfdyn.dynamics.mass_matrix import innovation_variances, mass_matrix
from kfdyn.dynamics.operational_space import through_inverse
from kfdyn.dynamics.solving.batched_cholesky import solve_positive
from kfdyn.dynamics.solving.forest import DENSE, States, expect_method
from kfdyn.errors import SingularError
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import checked, configuration, expect_finite
from kfdyn.multibody.coordinates.expansion import Bent, Expansion


def explain_mass_matrix(states: States, method: str = "composite") -> dict[str, Array]:
    """X*𝓜X (size, nv, nv); ``method`` is for 𝓜 of the open tree."""
    system, q = states.system, states["q"]
    tree, q_tree = _opened(system, q)
    M, here = mass_matrix(tree, q_tree, method=method), _here(system, q)  # type: ignore[arg-type]
    return {"the mass matrix": _finite(system, here.matrix, M, "the mass matrix", X=here.X)}


def mass_matrix_by(system: System, q: ArrayLike, method: str) -> Array:
    """X*𝓜X (..., nv, nv) by another way than composite bodies."""
    states = States.of(system, q)
    return states.shaped(explain_mass_matrix(states, method)["the mass matrix"])


def explain_inverse_dynamics(states: States, method: str = "newton_euler") -> dict[str, Array]:
    """X*(𝓜(Xa + Ẋv) + c) (size, nv)."""
    system, arrays = states.system, states.arrays
    q, v, force, gravity = states.part(slice(None))
    tree, q_tree, v_tree, a_tree = _opened(system, q, v=v, a=arrays.get("a"))
    tau = inverse_dynamics(tree, q_tree, v_tree, a_tree, force, gravity, method=method)  # type: ignore[arg-type]
    here = _here(system, q)
    given = {"v": v, "a": arrays.get("a"), "external_forces": force, "X": here.X}
    return {"tau": _finite(system, here.forces, tau, "tau", **given)}


def inverse_dynamics_by(system: System, given: tuple[Any, ...], method: str, actuated: ArrayLike | None) -> Array:
    """The same by another way than Newton and Euler's."""
    expect_all_actuated(actuated)
    states = INVERSE.bound(system, given)
    return states.shaped(explain_inverse_dynamics(states, method)["tau"])


explain_bias_forces = explain_inverse_dynamics


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
    """Return the map from the system's rates to those of all hinges at q."""
    e = system._expansion
    return e.at(configuration(system, q)) if e.curves else e


def _finite(system: System, expand: Callable[[Array], Array], x: Array, what: str, **given: Any) -> Array:
    """Apply X to x; refuse a product that is more than a double holds."""
    with np.errstate(over="ignore", invalid="ignore"):
        return expect_finite(system, expand(x), what, **given)


def forward_dynamics_by(system: System, given: tuple[Any, ...], method: str) -> Array:
    """Accelerations (..., nv) by a dense factor, or by the embedded filter and smoother."""
    expect_method(method, ("filter", "engine", "embedding", "mass_matrix"), "forward_dynamics of a coupled system")
    states = FORWARD.bound(system, given)
    a = dense_forward(states) if method == "mass_matrix" else by_embedding(system, states)
    states.expect_invertible()
    return states.shaped(expect_finite(system, a, "the acceleration", **states.arrays))


def explain_forward_dynamics(states: States) -> dict[str, Array]:
    """(X*𝓜X)⁻¹(tau − X*c) (size, nv): by a small factor, or by the embedded filter and smoother."""
    small = states.system.nv <= DENSE
    return {"the acceleration": dense_forward(states) if small else by_embedding(states.system, states)}


def dense_forward(states: States) -> Array:
    """Accelerations (size, nv) by a factor of X*𝓜X; where it has none, by the embedded filter, which names nodes."""
    system = states.system
    rhs = states["tau"] - bias_forces(system, *states.part(slice(None)))
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused, with words
        found, fine = solve_positive(mass_matrix(system, states["q"]), rhs[..., None])
    return found[..., 0] if fine.all() else by_embedding(system, states)


def by_embedding(system: System, states: States) -> Array:
    """Accelerations (size, nv) by filter and smoother on the aggregated forest; loops included."""
    return by_engine(states)["the acceleration"]


def explain_mass_matrix_inverse(states: States) -> dict[str, Array]:
    """(X*𝓜X)⁻¹ (size, nv, nv), symmetric to the bit."""
    return {"the inverse mass matrix": dense_inverse(states)}


def explain_mass_matrix_logdet(states: States) -> dict[str, Array]:
    """Pivots of the D(k) of the embedded model, (size, nv)."""
    mass_matrix(states.system, states["q"])  # it refuses what is too large for a double
    try:
        return innovation_variances(states)
    except SingularError:
        refuse_singular(states)


def compliance_of(states: States, frames: Sequence[str]) -> dict[str, Array]:
    """J (X*𝓜X)⁻¹ J* (size, 6k, 6k) of frames where compiled code does not decide whether 𝓜 is singular; O(nv³)."""
    return {"the compliance": through_inverse(states, frames, dense_inverse(states))}


def dense_inverse(states: States) -> Array:
    """(X*𝓜X)⁻¹ (size, nv, nv) where no more than rounding tells it from a singular one."""
    M = mass_matrix(states.system, states["q"])
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


def explain_forward_dynamics_derivatives(states: States) -> dict[str, Array]:
    """∂a/∂q, ∂a/∂v and (X*𝓜X)⁻¹ (size, nv, nv), by those of inverse dynamics."""
    system = states.system
    q, v, _, gravity = states.part(slice(None))
    a = expect_finite(system, dense_forward(states), "the acceleration", **states.arrays)
    inverse = dense_inverse(states)
    dtau_dq, dtau_dv, _ = inverse_dynamics_derivatives(system, q, v, a, gravity)
    return {"∂a/∂q": -inverse @ dtau_dq, "∂a/∂v": -inverse @ dtau_dv, "the inverse of the mass matrix": inverse}


def explain_inverse_dynamics_derivatives(states: States) -> dict[str, Array]:
    """∂τ/∂q, ∂τ/∂v and ∂τ/∂a (size, nv, nv) where hinges follow curves, of the tree's at (q_tree, X v, X a + Ẋv).

    ::

        ∂τ/∂q = X*(∂_qτ X + ∂_vτ Y + 𝓜 Z) + diag((∂X/∂q_j)*τ),   Y = ∂(Xv)/∂q,   Z = ∂(Xa + Ẋv)/∂q
        ∂τ/∂v = X*(∂_vτ X + 2 𝓜 Y),                              ∂τ/∂a = X*𝓜X
    """
    system, q, a, gravity = states.system, states["q"], states["a"], states.arrays.get("gravity")
    v = states.arrays.get("v", np.zeros_like(a))
    here = Bent(system._expansion, q)
    tree, q_tree, v_tree, a_tree = system.opened(q, v=v, a=a)
    with np.errstate(over="ignore", invalid="ignore"):
        by_q, by_v, by_a = inverse_dynamics_derivatives(tree, q_tree, v_tree, a_tree, gravity)
        tau, X, Xt = inverse_dynamics(tree, q_tree, v_tree, a_tree, None, gravity), here.X, np.swapaxes(here.X, -1, -2)
        Y, Z = here.turned_rates(v), here.turned_accelerations(v, a)
        turned = here.turned(tau)[..., None] * np.eye(system.nv)
        found = [Xt @ (by_q @ X + by_v @ Y + by_a @ Z) + turned, Xt @ (by_v @ X + 2.0 * by_a @ Y), here.matrix(by_a)]
    for x in found:
        expect_finite(system, x, "a derivative", **states.arrays)
    return dict(zip(("∂τ/∂q", "∂τ/∂v", "∂τ/∂a"), found))
