"""Linear-quadratic control on chains and scenario trees: the engine, read a third time (THEORY 19)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from kfdyn.estimation.control.goals import goal_rows, solve
from kfdyn.estimation.control.interior_point import bind_limits, solve_within
from kfdyn.estimation.control.problem import BlocksOrArray, bind
from kfdyn.estimation.control.solution import LinearPlan
from kfdyn.estimation.model.tree import Tree


def lqr(
    A: BlocksOrArray,
    B: BlocksOrArray,
    Q: BlocksOrArray,
    R: BlocksOrArray,
    x0: ArrayLike,
    parent: ArrayLike | Tree | None = None,
    c: ArrayLike | None = None,
    q: ArrayLike | None = None,
    r: ArrayLike | None = None,
    N: BlocksOrArray | None = None,
    *,
    steps: int | None = None,
    goals: Sequence[Any] | None = None,
    x_limits: Any = None,
    u_limits: Any = None,
    x_rows: Any = None,
    u_rows: Any = None,
    start: LinearPlan | None = None,
) -> LinearPlan:
    """Solve a linear-quadratic control problem on a chain of steps or a tree of scenarios.

    ::

        min Σ_k ½ x(k)*Q x(k) + q*x(k) + ½ u(k)*R u(k) + r*u(k) + u(k)*N x(parent)
        x(k) = A(k) x(parent) + B(k) u(k) + c(k),        x₀ before the roots

    **The convention.** u(k) acts *before* x(k): Q(k) weighs the state that u(k) leads to, the first state is
    x(0) = A(0) x₀ + B(0) u(0) + c(0), and x₀ itself has no weight.

    Parameters
    ----------
    A, B, Q, R : array (N, rows, columns), sequence of N matrices, or one matrix for all steps
        A (n_k, n_parent), B (n_k, m_k), and the weights Q (n_k, n_k) and R (m_k, m_k), positive semi-definite. Sizes
        may differ from step to step, and m_k may be 0. R may be singular where R + B*PB is not.
    x0 : array, shape (..., n)
        The state before the first step.
    parent : Tree or sequence of int, shape (N,), optional
        The step before each step, −1 for the first: a branch is a scenario. A chain if not given. Weigh a scenario by
        its probability, in Q, R, q and r.
    c, q, r : array, shape (..., Σn), (..., Σn), (..., Σm), or (..., N, n) and (..., N, m), optional
        Drift and linear weights. NaN in r: a failed actuator, u is 0 there.
    N : like B*, blocks (m_k, n_parent), optional
        Cross weights; R must be positive definite then.
    steps : int, optional
        Number of steps, where no matrix tells it.
    goals : sequence of (k, K, g), optional
        Exact goals K x(k) = g; K None for the whole state.
    x_limits, u_limits : pair (lower, upper), optional
        Boxes: numbers, (size,) or (N, size); ±inf or None for no limit.
    x_rows, u_rows : pair (C, d), optional
        Limits C x(k) ≤ d and C u(k) ≤ d at every step, C (p, size) or (N, p, size); inf in d for no limit.
    start : LinearPlan, optional
        A plan with the same limits from which the interior point starts.

    Returns
    -------
    LinearPlan
        ``x``, ``u``, ``costate``, ``gains``, ``value_hessian``, ``cost``, ``feedback(k, x_parent)``, ``hessian``.

    Raises
    ------
    ModelError
        If a goal cannot be met, or no plan keeps all limits; names them.
    SingularError
        If a control has no weight at all.

    Notes
    -----
    The problem goes to the engine as if it were a robot: φ = A*, H = B*, ξ = q, η = c, T = −r, and the weights as
    covariances. The co-state (a robot's accelerations) is x, its output (a robot's joint accelerations) is u, the
    smoothed state is Pontryagin's costate, P is the Hessian of the cost to go, D is Q_uu. A goal is a cut joint; a
    limit adds z/s to a weight. O(N n³); each row of a goal costs one more vector. Sources: R86 sections 6 and 12.

    Examples
    --------
    A cart, rest to rest in 20 steps of 0.1 s, exactly; the force is limited:

    >>> import numpy as np, kfdyn as kf
    >>> A, B = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.005], [0.1]])
    >>> there = [(-1, None, [1.0, 0.0])]
    >>> plan = kf.lqr(A, B, np.zeros((2, 2)), [[1.0]], [0.0, 0.0], steps=20, goals=there, u_limits=(-1.2, 1.2))
    >>> plan.converged, bool(np.allclose(plan.x[-1], [1.0, 0.0], atol=1e-12)), float(plan.u.min()), float(plan.u.max())
    (True, True, -1.2, 1.2)
    """
    problem = bind(A, B, Q, R, x0, parent, c, q, r, N, steps)
    rows = goal_rows(problem.ss, goals)
    limits = bind_limits(problem, x_limits, u_limits, x_rows, u_rows)
    if limits is None:
        return LinearPlan(problem, solve(problem.ss, *problem.inputs, rows), rows)
    found = solve_within(problem, rows, limits, None if start is None else start.warm)
    of_x, of_u = limits.split(found.multipliers)
    told: dict[str, Any] = {}
    for name, box, part in (("x", x_limits, of_x), ("u", u_limits, of_u)):
        size = 0 if box is None else (limits.C if name == "x" else limits.E).shape[2]
        if box is not None:
            told[f"{name}_limits"] = (part[:, size : 2 * size], part[:, :size])
        if part.shape[1] > 2 * size:
            told[f"{name}_rows"] = part[:, 2 * size :]
    return LinearPlan(
        problem,
        found.solved,
        rows.and_also(found.rows),
        found.iterations,
        found.converged,
        found.message,
        told,
        (found.slack, found.multipliers),
    )
