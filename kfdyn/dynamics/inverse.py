"""Inverse dynamics: a scatter of accelerations and a gather of forces."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from kfdyn.dynamics.assembly import Forest
from kfdyn.dynamics.entries import INVERSE, fused_inverse_dynamics, quick_inverse_dynamics
from kfdyn.dynamics.forest import States, expect_method
from kfdyn.errors import ModelError
from kfdyn.multibody import System
from kfdyn.multibody.arguments import expect_system
from kfdyn.multibody.overflow import expect_finite
from kfdyn.multibody.results import filled

Array = NDArray[np.float64]


def inverse_dynamics(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None,
    a: ArrayLike | None,
    external_forces: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
    *,
    method: Literal["newton_euler", "operators", "composite"] = "newton_euler",
    actuated: ArrayLike | None = None,
    out: Array | None = None,
) -> Array:
    """Generalised forces tau = 𝓜 a + c that cause given accelerations.

    ::

        α = φ*(H* a + η)              scatter                                    R86 (7.2)
        f = φ(M α + ξ)                gather, "newton_euler", "operators"        R86 (7.3)
        f = ℛ α + φ̃ℛ(H* a + η) + φξ   gather, "composite": R86 (7.6)–(7.8) with the kernel r = ℛ + φ̃ℛ + ℛφ̃*
        tau = H f + R a

    Parameters
    ----------
    system : System
        The robot.
    q : (..., nq)
        Configurations; leading axes of all arguments broadcast.
    v : (..., nv) or None
        Velocities; None is at rest.
    a : (..., nv) or None
        Accelerations; None is a = 0.
    external_forces : (..., n_bodies, 6), optional
        [moment; force] on each body, world orientation, at the body's origin.
    gravity : (..., 3), optional
        ``system.gravity`` if not given.
    method : {"newton_euler", "operators", "composite"}
        Forces summed body by body, in fused sweeps over several configurations side by side; the same by the engine's
        operators; or through composite body inertias ℛ. Same answers.
    actuated : (nv,) of bool, optional
        With loops: which coordinates have a motor; all if not given.
    out : (..., nv) array of float64, optional
        Where the answer goes, instead of a new array; returned. It may overlap arguments. After an error its numbers
        mean nothing.

    Returns
    -------
    (..., nv) array
        Generalised forces, rotors included. With couplings, those of the independent coordinates; with loops, which
        leave many answers, the one of least norm at the actuated coordinates.

    Notes
    -----
    O(N). No D is inverted, so hinges without inertia are allowed. Sources: R86 section 7; SKO "ne-id", "crb-id".

    Examples
    --------
    >>> import kfdyn as kf
    >>> inverse_dynamics(kf.models.pendulum(length=1.0, mass=2.0), [0.5 * np.pi], [0.0], [1.0])
    array([21.62])
    """
    one = INVERSE.one
    plain = method == "newton_euler" and actuated is None
    answer = one(system, q, v, a, external_forces, gravity) if plain and out is None else None
    if answer is not None:  # what loops call
        return answer
    expect_system(system)
    if system.is_tree and plain:
        quick = quick_inverse_dynamics(system, q, v, a, external_forces, gravity, out)
        if isinstance(quick, ndarray):
            return quick if out is None else out
    return filled(out, _checked(system, q, v, a, external_forces, gravity, method, actuated))


def _checked(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None,
    a: ArrayLike | None,
    external_forces: ArrayLike | None,
    gravity: ArrayLike | None,
    method: Any,
    actuated: ArrayLike | None,
) -> Array:
    """The long way: arguments checked by name and broadcast."""
    if not system.is_tree:
        from kfdyn.dynamics.loops.constrained import constrained_inverse_dynamics

        rate = np.zeros(system.nv) if a is None else a
        return constrained_inverse_dynamics(system, q, v, rate, external_forces, gravity, method, actuated)
    if actuated is not None:
        raise ModelError("actuated is for systems with loops: without them every coordinate has its own force")
    expect_method(method, ("newton_euler", "operators", "composite"), "inverse_dynamics")
    states = States.of(system, q, v, external_forces, gravity, **({} if a is None else {"a": a}))
    if method == "newton_euler":
        fused = fused_inverse_dynamics(states)
        if fused is not None:
            return fused.reshape((*states.lead, system.nv))
    tau = np.empty((states.size, system.nv))
    sweep = _composite if method == "composite" else _by_operators

    def solve(part: slice) -> None:
        forest = states.forest(part)
        tau[part] = forest.by_dof(sweep(forest, forest.stack(0.0 if a is None else states["a"][part])))

    states.in_parts(solve)
    return expect_finite(system, tau, "tau", **states.arrays).reshape((*states.lead, system.nv))


def _by_operators(forest: Forest, a: Array) -> Array:
    from kfdyn.estimation import Operators

    ss = forest.ss
    op = Operators(ss)
    alpha = op.phi.backward(op.H.backward(a) + ss.eta)  # α = φ*(H* a + η)
    f = op.phi.forward(op.Q.forward(alpha) + ss.xi)  # f = φ(M α + ξ)
    return op.H.forward(f) + op.R.forward(a)  # tau = H f + R a


def _composite(forest: Forest, a: Array) -> Array:
    from kfdyn.dynamics.mass_matrix import composite_inertias
    from kfdyn.estimation import Operators

    ss = forest.ss
    op = Operators(ss)
    own = op.H.backward(a) + ss.eta
    composite = op.block_diagonal(composite_inertias(ss))
    y = op.phi_strict.forward(composite.forward(own)) + op.phi.forward(ss.xi)  # from outboard accelerations only
    f = composite.forward(op.phi.backward(own)) + y  # f = ℛ α + y
    return op.H.forward(f) + op.R.forward(a)
