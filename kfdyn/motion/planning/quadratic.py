"""The linear-quadratic problem of one step of a search, solved as dynamics of a robot: limits lock its hinges."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, SingularError
from kfdyn.estimation.control.goals import Rows, solve
from kfdyn.estimation.control.interior_point import Limits, solve_within
from kfdyn.estimation.control.problem import Problem, line
from kfdyn.estimation.control.recursions import laws
from kfdyn.estimation.control.solution import LinearPlan
from kfdyn.estimation.model.state_space import StateSpace
from kfdyn.estimation.nonlinear.functions import finite
from kfdyn.sweeps import Checks, Tag

#: How often the set of controls at their limits may be corrected, and how often all at once without fewer wrong.
CORRECTIONS, PATIENCE = 40, 5
#: What rounding leaves of a multiplier, relative to the largest.
SIGN = 1e-11
#: Sizes up to which rows of matrices go into registers, steps of a plan from which on that pays, and states for tiles.
_KNOWN, _WORTH_IT, _TILED = 16, 32, 8
_NONE = np.empty(0)


class Quadratic(NamedTuple):
    """min Σ ½ x*Q x + q*x + ½ r u*u + g*u + u*M x(k − 1),  x(k) = A x(k − 1) + B u(k) + c(k), x before the first 0.

    Arrays (P, N, ...) of P problems; r (P,); M None for zeros; ``rows`` C x = value, and ``x_limits``, are those of one
    problem alone.
    """

    A: Array
    B: Array
    Q: Array
    q: Array
    r: Array
    g: Array
    M: Array | None
    c: Array
    rows: Rows
    u_limits: tuple[Array, Array] | None = None
    x_limits: tuple[Array, Array] | None = None


class Step(NamedTuple):
    """The minimum: states, controls u = shift + gains x(k − 1), costates, and multipliers of the rows.

    ``active`` (P, N, p) is −1 and 1 where a control is at a limit; ``pressure`` the largest multiplier of a limit of
    states; ``settled`` (P,) whether it is the optimum; ``plan`` the engine's solution, if it was the engine's.
    """

    x: Array
    u: Array
    shift: Array
    gains: Array
    costate: Array
    multipliers: Array
    active: NDArray[np.int8]
    pressure: float
    settled: NDArray[np.bool_] | bool
    problem: Quadratic
    plan: LinearPlan | None

    def under(self, gains: Array) -> Step:
        """The same states and controls under other gains."""
        return self._replace(gains=gains, shift=_shift(self.u, gains, self.x))


def _shift(u: Array, gains: Array, x: Array) -> Array:
    """Return the part of the controls that gains do not explain, u − gains x(k − 1)."""
    out = u.copy()
    out[:, 1:] -= (gains[:, 1:] @ x[:, :-1, :, None])[..., 0]
    return out


class NotConvex(Exception):
    """Problems have no minimum; ``plans`` (P,) says which."""

    def __init__(self, plans: NDArray[np.bool_]) -> None:
        super().__init__()
        self.plans = plans


class Unsettled(Exception):
    """The set of limits that press was not found; ``step`` is the last guess."""

    def __init__(self, step: Step | None) -> None:
        super().__init__()
        self.step = step

    @property
    def guess(self) -> Step:
        """The last guess, of a problem whose free minimum could be found."""
        assert self.step is not None
        return self.step


def minimise(problem: Quadratic, active: NDArray[np.int8]) -> Step:
    """Minimise within limits, from a guess which controls are at theirs.

    Controls that press are held, as a locked hinge is, and let go where their multiplier has the wrong sign, until all
    signs agree: two or three problems without limits (block principal pivoting: Júdice and Pires, 1994). Unsettled
    where that does not end, or leaves limits of states broken; NotConvex where there is no minimum.
    """
    step: Step | None = None
    fewest, patience = np.full(len(active), active[0].size + 1), np.full(len(active), PATIENCE)
    for _ in range(CORRECTIONS):
        try:
            step = _free(problem, active)
        except ModelError:  # held controls leave too few for the goals
            if not active.any():
                raise
            raise Unsettled(step) from None
        if problem.u_limits is None:
            break
        new = _corrected(problem.u_limits, step)
        wrong = (new != active).sum(axis=(1, 2))
        step = step._replace(settled=wrong == 0)
        if not wrong.any():
            break
        patience = np.where(wrong < fewest, PATIENCE, patience - 1)
        fewest = np.minimum(fewest, wrong)
        for plan in np.flatnonzero(patience < 0):  # the last alone, which ends for sure
            last = np.flatnonzero(new[plan] != active[plan])[-1:]
            only = active[plan].copy()
            only.flat[last] = new[plan].flat[last]
            new[plan] = only
        active = new
    else:
        raise Unsettled(step)
    if problem.x_limits is not None:
        low, high = problem.x_limits
        if not ((step.x[0] >= low).all() and (step.x[0] <= high).all()):
            raise Unsettled(step)
    return step


def _corrected(limits: tuple[Array, Array], step: Step) -> NDArray[np.int8]:
    """Return the controls that press, by their values and multipliers."""
    problem, active, (low, high) = step.problem, step.active, limits
    slope = problem.r[:, None, None] * step.u + problem.g
    if problem.M is not None:
        slope[:, 1:] += (problem.M[:, 1:] @ step.x[:, :-1, :, None])[..., 0]
    slope += (np.swapaxes(problem.B, 2, 3) @ step.costate[..., None])[..., 0]
    slack = SIGN * np.abs(slope).max(initial=0.0)
    new = np.where(active == 0, (step.u > high).astype(np.int8) - (step.u < low), active)
    return np.where((active != 0) & (active * slope > slack), 0, new).astype(np.int8)


def _free(problem: Quadratic, active: NDArray[np.int8]) -> Step:
    """The minimum with some controls held at their limits."""
    if problem.rows.node:
        return by_engine(problem, active)
    (plans, N, n, p), M = problem.B.shape, problem.M
    held, c, q = _held(problem, active)
    g = problem.g if held is None else np.where(active != 0, np.nan, problem.g)
    sizes, tiled = _ways(N, n, p)
    given = laws.Given(*map(np.ravel, (problem.A, problem.B, problem.Q, _NONE if M is None else M, c, q, g, problem.r)))
    found = laws.Found(*(np.empty((plans, N, *shape)) for shape in ((n,), (n,), (p,), (p,), (p, n))))
    flat = laws.Found(*(part.reshape(-1) for part in found))
    work = np.empty(laws.Room.size(n, p, N))
    lost = laws.laws_found(sizes, tiled, Tag(M is not None), given, flat, work, n, p, N, plans)
    if lost or not (finite(found.x) and finite(found.costate)):
        raise NotConvex(~(np.isfinite(found.x).all(axis=(1, 2)) & np.isfinite(found.costate).all(axis=(1, 2))))
    u, shift = (found.u, found.shift) if held is None else (found.u + held, found.shift + held)
    return Step(found.x, u, shift, found.gains, found.costate, np.zeros(0), active, 0.0, True, problem, None)


def _ways(steps: int, n: int, p: int) -> tuple[Any, Tag]:
    """Choose how the compiled law goes: in registers where that pays for its code, else large matrices by tiles."""
    known = max(n, p) <= _KNOWN and steps >= _WORTH_IT and not Checks.on
    return (Tag(n), Tag(p)) if known else None, Tag(not known and n >= _TILED)


def _held(problem: Quadratic, active: NDArray[np.int8]) -> tuple[Array | None, Array, Array]:
    """Values of the controls that are held at their limits, 0 for the others; c and q with what these values add."""
    if problem.u_limits is None or not active.any():
        return None, problem.c, problem.q
    low, high = problem.u_limits
    held, q = np.where(active > 0, high, low), problem.q
    held[active == 0] = 0.0
    if problem.M is not None:
        q = q.copy()
        q[:, :-1] += (held[:, 1:, None, :] @ problem.M[:, 1:])[:, :, 0]
    return held, problem.c + (problem.B @ held[..., None])[..., 0], q


def by_engine(problem: Quadratic, active: NDArray[np.int8]) -> Step:
    """The same of one problem by the engine, which meets exact goals, and knows all of the cost to go."""
    held, c, q = _held(problem, active)
    B, M, g = problem.B, problem.M, problem.g
    if held is not None:
        B, g = np.where(active[:, :, None, :] != 0, 0.0, B), np.where(active != 0, 0.0, g)
        M = None if M is None else np.where(active[..., None] != 0, 0.0, M)
    _, N, n, p = B.shape
    A, Q, r, shift = problem.A, problem.Q, problem.r[0], None
    weighed = q
    if M is not None:  # the square completed
        shift = M / r
        A = A - B @ shift
        Q, weighed = Q.copy(), q.copy()
        Q[:, :-1] -= np.swapaxes(M[:, 1:], 2, 3) @ shift[:, 1:]
        weighed[:, :-1] -= (g[:, 1:, None, :] @ shift[:, 1:])[:, :, 0]
    ss = _model(A, B, Q, problem.r)
    try:
        solved = solve(ss, weighed.ravel(), c.ravel(), -g.ravel(), problem.rows)
    except SingularError:
        raise NotConvex(np.ones(1, bool)) from None
    except ModelError as error:
        raise ModelError(re.sub(r"\bnode (\d+)", lambda found: f"step {int(found[1]) + 1}", str(error))) from None
    bound = Problem(
        ss, problem.A[0], B[0], problem.Q[0], np.broadcast_to(r * np.eye(p), (N, p, p)), None if M is None else M[0],
        None if shift is None else shift[0], np.zeros(n), c.ravel(), q.ravel(), g.ravel(),
    )  # fmt: skip
    plan = LinearPlan(bound, solved, problem.rows)
    x, u = solved.x.reshape(1, N, n), solved.a.reshape(1, N, p)
    gains = -(np.swapaxes(solved.filt.G.stacked().reshape(1, N, n, p), 2, 3) @ A)
    if shift is not None:
        u = u.copy()
        u[:, 1:] -= (shift[:, 1:] @ x[:, :-1, :, None])[..., 0]
        gains = gains - shift
    u = u if held is None else np.where(active != 0, held, u)
    return Step(
        x, u, _shift(u, gains, x), gains, solved.smooth.x.flat.reshape(1, N, n), solved.multipliers, active,
        0.0, True, problem, plan,
    )  # fmt: skip


def _model(A: Array, B: Array, Q: Array, r: Array) -> StateSpace:
    """The engine's model of one problem: φ = A*, H = B*; Q may be indefinite, as long as R + B*PB is not."""
    _, N, n, p = B.shape
    R = np.broadcast_to(r[0] * np.eye(p), (N, p, p))
    return StateSpace.trusted(
        line(N), np.full(N, n), np.full(N, p), np.swapaxes(A[:, 1:], 2, 3).ravel(),
        np.swapaxes(B, 2, 3).ravel(), (0.5 * (Q + np.swapaxes(Q, 2, 3))).ravel(), R.ravel(),
    )  # fmt: skip


