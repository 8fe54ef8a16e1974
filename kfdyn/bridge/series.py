"""Likelihoods and smoothed means as operations: the gradient is the score, the adjoint of a smoother is one more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.bridge.operations import KNOWN, About, Operation, Shape
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation import Operators, StateSpace, score, smooth_batch

NAMES = ("phi", "H", "Q", "R", "xi", "eta")


def expect_model(ss: Any) -> None:
    """Refuse what is no model with proper priors."""
    if not isinstance(ss, StateSpace):
        raise ModelError(f"the bridge takes a StateSpace, got {type(ss).__name__}")
    if ss.flat is not None:
        raise ModelError("the bridge takes models with proper priors, and this one has states with flat ones; give P0")


def size_of(ss: StateSpace, name: str) -> int:
    """How many numbers the blocks of this name are, one after the other; roots have no φ."""
    return ss.n_states if name in ("xi", "eta") else int(getattr(ss, name).packed().flat.size)


def flattened(xp: Any, ss: StateSpace, name: str, value: Any) -> Any:
    """Blocks as the user gives them, as one vector (..., numbers): stacked (..., N, r, c), or one array a node."""
    if name in ("xi", "eta"):
        return value
    blocks = getattr(ss, name)
    inner = _nodes(ss, name)
    if isinstance(value, list | tuple):
        if len(value) != len(ss):
            raise ShapeError(f"{name} has {len(value)} blocks, and the model has {len(ss)} nodes")
        parts = []
        for k in inner:
            size = (int(blocks.rows[k]), int(blocks.cols[k]))
            if tuple(value[k].shape[-2:]) != size:
                raise ShapeError(
                    f"{name}[{k}] must have shape (..., {size[0]}, {size[1]}), got {tuple(value[k].shape)}"
                )
            parts.append(value[k].reshape(*value[k].shape[:-2], size[0] * size[1]))
        return xp.concatenate(parts, -1)
    rows, cols = int(blocks.rows[inner[0]]), int(blocks.cols[inner[0]])
    if tuple(value.shape[-3:]) != (len(ss), rows, cols):
        raise ShapeError(f"{name} must have shape (..., {len(ss)}, {rows}, {cols}), got {tuple(value.shape)}")
    kept = value if len(inner) == len(ss) else value[..., inner, :, :]
    return kept.reshape(*value.shape[:-3], len(inner) * rows * cols)


def _model(op: Operation, flats: Sequence[Array]) -> StateSpace:
    """The model with these numbers, checked."""
    ss = op.model
    new: dict[str, Any] = {}
    for name, flat in zip(op.more, flats):
        if name in ("xi", "eta"):
            new[name] = flat
            continue
        blocks, inner = getattr(ss, name).packed(), _nodes(ss, name)
        rows, cols = blocks.rows[inner], blocks.cols[inner]
        if (rows == rows[0]).all() and (cols == cols[0]).all():
            new[name] = np.zeros((len(ss), rows[0], cols[0]))
            new[name][inner] = flat.reshape(-1, rows[0], cols[0])
        else:
            known, having = blocks.like(flat), set(inner.tolist())
            new[name] = [known[k] if k in having else None for k in range(len(ss))]
    return ss.replace(**new)


def _nodes(ss: StateSpace, name: str) -> NDArray[np.int64]:
    """Nodes that have a block of this name; roots have no φ."""
    return np.flatnonzero(ss.tree.parent >= 0) if name == "phi" else np.arange(len(ss))


def _scores(op: Operation, T: Array, *flats: Any) -> Any:
    """(rows, their measurements, their score) of every model; one model for all rows if all have the same blocks."""
    if all(x.size == x.shape[-1] for x in flats):
        yield (), T, score(_model(op, [x.reshape(-1) for x in flats]), T)
        return
    lead = np.broadcast_shapes(T.shape[:-1], *(x.shape[:-1] for x in flats))
    measured, *each = (np.broadcast_to(x, (*lead, x.shape[-1])) for x in (T, *flats))
    for at in np.ndindex(lead):
        yield at, measured[at], score(_model(op, [x[at] for x in each]), measured[at])


def _log_likelihood(op: Operation, *given: Array) -> Sequence[Array]:
    llf = np.empty(np.broadcast_shapes(*(x.shape[:-1] for x in given)))
    for at, _, found in _scores(op, *given):
        llf[at] = found.llf
    return (llf,)


def _log_likelihood_derivatives(op: Operation, *given: Array) -> Sequence[Array]:
    """ℓ, ∂ℓ/∂T = −a, and the score in the blocks that are given."""
    lead = np.broadcast_shapes(*(x.shape[:-1] for x in given))
    llf, *slopes = np.empty(lead), *(np.empty((*lead, x.shape[-1])) for x in given)
    for at, T, found in _scores(op, *given):
        llf[at] = found.llf
        slopes[0][at] = -np.where(np.isnan(T), 0.0, found.smooth.a)
        for name, slope in zip(op.more, slopes[1:]):
            slope[at] = getattr(found, name) if name in ("xi", "eta") else getattr(found, name).packed().flat
    return llf, *slopes


def _rule(xp: Any, call: Any, op: Operation, *given: Any) -> Any:
    value, *by = call(op.other("derivatives_of_log_likelihood"), *given)
    return (value,), [by]


def _smoothed(op: Operation, T: Array) -> Sequence[Array]:
    """x̂ (..., Σn_k) of measurements (..., Σm_k)."""
    return (smooth_batch(op.model, T).x.flat,)


def _respond(op: Operation, T: Array, measured: Array) -> Sequence[Array]:
    """The same without ξ and η, missing where ``measured`` is NaN: linear in T."""
    none = np.zeros(op.model.n_states)
    return (smooth_batch(op.model, np.where(np.isnan(measured), np.nan, T), none, none).x.flat,)


def _respond_adjoint(op: Operation, x: Array, measured: Array) -> Sequence[Array]:
    """𝓜⁻¹HφQφ* x of the measurements that are there: gather, scatter, and the smoother's a; 0 where T is missing."""
    ss, of = op.model, Operators(op.model)
    lead = np.broadcast_shapes(x.shape[:-1], measured.shape[:-1])
    columns = np.broadcast_to(x, (*lead, ss.n_states)).reshape(-1, ss.n_states).T
    T = (of.H @ (of.phi @ (of.Q @ (of.phi.H @ columns)))).T.reshape(*lead, ss.n_outputs)
    none = np.zeros(ss.n_states)
    return (smooth_batch(ss, np.where(np.isnan(measured), np.nan, T), none, none).a,)


def _blocks(op: Operation) -> list[Shape]:
    return [(op.model.n_outputs,), *((size_of(op.model, name),) for name in op.more)]


def _outputs(op: Operation) -> list[Shape]:
    return [(op.model.n_outputs,)]


def _states(op: Operation) -> list[Shape]:
    return [(op.model.n_states,)]


KNOWN.update(
    {
        "log_likelihood": About(_blocks, lambda op: [()], _log_likelihood, _rule, 0),
        "derivatives_of_log_likelihood": About(_blocks, lambda op: [(), *_blocks(op)], _log_likelihood_derivatives),
        "smoothed_means": About(_outputs, _states, _smoothed),
        "response": About(lambda op: [*_outputs(op), *_outputs(op)], _states, _respond, adjoint="adjoint_of_response"),
        "adjoint_of_response": About(
            lambda op: [*_states(op), *_outputs(op)], _outputs, _respond_adjoint, adjoint="response"
        ),
    }
)
