"""A linear-quadratic control problem handed to the engine: φ = A*, H = B*, ξ = q, η = c, T = −r."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import KfdynError, ModelError, ShapeError
from kfdyn.estimation.model.blocks import real_array
from kfdyn.estimation.model.state_space import StateSpace
from kfdyn.estimation.model.tree import Tree

BlocksOrArray = ArrayLike | Sequence[Any]
#: A matrix for each node, stacked where they are of one size.
Matrices = Array | list[Array]


class Problem(NamedTuple):
    """A problem, node by node, and the model whose filter solves it.

    Attributes
    ----------
    ss : StateSpace
        The engine's model: φ = A*, H = B*, and the weights as covariances, cross terms eliminated.
    A, B, Q, R : array (N, rows, columns), or list of arrays
        Blocks (n_k, n_parent), (n_k, m_k), (n_k, n_k) and (m_k, m_k) as they were given.
    N : the same, or None
        Cross weights (m_k, n_parent) as they were given.
    shift : the same, or None
        R⁻¹N, by which cross terms were eliminated: the engine's control is u + R⁻¹N x(parent).
    x0 : array, shape (..., n_parent)
        The state before the roots.
    c, q, r : array, shape (..., Σn), (..., Σn), (..., Σm)
        Drift and linear weights, stacked; NaN in r where there is no control.
    """

    ss: StateSpace
    A: Matrices
    B: Matrices
    Q: Matrices
    R: Matrices
    N: Matrices | None
    shift: Matrices | None
    x0: Array
    c: Array
    q: Array
    r: Array

    @property
    def inputs(self) -> tuple[Array, Array, Array]:
        """ξ, η and T of the engine, cross terms eliminated."""
        ss, xi = self.ss, self.q
        roots = ss.tree.roots
        eta = np.broadcast_to(self.c, np.broadcast_shapes(self.c.shape, (*self.x0.shape[:-1], ss.n_states))).copy()
        for k in roots:
            own = eta[..., ss.arrays.state[k] : ss.arrays.state[k + 1]]
            own += self.x0 @ self.before(k).T
        if self.shift is not None and self.r.any():
            xi = np.broadcast_to(xi, (*self.r.shape[:-1], ss.n_states)).copy()
            for k, p in enumerate(ss.tree.parent.tolist()):
                if p >= 0:
                    r = self.r[..., ss.arrays.output[k] : ss.arrays.output[k + 1]]
                    xi[..., ss.arrays.state[p] : ss.arrays.state[p + 1]] -= r @ self.shift[k]
        return xi, eta, -self.r

    def before(self, k: int) -> Array:
        """A of node k with cross terms eliminated, A − B R⁻¹N."""
        return self.A[k] if self.shift is None else self.A[k] - self.B[k] @ self.shift[k]

    def parent_states(self, x: Array) -> list[Array]:
        """The state of every node's parent, x₀ above a root."""
        state = self.ss.arrays.state
        return [self.x0 if p < 0 else x[..., state[p] : state[p + 1]] for p in self.ss.tree.parent.tolist()]

    def controls(self, a: Array, x: Array) -> Array:
        """Controls u = a − R⁻¹N x(parent) of the engine's co-state of the outputs."""
        if self.shift is None:
            return a
        output, u = self.ss.arrays.output, a.copy()
        for k, before in enumerate(self.parent_states(x)):
            u[..., output[k] : output[k + 1]] -= before @ self.shift[k].T
        return u

    def cost(self, x: Array, u: Array) -> Array:
        """Σ ½x*Qx + q*x + ½u*Ru + r*u + u*N x(parent), one number for each batch entry."""
        state, output = self.ss.arrays.state, self.ss.arrays.output
        total = (x * self.q).sum(-1) + (u * np.nan_to_num(self.r)).sum(-1)
        if isinstance(self.Q, np.ndarray) and isinstance(self.R, np.ndarray) and self.N is None:
            for flat, weights in ((x, self.Q), (u, self.R)):
                rows = flat.reshape(*flat.shape[:-1], *weights.shape[:2])
                total = total + 0.5 * ((weights @ rows[..., None])[..., 0] * rows).sum((-2, -1))
            return np.asarray(total)
        before = self.parent_states(x) if self.N is not None else []
        for k in range(len(self.ss)):
            xk, uk = x[..., state[k] : state[k + 1]], u[..., output[k] : output[k + 1]]
            total = total + 0.5 * (((xk @ self.Q[k]) * xk).sum(-1) + ((uk @ self.R[k]) * uk).sum(-1))
            if self.N is not None:
                total = total + (uk * (before[k] @ self.N[k].T)).sum(-1)
        return total


