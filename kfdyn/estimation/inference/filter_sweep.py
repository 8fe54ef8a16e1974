"""The gather of states: innovations and estimates of a batch from the leaves to the roots, compiled."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from kfdyn.errors import ShapeError
from kfdyn.estimation.inference.batching import as_rows, count_rows, over_rows, step_of
from kfdyn.estimation.inference.filter_covariances import Riccati
from kfdyn.estimation.model.blocks import FloatArray
from kfdyn.estimation.model.overflow import expect_finite_blocks, sum_is_finite

_NOTHING = np.empty(0)
_NOTHING.flags.writeable = False


def batch_of(*arrays: FloatArray | None) -> tuple[int, ...]:
    """The batch axes that T, ξ and η have together."""
    if all(a is None or a.ndim == 1 for a in arrays):
        return ()
    try:
        return np.broadcast_shapes(*(a.shape[:-1] for a in arrays if a is not None))
    except ValueError as error:
        shapes = ", ".join(f"{name} {a.shape}" for name, a in zip(("T", "xi", "eta"), arrays) if a is not None)
        raise ShapeError(f"the batch axes do not broadcast: {shapes} (the last axis is the stacked one)") from error


@cache
def _gather() -> Any:
    """The module of the gather: an import at each call would take as long as a short filter."""
    from kfdyn.estimation.recursions import vector_pass

    return vector_pass


def sweep(
    cov: Riccati, T: FloatArray, xi: FloatArray | None, eta: FloatArray | None, *, states: bool
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """ε, ν, z, z⁺ of a batch; z and z⁺ are empty unless asked for."""
    gather, ss = _gather(), cov.ss
    batch = batch_of(T, xi, eta)
    rows = count_rows(batch)
    T_rows = as_rows(T if T.shape[:-1] == batch else np.broadcast_to(T, (*batch, ss.n_outputs)))
    xi_rows = _NOTHING if xi is None else as_rows(xi, batch)
    eta_rows = _NOTHING if eta is None else as_rows(eta, batch)
    size = rows * ss.n_outputs
    stored = rows * ss.n_states if states else 0
    found = np.empty(2 * (size + stored))  # in one buffer, so that one look tells whether all is finite
    eps, nu = found[:size], found[size : 2 * size]
    z, z_plus = found[2 * size : 2 * size + stored], found[2 * size + stored :]
    xi_step = -1 if xi is None else step_of(xi_rows, ss.n_states, rows)
    eta_step = -1 if eta is None else step_of(eta_rows, ss.n_states, rows)
    swept = gather.FilteredRows(T_rows, xi_rows, eta_rows, xi_step, eta_step, int(states), eps, nu, z, z_plus)
    over_rows(
        rows,
        gather.Gather.size(ss.n_states, ss.n_outputs, ss.common.most_states),
        lambda lanes, share: gather.filter_states(lanes, cov.sizes, ss.address, cov.flats, swept, share),
    )
    finite = sum_is_finite(found)
    if batch or not states:
        outputs, inner = (*batch, ss.n_outputs), (*(batch if states else (0,)), ss.n_states)
        eps, nu, z, z_plus = eps.reshape(outputs), nu.reshape(outputs), z.reshape(inner), z_plus.reshape(inner)
    if not finite:
        expect_finite_blocks(ss.tree, "z⁺", ss.state_blocks(z_plus), ss.tree.order)
        expect_finite_blocks(ss.tree, "ν", ss.output_blocks(nu), ss.tree.order)
    return eps, nu, z, z_plus


def sweep_back(
    cov: Riccati, nu: FloatArray, eta: FloatArray | None, z_plus: FloatArray | None
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """a, λ⁺, λ, x̂ of a batch of residuals ν; the last three are empty where the filter's z⁺ is not given."""
    from kfdyn.estimation.recursions.vector_pass import Scatter, SmoothedRows, smooth_costates

    ss = cov.ss
    batch = nu.shape[:-1]
    rows = count_rows(batch)
    nu_rows = as_rows(nu)
    eta_rows = np.empty(0) if eta is None else as_rows(eta, batch)
    z_rows = as_rows(np.empty(0) if z_plus is None else z_plus)
    a = np.empty(nu_rows.size)
    plus, costate, x = (np.empty(z_rows.size) for _ in range(3))
    eta_step = -1 if eta is None else step_of(eta_rows, ss.n_states, rows)
    swept = SmoothedRows(nu_rows, eta_rows, eta_step, int(z_plus is not None), z_rows, a, plus, costate, x)
    over_rows(
        rows,
        Scatter.size(ss.n_states, ss.n_outputs, ss.common.most_states),
        lambda lanes, share: smooth_costates(lanes, cov.sizes, ss.address, cov.flats, swept, share),
    )
    stored = (*((0,) if z_plus is None else batch), ss.n_states)
    result = a.reshape(nu.shape), plus.reshape(stored), costate.reshape(stored), x.reshape(stored)
    for name, flat in (("λ", result[2]), ("x̂", result[3])):
        expect_finite_blocks(ss.tree, name, ss.state_blocks(flat), ss.tree.order[::-1])
    expect_finite_blocks(ss.tree, "a", ss.output_blocks(result[0]), ss.tree.order[::-1])
    return result
