"""ẋ = g(x, u): a robot as an ordinary differential equation, for solvers and control tools that want one (SRB)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.dynamics.forward import forward_dynamics
from kfdyn.dynamics.simulation.adaptive import normalised, quaternions, rates
from kfdyn.errors import ShapeError
from kfdyn.multibody import System
from kfdyn.multibody.kinds import expect_rigid, expect_tree
from kfdyn.multibody.parts.body import as_floats


def state_derivative(system: System, x: ArrayLike, u: ArrayLike | None = None) -> Array:
    """ẋ = g(x, u) with x = (q, v) and u = tau: rates of the coordinates, then accelerations.

    ::

        q̇ = B(q) v,     v̇ = 𝓜⁻¹(u − c(q, v))

    Parameters
    ----------
    system : System
        The robot, without couplings and loops.
    x : (..., nq + nv)
        Coordinates and velocities. Quaternions need not have unit length, so that a solver may let them drift; their
        rate keeps the length they have.
    u : (..., nv), optional
        Generalised forces; zero if not given.

    Returns
    -------
    (..., nq + nv)
        ẋ.

    Notes
    -----
    O(N). v is no rate of q where a hinge turns freely (SRB, quasi-velocities): B is 1 for screws, ½ q (ω, 0) for
    quaternions, and a free body's velocity turned into the parent's axes. :func:`kfdyn.simulate` respects the
    manifold and keeps energy better; this is for ``scipy.integrate.solve_ivp`` and for python-control's
    ``nlsys``, where the output y = h(x, u) is any function of the package. Source: SRB, state derivative equation.

    Examples
    --------
    A pendulum by scipy's solver:

    >>> import numpy as np, kfdyn as kf
    >>> from scipy.integrate import solve_ivp
    >>> arm = kf.models.pendulum()
    >>> swing = solve_ivp(lambda t, x: kf.state_derivative(arm, x), (0, 1), [0.1, 0.0], rtol=1e-9, atol=1e-9)
    >>> bool(np.isclose(swing.y[0, -1], 0.1 * np.cos(np.sqrt(9.81)), atol=1e-3))
    True
    """
    expect_rigid(system, "state_derivative", "kf.simulate takes both, with solvers of scipy's too")
    expect_tree(system, "state_derivative", "take system.open_tree, or kf.simulate")
    state = as_floats(x, "x")
    if state.shape[-1:] != (system.nq + system.nv,):
        raise ShapeError(f"x must have shape (..., {system.nq + system.nv}), q before v, got {state.shape}")
    q, v = state[..., : system.nq], state[..., system.nq :]
    unit, columns = normalised(system)(q), quaternions(system)
    rate = rates(system)(unit, v)
    rate[..., columns] *= np.linalg.norm(q[..., columns], axis=-1, keepdims=True)
    tau = np.zeros(system.nv) if u is None else u
    return np.concatenate([rate, forward_dynamics(system, unit, v, tau)], axis=-1)