def bind(
    A: BlocksOrArray,
    B: BlocksOrArray,
    Q: BlocksOrArray,
    R: BlocksOrArray,
    x0: ArrayLike,
    parent: ArrayLike | Tree | None,
    c: ArrayLike | None,
    q: ArrayLike | None,
    r: ArrayLike | None,
    N: BlocksOrArray | None,
    steps: int | None,
) -> Problem:
    """Check the arguments of :func:`kfdyn.lqr` and hand them to the engine."""
    tree = _tree(parent, {"A": A, "B": B, "Q": Q, "R": R, "N": N}, steps)
    count = len(tree)
    As, Bs, Qs, Rs = (_blocks(tree, name, given) for name, given in (("A", A), ("B", B), ("Q", Q), ("R", R)))
    start = np.atleast_1d(real_array(x0, "x0"))
    if not np.isfinite(start).all():
        raise ModelError("x0 has an entry that is not finite; the state before the first step must be known")
    _expect_shapes(tree, As, Bs, start.shape[-1])
    Ns = shift = None
    weights = Qs
    if N is not None:
        Ns = _blocks(tree, "N", N)
        weights, shift = _without_cross_terms(tree, As, Bs, Qs, Rs, Ns)
    before = As if shift is None else [a - b @ s for a, b, s in zip(As, Bs, shift)]
    try:
        ss = StateSpace(tree, _turned(before, tree), _turned(Bs), weights, Rs)
    except KfdynError as error:
        hint = "; with cross terms it is Q − Σ N*R⁻¹N of the next controls that must be" if N is not None else ""
        raise type(error)(f"{error}{hint}") from None
    known = [_stacked(ss, value, name) for value, name in ((c, "c"), (q, "q"))]
    slope = np.zeros(ss.n_outputs) if r is None else ss.check_outputs(r, "r", allow_nan=True)
    if N is not None and np.isnan(slope).any():
        raise ModelError(
            "r is NaN, a failed actuator, beside cross terms N; leave that control's columns of B and N out"
        )
    if count and start.ndim > 1:
        np.broadcast_shapes(start.shape[:-1], known[0].shape[:-1], known[1].shape[:-1], slope.shape[:-1])
    return Problem(ss, As, Bs, Qs, Rs, Ns, shift, start, known[0], known[1], slope)


def _tree(parent: ArrayLike | Tree | None, given: dict[str, Any], steps: int | None) -> Tree:
    if parent is not None:
        tree = parent if isinstance(parent, Tree) else Tree(parent)
        if not len(tree):
            raise ShapeError("parent has no entries, so there is no step; give one entry for each step")
        if steps is not None and steps != len(tree):
            raise ShapeError(
                f"parent has {len(tree)} entries, one for each step, but steps is {steps!r}; leave steps out"
            )
        return tree
    if steps is None:
        counts = {
            name: len(value) for name, value in given.items() if value is not None and np.ndim(_first(value)) == 2
        }
        if not counts:
            raise ShapeError("every matrix is the same at all steps, so their number is unknown; give steps=")
        name, steps = next(iter(counts.items()))
        for other, count in counts.items():
            if count != steps:
                raise ShapeError(f"{other} has {count} entries and {name} has {steps}; give one for each step")
    if not isinstance(steps, int | np.integer) or steps < 1:
        raise ShapeError(f"steps must be a whole number of at least 1, got {steps!r}")
    return line(int(steps))


@lru_cache(maxsize=16)
def line(steps: int) -> Tree:
    """Build the tree in which step k has parent k − 1."""
    return Tree(np.arange(-1, steps - 1))


def _first(value: Any) -> Any:
    """The first entry of a sequence, None of what has none."""
    try:
        return value[0] if len(value) else None
    except (TypeError, KeyError):
        return None


