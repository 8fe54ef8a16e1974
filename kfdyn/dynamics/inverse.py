"""Inverse dynamics (RNEA): a scatter of accelerations and a gather of forces."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.dynamics.assembly import Forest
from kfdyn.dynamics.solving.forest import States, expect_method
from kfdyn.dynamics.solving.kinds import own_way
from kfdyn.dynamics.solving.solver import Solver
from kfdyn.errors import ModelError
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import expect_system, filled

METHODS = ("newton_euler", "operators")


def inverse_dynamics(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None,
    a: ArrayLike | None,
    external_forces: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
    *,
    method: Literal["newton_euler", "operators"] = "newton_euler",
    actuated: ArrayLike | None = None,
    out: Array | None = None,
) -> Array:
    """Return the forces tau = 𝓜 a + c that cause given accelerations: the recursive Newton–Euler algorithm (RNEA).

    ::

        α = φ*(H* a + η)              scatter                                    R86 (7.2)
        f = φ(M α + ξ)                gather                                     R86 (7.3)
        tau = H f + R a

    Parameters
    ----------
    system, q, v, external_forces, gravity, out
        As for :func:`kfdyn.forward_dynamics`.
    a : (..., nv) or None
        Accelerations; None is a = 0.
    method : {"newton_euler", "operators"}
        Forces summed body by body, in fused sweeps over several configurations side by side; or the same by the
        engine's operators.
    actuated : (nv,) of bool, optional
        With loops: which coordinates have a motor; all if not given.

    Returns
    -------
    (..., nv) array
        Generalised forces, rotors included. With couplings, those of the independent coordinates; with loops, which
        leave many answers, the one of least norm at the actuated coordinates.

    Notes
    -----
    O(N). No D is inverted, so hinges without inertia are allowed. Sources: R86 section 7; SKO "ne-id". By composite
    inertias (SKO "crb-id") it is ``kfdyn.textbook.sko.composite_inverse_dynamics``.

    Examples
    --------
    >>> import kfdyn as kf
    >>> inverse_dynamics(kf.models.pendulum(length=1.0, mass=2.0), [0.5 * np.pi], [0.0], [1.0])
    array([21.62])
    """
    if method != "newton_euler" or actuated is not None:
        return filled(out, _by_method(system, (q, v, a, external_forces, gravity), method, actuated))
    answer: Array = INVERSE.solve(system, q, v, a, external_forces, gravity, out)
    return answer


def _by_method(system: System, given: tuple[Any, ...], method: Any, actuated: ArrayLike | None) -> Array:
    """Another way than the compiled one, or not all motors."""
    expect_system(system)
    own = own_way(system, "inverse_dynamics_by")
    if own is not None:
        return np.asarray(own(system, given, method, actuated))
    expect_all_actuated(actuated)
    expect_method(method, METHODS, "inverse_dynamics")
    return INVERSE.explained(system, given)


def expect_all_actuated(actuated: ArrayLike | None) -> None:
    """Refuse a choice of motors where every coordinate has its own force."""
    if actuated is not None:
        raise ModelError("actuated is for systems with loops: without them every coordinate has its own force")


def by_engine(states: States) -> dict[str, Array]:
    """Generalised forces (size, nv) by the engine's operators on the assembled forest."""
    tau, a = np.empty((states.size, states.system.nv)), states.arrays.get("a")

    def solve(part: slice) -> None:
        forest = states.forest(part)
        tau[part] = forest.by_dof(_by_operators(forest, forest.stack(0.0 if a is None else a[part])))

    states.in_parts(solve)
    return {"tau": tau}


def _by_operators(forest: Forest, a: Array) -> Array:
    from kfdyn.estimation import Operators

    ss = forest.ss
    op = Operators(ss)
    alpha = op.phi.backward(op.H.backward(a) + ss.eta)  # α = φ*(H* a + η)
    f = op.phi.forward(op.Q.forward(alpha) + ss.xi)  # f = φ(M α + ξ)
    return op.H.forward(f) + op.R.forward(a)  # tau = H f + R a


INVERSE = Solver(
    "inverse_dynamics",
    "kfdyn.dynamics.recursions.inverse",
    "INVERSE",
    coupled=True,
    bending="kfdyn.dynamics.recursions.flexible.flexible_inverse",
    explain=by_engine,
    inverts=False,
)
