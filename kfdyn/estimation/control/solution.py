"""Result of :func:`kfdyn.lqr`: the plan, its feedback law, the cost to go, and the condensed Hessian."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ShapeError
from kfdyn.estimation.control.goals import Rows, Solved, feedback_terms
from kfdyn.estimation.control.problem import Problem
from kfdyn.estimation.inference.factor import InnovationsFactor
from kfdyn.estimation.model.blocks import Blocks, real_array
from kfdyn.estimation.model.state_space import StateSpace


def _each(blocks: Blocks) -> Any:
    """One array for all nodes where they are of one size, else the blocks."""
    return blocks.stacked() if blocks.is_uniform else blocks


@dataclass(frozen=True, eq=False)
class LinearPlan:
    """An optimal plan of a linear-quadratic problem.

    Arrays have a row for each step where all steps have the same sizes; else they are sequences, an entry a step.

    Attributes
    ----------
    problem : Problem
        What was asked, and the model that the engine was given: ``problem.ss``.
    solved : Solved
        The engine's filter and smoother, with goals and active limits.
    rows : Rows
        Goals and active limits as exact rows.
    iterations : int
        Steps of the interior point, 0 without limits.
    converged : bool
        Whether the plan is the optimum to rounding.
    message : str
        How the search ended.
    goal_multipliers : ndarray, shape (..., rows)
        What each row of the goals presses with: the derivative of the cost in the goal's value, with a minus.
    limit_multipliers : dict
        The same of limits, ≥ 0, by the name of the argument: of a box a pair, for the lower and the upper limits.
    warm : tuple of ndarray or None
        Slacks and multipliers of all limits, for ``start=``.

    Examples
    --------
    A cart that shall come to rest, pushed from the left and from the right:

    >>> import numpy as np, kfdyn as kf
    >>> A, B = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.0], [0.1]])
    >>> plan = kf.lqr(A, B, np.eye(2), [[0.1]], x0=[1.0, 0.0], steps=50)
    >>> plan.x.shape, plan.u.shape, bool(np.allclose(plan.x[-1], 0, atol=0.02))
    ((50, 2), (50, 1), True)
    """

    problem: Problem = field(repr=False)
    solved: Solved = field(repr=False)
    rows: Rows = field(repr=False)
    iterations: int = 0
    converged: bool = True
    message: str = "solved by one filter and one smoother"
    limit_multipliers: dict[str, Any] = field(default_factory=dict, repr=False)
    warm: Any = field(default=None, repr=False)

    def __repr__(self) -> str:
        cost = np.asarray(self.cost)
        told = f"cost {float(cost):.6g}" if cost.ndim == 0 else f"a batch {cost.shape}"
        return f"LinearPlan({len(self.ss)} steps, {told}, {self.message})"

    @property
    def ss(self) -> StateSpace:
        """The engine's model: φ = A*, H = B*, weights as covariances."""
        return self.problem.ss

    @property
    def x(self) -> Any:
        """Optimal states, (..., N, n): the engine's co-state λ."""
        return _each(self.ss.state_blocks(self.solved.x))

    @cached_property
    def u_stacked(self) -> Array:
        """Optimal controls, stacked step by step."""
        return self.problem.controls(self.solved.a, self.solved.x)

    @property
    def u(self) -> Any:
        """Optimal controls, (..., N, m); ``u[k]`` acts before ``x[k]``."""
        return _each(self.ss.output_blocks(self.u_stacked))

    @property
    def costate(self) -> Any:
        """Pontryagin's costate p(k) = Qx + q + Σ A*p over the next steps, (..., N, n): the engine's smoothed state."""
        return _each(self.ss.state_blocks(self.solved.smooth.x.flat))

    @property
    def goal_multipliers(self) -> Array:
        """Multipliers of the goals' rows."""
        return self.solved.multipliers[..., : len(self.rows.node)]

    @cached_property
    def cost(self) -> Any:
        """The cost of the plan, one number for each batch entry."""
        value = self.problem.cost(self.solved.x, self.u_stacked)
        return float(value) if np.ndim(value) == 0 else value

    @cached_property
    def _gains(self) -> list[Array]:
        filt, terms = self.solved.filt, None
        if self.solved.responses is not None:
            terms = feedback_terms(self.solved.responses.ss, self.rows, self.solved.responses)
        gains = []
        for k in range(len(self.ss)):
            on_drifted = -filt.G[k].T if terms is None else terms[k] - filt.G[k].T
            gain = on_drifted @ self.problem.before(k)
            gains.append(gain if self.problem.shift is None else gain - self.problem.shift[k])
        return gains

    @property
    def gains(self) -> Any:
        """Feedback gains (N, m, n): u(k) changes by gains[k] times the change of x(parent)."""
        gains = self._gains
        return np.stack(gains) if len({g.shape for g in gains}) == 1 else gains

    def feedback(self, k: int, x_parent: ArrayLike) -> Array:
        """Control of step k from the state before it, whatever that is.

        Parameters
        ----------
        k : int
            The step.
        x_parent : array, shape (..., n)
            State of the step before; of step 0, x₀.

        Returns
        -------
        ndarray, shape (..., m)
            The optimal control from there. Limits that are active in the plan stay active, others stay inactive; goals
            are still met where the controls that are left can.
        """
        k = self.ss.state_blocks(self.solved.x).node(k)
        given = real_array(x_parent, "x_parent")
        planned = self.problem.parent_states(self.solved.x)[k]
        if given.ndim == 0 or given.shape[-1] != planned.shape[-1]:
            raise ShapeError(f"x_parent must have shape (..., {planned.shape[-1]}), got {given.shape}")
        own = self.u_stacked[..., self.ss.arrays.output[k] : self.ss.arrays.output[k + 1]]
        return own + (given - planned) @ self._gains[k].T

    @property
    def value_hessian(self) -> Any:
        """Hessian of the cost to go as a function of x(k), (N, n, n): the articulated inertia P."""
        return _each(self.solved.filt.P)

    @property
    def value_gradient(self) -> Any:
        """Gradient of the cost to go at x(k) = 0, (..., N, n); goals and limits count by their multipliers."""
        return _each(self.solved.filt.z)

    @cached_property
    def value_constant(self) -> Array:
        """Cost to go at x(k) = 0, (..., N); goals and limits count by their multipliers."""
        ss, filt = self.ss, self.solved.filt
        output, state = ss.arrays.output, ss.arrays.state
        spent = -0.5 * filt.eps * filt.nu
        held = self.solved.held
        if held is not None:  # what the held controls cost by themselves; their effect on states is in η
            known = np.nan_to_num(held)
            own = np.einsum("kij,kj->ki", ss.R.stacked(), known.reshape(len(ss), -1)).ravel()
            spent = spent + known * (0.5 * own + self.problem.r)
        lead = np.broadcast_shapes(filt.eps.shape[:-1], () if filt.eta is None else filt.eta.shape[:-1])
        out = np.zeros((*lead, len(ss)))
        for k in ss.tree.order.tolist():  # children before parents
            p = int(ss.tree.parent[k])
            if p < 0:
                continue
            own = out[..., k] + spent[..., output[k] : output[k + 1]].sum(-1)
            if filt.eta is not None:
                eta = filt.eta[..., state[k] : state[k + 1]]
                own = own + ((filt.z_plus[k] - 0.5 * eta @ filt.P_plus[k]) * eta).sum(-1)
            out[..., p] += own
        return out

    def value(self, k: int, x: ArrayLike) -> Any:
        """Cost to go from the state x (..., n) of step k, its own weight included."""
        x = real_array(x, "x")
        blocks = self.solved.filt.z
        k = blocks.node(k)
        return 0.5 * ((x @ self.solved.filt.P[k]) * x).sum(-1) + (x * blocks[k]).sum(-1) + self.value_constant[..., k]

    @property
    def hessian(self) -> InnovationsFactor:
        """The Hessian 𝓜 of the problem in the controls alone, never formed: ``solve``, ``logdet``, ``sample_inverse``.

        With costs as minus log-likelihoods the controls are normal about the plan with covariance 𝓜⁻¹. With cross terms
        these controls are u + R⁻¹N x(parent); :meth:`sample` turns them back.
        """
        return InnovationsFactor(self.solved.filt.covariances)

    def sample(self, rng: np.random.Generator, n: int | None = None) -> Any:
        """Draws of the controls about the plan, covariance 𝓜⁻¹, (n, N, m); goals and limits are left out of account."""
        draws = self.hessian.sample_inverse(rng, n)
        problem, ss = self.problem, self.ss
        if problem.shift is not None:  # the engine's controls are u + R⁻¹N x(parent), and the parent's state moves too
            state, output, engine = ss.arrays.state, ss.arrays.output, draws.copy()
            moved = np.zeros((*draws.shape[:-1], ss.n_states))
            for k in ss.tree.order[::-1].tolist():  # parents before children
                p, own = int(ss.tree.parent[k]), slice(output[k], output[k + 1])
                here = engine[..., own] @ problem.B[k].T
                if p >= 0:
                    before = moved[..., state[p] : state[p + 1]]
                    draws[..., own] -= before @ problem.shift[k].T
                    here = here + before @ problem.before(k).T
                moved[..., state[k] : state[k + 1]] = here
        return _each(ss.output_blocks(self.u_stacked + draws))
