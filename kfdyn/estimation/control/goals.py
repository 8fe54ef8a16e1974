"""Exact goals C x + E u = g as cut joints: one more right-hand side a row, and the multipliers that meet the goals."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError, SingularError
from kfdyn.estimation.inference.filter import kalman_filter
from kfdyn.estimation.inference.filtered import Filtered
from kfdyn.estimation.inference.smoothed import Smoothed
from kfdyn.estimation.inference.smoother import bryson_frazier
from kfdyn.estimation.model.blocks import real_array
from kfdyn.estimation.model.state_space import StateSpace

#: A row whose response is below this part of what its node's state can be moved by is out of reach.
REACH = 1e-12
#: Scaled rows are dependent where an eigenvalue of their responses is below this; rounding leaves 1e-15 of them.
RANK = 1e-11
#: What of a goal may be missed, relative to the terms that make it up, before it contradicts the others.
MISS = 1e-8
#: What rounding leaves of a difference, relative to that: a share of what numbers of the rows' size lose.
ROUNDED = 1e-4


class Rows(NamedTuple):
    """Equations C x + E u = g, each at one node.

    Attributes
    ----------
    node : list of int
        Where each row stands.
    C, E : array, shape (rows, Σn), (rows, Σm)
        Coefficients of the stacked states and controls.
    value : array, shape (..., rows)
        Right-hand sides g.
    names : list of str
        What each row is, for errors.
    size : float
        Size of the numbers whose differences the values are, if they are: what is missed by less is rounding.
    softer : float
        By how much weights on the rows themselves make them respond less: that is no sign that they are out of reach.
    """

    node: list[int]
    C: Array
    E: Array
    value: Array
    names: list[str]
    size: float = 0.0
    softer: float = 1.0

    @classmethod
    def none(cls, ss: StateSpace) -> Rows:
        """No rows."""
        return cls([], np.zeros((0, ss.n_states)), np.zeros((0, ss.n_outputs)), np.zeros(0), [])

    def and_also(self, more: Rows) -> Rows:
        """These rows and others, which have no batch axes."""
        value = np.concatenate(
            [self.value, np.broadcast_to(more.value, (*self.value.shape[:-1], len(more.node)))], axis=-1
        )
        return Rows(
            self.node + more.node,
            np.concatenate([self.C, more.C]),
            np.concatenate([self.E, more.E]),
            value,
            self.names + more.names,
            max(self.size, more.size),
            max(self.softer, more.softer),
        )


class Solved(NamedTuple):
    """A plan that meets its rows.

    Attributes
    ----------
    filt, smooth : Filtered, Smoothed
        The engine's results with the multipliers as linear weights.
    multipliers : array, shape (..., rows)
        What each row presses with: the plan minimises the cost plus multipliers · (C x + E u).
    responses : Filtered or None
        The filter of one linear weight for each row.
    held : array, shape (Σm,), or None
        Controls that were held at known values, NaN for the others.
    """

    filt: Filtered
    smooth: Smoothed
    multipliers: Array
    responses: Filtered | None
    held: Array | None = None

    @property
    def x(self) -> Array:
        """States, stacked."""
        return self.smooth.costate.flat

    @property
    def a(self) -> Array:
        """Controls of the engine, stacked."""
        return self.smooth.a if self.held is None else np.where(np.isnan(self.held), self.smooth.a, self.held)

    def control_slopes(self, R: Array, T: Array) -> Array:
        """R u + r + B*p, what the cost gains by each control; 0 but for those that were held. R is (N, m, m)."""
        ss, p = self.filt.ss, self.smooth.x
        u = self.a.reshape(len(R), -1)
        of_states = np.einsum("kmn,kn->km", ss.H.stacked(), p.stacked())
        return np.einsum("kij,kj->ki", R, u).ravel() - T + of_states.ravel()


def goal_rows(ss: StateSpace, goals: Sequence[Any] | None) -> Rows:
    """Rows of the goals (node, matrix or None, value)."""
    rows = Rows.none(ss)
    for i, goal in enumerate(goals or ()):
        try:
            node, matrix, value = goal
        except (TypeError, ValueError):
            raise ShapeError(f"goals[{i}] must be (step, K, g) for K x(step) = g, or (step, None, g)") from None
        if not isinstance(node, int | np.integer) or not -len(ss) <= node < len(ss):
            raise ShapeError(f"goals[{i}] is at step {node!r}, but the steps are 0 to {len(ss) - 1}")
        k = int(node) % len(ss)
        n, start = int(ss.n[k]), int(ss.arrays.state[k])
        K = np.eye(n) if matrix is None else np.atleast_2d(real_array(matrix, f"goals[{i}]"))
        g = np.atleast_1d(real_array(value, f"goals[{i}]"))
        if K.shape[1:] != (n,) or g.shape[-1] != len(K):
            raise ShapeError(
                f"goals[{i}]: K has shape {K.shape} and g {g.shape}, but K x = g at {ss.tree.label(k)} needs "
                f"K (p, {n}) and g (..., p)"
            )
        if not (np.isfinite(K).all() and np.isfinite(g).all()):
            raise ModelError(f"goals[{i}] has an entry that is not finite")
        C = np.zeros((len(K), ss.n_states))
        C[:, start : start + n] = K
        lead = np.broadcast_shapes(rows.value.shape[:-1], g.shape[:-1])
        rows = Rows(
            rows.node + [k] * len(K),
            np.concatenate([rows.C, C]),
            np.concatenate([rows.E, np.zeros((len(K), ss.n_outputs))]),
            np.concatenate([np.broadcast_to(v, (*lead, v.shape[-1])) for v in (rows.value, g)], axis=-1),
            rows.names + [f"goals[{i}], row {j}," for j in range(len(K))],
        )
    return rows


def solve(ss: StateSpace, xi: Array, eta: Array, T: Array, rows: Rows, held: Array | None = None) -> Solved:
    """Minimise with the rows held: (CΩC* …) μ = C x + E u − g, each row's response one more right-hand side.

    Controls with a number in ``held`` keep it: hinges that are locked while they move. No row has coefficients of them.
    """
    if held is not None:
        known = np.nan_to_num(held).reshape(len(ss), -1)
        eta = eta + np.einsum("kmn,km->kn", ss.H.stacked(), known).ravel()
        T = np.where(np.isnan(held), T - np.einsum("kij,kj->ki", ss.R.stacked(), known).ravel(), np.nan)
        return _with_rows(ss, xi, eta, T, rows)._replace(held=held)
    return _with_rows(ss, xi, eta, T, rows)


def _with_rows(ss: StateSpace, xi: Array, eta: Array, T: Array, rows: Rows) -> Solved:
    filt, smooth = _run(ss, xi, eta, T, covariances=bool(rows.node))
    if not rows.node:
        return Solved(filt, smooth, np.zeros((*smooth.a.shape[:-1], 0)), None)
    unmeasured = np.where(np.isnan(T.reshape(-1, T.shape[-1])[0]), np.nan, 0.0)
    answers, moved = _run(ss, rows.C, None, unmeasured - rows.E, covariances=False)
    theta = _responses(rows, moved)
    x, a = smooth.costate.flat, smooth.a
    reached = x @ rows.C.T + a @ rows.E.T
    off = reached - rows.value
    size = np.abs(rows.value) + np.abs(x) @ np.abs(rows.C).T + np.abs(a) @ np.abs(rows.E).T
    unit, inverse = _inverse(theta, _reach(ss, filt, smooth, rows) / rows.softer)
    multipliers = (off * unit) @ inverse * unit
    left = np.abs(off - multipliers @ theta)
    size += np.abs(multipliers) @ np.abs(theta)
    wrong = np.argwhere(left > MISS * (size + ROUNDED * rows.size))
    if wrong.size:
        at = tuple(wrong[0])
        name, k = rows.names[at[-1]], rows.node[at[-1]]
        why = (
            "no control moves it" if unit[at[-1]] == 0 else f"it contradicts {_against(ss, rows, theta, unit, at[-1])}"
        )
        raise ModelError(
            f"{name} at {ss.tree.label(k)} is missed by {left[at]:.3g}: {why}; drop it, or give it a weight instead"
        )
    filt, smooth = _run(ss, xi + multipliers @ rows.C, eta, T - multipliers @ rows.E, covariances=False)
    # one step of refinement: what rounding has left of the rows
    off = smooth.costate.flat @ rows.C.T + smooth.a @ rows.E.T - rows.value
    multipliers = multipliers + (off * unit) @ inverse * unit
    filt, smooth = _run(ss, xi + multipliers @ rows.C, eta, T - multipliers @ rows.E, covariances=False)
    return Solved(filt, smooth, multipliers, answers)


def _run(ss: StateSpace, xi: Array, eta: Array | None, T: Array, covariances: bool) -> tuple[Filtered, Smoothed]:
    try:
        filt = kalman_filter(ss, T, xi, eta)
    except SingularError as error:
        where = "" if error.node is None else f" of {ss.tree.label(error.node)}"
        raise SingularError(
            f"a control{where} has no weight, and moves nothing that has one: R + B*PB is singular; weigh it in R",
            error.node,
            error.output,
        ) from None
    return filt, bryson_frazier(ss, filt, covariances=covariances)


def _responses(rows: Rows, moved: Smoothed) -> Array:
    """Θ: how each row answers to pressing on each other."""
    theta = -(moved.costate.flat @ rows.C.T + moved.a @ rows.E.T)
    return np.asarray(0.5 * (theta + theta.T))


def choice_left(ss: StateSpace, rows: Rows, answers: Filtered, C: Array) -> Array:
    """Return what exact rows leave of the variance of C x(k), relative, (N, p) of C (N, p, n): the Schur complement.

    Controls are noise: with the rows Γ held, var(C x | Γ) = CΩC* − CΩΓ* Θ⁻¹ ΓΩC*. It is 0 where the rows decide C x.
    """
    moved = bryson_frazier(ss, answers)
    before = np.einsum("kpi,kij,kpj->kp", C, moved.Lambda.stacked(), C)
    theta = _responses(rows, moved)
    unit, inverse = _inverse(theta, np.zeros(len(theta)))
    each = moved.costate.flat.reshape(len(theta), *C.shape[::2])
    moves = np.einsum("kpn,jkn,j->jkp", C, each, unit)
    told = np.einsum("ikp,ij,jkp->kp", moves, inverse, moves)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(before > 0.0, (before - told) / before, 0.0))


def _reach(ss: StateSpace, filt: Filtered, smooth: Smoothed, rows: Rows) -> Array:
    """Return the largest response of each row: that of coefficients along the direction that moves most."""
    out = np.empty(len(rows.node))
    inverse = filt.covariances.inverse_blocks
    for j, k in enumerate(rows.node):
        c = rows.C[j, ss.arrays.state[k] : ss.arrays.state[k + 1]]
        e = rows.E[j, ss.arrays.output[k] : ss.arrays.output[k + 1]]
        out[j] = (c @ c) * np.abs(smooth.Lambda[k]).max(initial=0.0) + (e @ e) * np.abs(inverse[k]).max(initial=0.0)
    return out


def _inverse(theta: Array, reach: Array) -> tuple[Array, Array]:
    """Units of the rows (0 for those out of reach), and the pseudo-inverse of their responses in these units."""
    own = np.diagonal(theta, axis1=-2, axis2=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = np.where(own > REACH * reach, 1.0 / np.sqrt(own), 0.0)
    scaled = theta * unit[..., :, None] * unit[..., None, :]
    with suppress(np.linalg.LinAlgError):  # far from singular no eigenvalues are needed, which are dear
        inverse = np.linalg.inv(scaled)
        if (np.linalg.norm(inverse, axis=(-2, -1)) < 1.0 / (RANK * max(1, scaled.shape[-1]))).all():
            return unit, np.asarray(0.5 * (inverse + np.swapaxes(inverse, -1, -2)), np.float64)
    values, vectors = np.linalg.eigh(scaled)
    with np.errstate(divide="ignore"):
        inverses = np.where(values > RANK * np.maximum(values[..., -1:], 1.0), 1.0 / values, 0.0)
    return unit, (vectors * inverses[..., None, :]) @ np.swapaxes(vectors, -1, -2)


def _against(ss: StateSpace, rows: Rows, theta: Array, unit: Array, row: int) -> str:
    """Names of the rows that a row depends on: they have a share in the combinations that nothing moves."""
    values, vectors = np.linalg.eigh(theta * unit[:, None] * unit)
    idle = vectors[:, values <= RANK * max(values[-1], 1.0)]
    share = np.abs(idle @ idle[row])
    share[row] = 0.0
    others = [i for i in np.argsort(-share).tolist() if share[i] > 1e-4 * max(share.max(), 1e-300)]
    told = [f"{rows.names[i].rstrip(',')} at {ss.tree.label(rows.node[i])}" for i in others]
    if not told:
        return "the others"
    return " and ".join(told[:3]) + (f" and {len(told) - 3} more" if len(told) > 3 else "")


def feedback_terms(ss: StateSpace, rows: Rows, answers: Filtered) -> list[Array]:
    """Return what the rows of its subtree add to each node's gain: N Θ⁻¹ Z⁺*, (m_k, n_k), on A x(parent) + c.

    With one linear weight a row the cost to go is ½ y*P⁺y + y*Z⁺μ − ½ μ*Θμ; the multipliers that meet the rows follow
    the state y, and the control follows them. Where fewer controls are left than a goal has rows, least squares.
    """
    theta = np.zeros((len(ss), len(rows.node), len(rows.node)))
    output, parent = ss.arrays.output, ss.tree.parent
    for k in ss.tree.order.tolist():  # children before parents
        eps, nu = (part[:, output[k] : output[k + 1]] for part in (answers.eps, answers.nu))
        theta[k] += eps @ nu.T
        if parent[k] >= 0:
            theta[parent[k]] += theta[k]
    out = []
    for k in range(len(ss)):
        unit, inverse = _inverse(theta[k], np.max(np.diagonal(theta[k])) * np.ones(len(rows.node)))
        nu = answers.nu[:, output[k] : output[k + 1]]
        out.append((nu * unit[:, None]).T @ inverse @ (answers.z_plus[k] * unit[:, None]))
    return out