def by_interior_point(problem: Quadratic, warm: tuple[Array, Array] | None = None) -> Step:
    """The minimum within limits of states and controls of one problem, positive weights and no cross terms.

    ``warm`` is the ``plan.warm`` of a like problem.
    """
    _, N, n, p = problem.B.shape
    A, B, Q = problem.A[0], problem.B[0], problem.Q[0]
    ss = _model(problem.A, problem.B, problem.Q, problem.r)
    R = np.broadcast_to(problem.r[0] * np.eye(p), (N, p, p))
    bound = Problem(
        ss, A, B, Q, R, None, None, np.zeros(n), problem.c.ravel(), problem.q.ravel(),
        problem.g.ravel(),
    )  # fmt: skip
    none = np.zeros((N, 0))
    C, d, E, e = np.zeros((N, 0, n)), none, np.zeros((N, 0, p)), none
    if problem.x_limits is not None:
        C = np.broadcast_to(np.concatenate([np.eye(n), -np.eye(n)]), (N, 2 * n, n))
        d = np.concatenate([problem.x_limits[1], -problem.x_limits[0]], axis=1)
    if problem.u_limits is not None:
        E = np.broadcast_to(np.concatenate([np.eye(p), -np.eye(p)]), (N, 2 * p, p))
        e = np.concatenate([problem.u_limits[1][0], -problem.u_limits[0][0]], axis=1)
    limits = Limits(C, E, d, e)
    found = solve_within(bound, problem.rows, limits, warm)
    solved, (of_x, of_u) = found.solved, limits.split(found.multipliers)
    active = np.zeros((N, p), np.int8)
    if of_u.size:
        active = (of_u[:, :p] > 0).astype(np.int8) - (of_u[:, p:] > 0)
    gains = -(np.swapaxes(solved.filt.G.stacked(), 1, 2) @ A)
    plan = LinearPlan(
        bound, solved, problem.rows.and_also(found.rows), found.iterations, found.converged, found.message,
        warm=(found.slack, found.multipliers),
    )  # fmt: skip
    rows = solved.multipliers[: len(problem.rows.node)]
    x, u = solved.x.reshape(1, N, n), solved.a.reshape(1, N, p)
    return Step(
        x, u, _shift(u, gains[None], x), gains[None], solved.smooth.x.flat.reshape(1, N, n), rows,
        active[None].astype(np.int8), float(of_x.max(initial=0.0)), found.converged, problem, plan,
    )  # fmt: skip