def _blocks(tree: Tree, name: str, given: Any) -> Matrices:
    """One matrix for each node: an array (N, rows, columns) where it is given so, or a single matrix stands for all."""
    count = len(tree)
    if np.ndim(_first(given)) < 2:
        one = real_array(given, name)
        if one.ndim == 0:
            one = one.reshape(1, 1)
        if one.ndim != 2:
            raise ShapeError(f"{name} must be one matrix, or one for each step, got shape {one.shape}")
        blocks: Matrices = np.broadcast_to(one, (count, *one.shape))
    elif isinstance(given, np.ndarray) and given.ndim == 3:
        blocks = real_array(given, name)
    else:
        blocks = [real_array(block, f"{name} of {tree.label(k)}") for k, block in enumerate(given)]
    if len(blocks) != count:
        raise ShapeError(f"{name} has {len(blocks)} blocks, but there are {count} steps; give one for each step")
    if isinstance(blocks, np.ndarray) and np.isfinite(blocks if blocks.strides[0] else blocks[:1]).all():
        return blocks
    for k, block in enumerate(blocks):
        if block.ndim != 2:
            raise ShapeError(f"{name} of {tree.label(k)} must be a matrix, got shape {block.shape}")
        if not np.isfinite(block).all():
            raise ModelError(f"{name} of {tree.label(k)} has an entry that is not finite")
    return blocks


def _turned(blocks: Matrices, tree: Tree | None = None) -> Any:
    """Their transposes; without those of the roots, where a tree is given."""
    if isinstance(blocks, np.ndarray):
        return np.swapaxes(blocks, 1, 2)
    return [None if tree is not None and tree.parent[k] < 0 else block.T for k, block in enumerate(blocks)]


def _expect_shapes(tree: Tree, A: Matrices, B: Matrices, size: int) -> None:
    """A and B that fit the states, x₀ of this size."""
    uniform = isinstance(A, np.ndarray) and isinstance(B, np.ndarray) and len(A) > 0
    if uniform and A[0].shape == (size, size) and len(B[0]) == size:
        return
    n = [block.shape[0] for block in A]
    for k, p in enumerate(tree.parent.tolist()):
        want, above = (size, "x0") if p < 0 else (n[p], tree.label(p))
        if A[k].shape[1] != want:
            raise ShapeError(
                f"A of {tree.label(k)} has {A[k].shape[1]} columns, but the state of {above}, which comes before it, "
                f"has size {want}"
            )
        if B[k].shape[0] != n[k]:
            raise ShapeError(f"B of {tree.label(k)} has {B[k].shape[0]} rows, but A says that its state has {n[k]}")


def _without_cross_terms(
    tree: Tree, A: Matrices, B: Matrices, Q: Matrices, R: Matrices, N: Matrices
) -> tuple[list[Array], list[Array]]:
    """Weights Q − Σ N*R⁻¹N, and R⁻¹N: the square completed (THEORY 19)."""
    weights: list[Array] = [np.array(block) for block in Q]
    shift: list[Array] = []
    for k, p in enumerate(tree.parent.tolist()):
        want = (B[k].shape[1], A[k].shape[1])
        if N[k].shape != want:
            raise ShapeError(
                f"N of {tree.label(k)} has shape {N[k].shape}, but u*N x(parent) needs {want}: a row for each control, "
                "a column for each state of the step before"
            )
        try:
            np.linalg.cholesky(R[k])
        except np.linalg.LinAlgError:
            raise ModelError(
                f"R of {tree.label(k)} is not positive definite, as the cross term N needs it to be; weigh every "
                "control"
            ) from None
        shift.append(np.asarray(np.linalg.solve(R[k], N[k]), np.float64))
        if p >= 0:
            weights[p] = weights[p] - N[k].T @ shift[k]
            weights[p] = 0.5 * (weights[p] + weights[p].T)
    return weights, shift


def _stacked(ss: StateSpace, value: ArrayLike | None, name: str) -> Array:
    """A known vector for each node, (..., Σn) or (..., N, n), stacked."""
    if value is None:
        return np.zeros(ss.n_states)
    n = ss.common.n
    if n and len(ss) > 1 and np.shape(value)[-2:] == (len(ss), n):
        array = real_array(value, name)
        value = array.reshape(*array.shape[:-2], ss.n_states)
    return ss.check_states(value, name)
