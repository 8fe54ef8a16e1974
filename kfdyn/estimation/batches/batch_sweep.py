"""The sweep over many models, and what becomes of those that it has no answer for."""

from __future__ import annotations

from typing import Any

import numpy as np

from kfdyn.errors import KfdynError
from kfdyn.estimation.batches.state_space_batch import StateSpaceBatch
from kfdyn.estimation.flat.filtering import flat_filter
from kfdyn.estimation.flat.smoothing import flat_smoother
from kfdyn.estimation.inference.batching import over_models
from kfdyn.estimation.inference.filter_covariances import BoolArray
from kfdyn.estimation.inference.filtered import filtered
from kfdyn.estimation.inference.riccati import riccati
from kfdyn.estimation.inference.smoothed import smoothed
from kfdyn.estimation.model.blocks import FloatArray, offsets_of

BLOCKS = ("phi", "H", "Q", "R")
_LOG_2PI = float(np.log(2.0 * np.pi))


def filtered_alone(
    ss: StateSpaceBatch, b: int, rows: FloatArray, seen: BoolArray, smooth: bool = False
) -> tuple[Any, Any]:
    """Filter, and smoother if it is wanted, of model b alone; an error says which model it is."""
    model, T, mask = ss[b], rows[b if len(rows) > 1 else 0], None if seen.all() else seen
    try:
        if model.flat is not None:
            flat: Any = flat_filter(model, mask, T, model.xi, None, "block")
            return flat, flat_smoother(flat, False) if smooth else None
        filt = filtered(riccati(model, mask), T, model.xi, None)
        return filt, smoothed(filt, True) if smooth else None
    except KfdynError as error:
        raise type(error)(f"model {b}: {error}") from None


def run(ss: StateSpaceBatch, T: FloatArray, seen: BoolArray, what: str) -> dict[str, Any]:
    """Run the sweep; ``alone`` are the models that have no answer side by side."""
    from kfdyn.estimation.recursions.many_models import many_sweep as recursion
    from kfdyn.sweeps import Tag

    like, B, S = ss.like, len(ss), T.shape[1]
    n, m, Q, H, R = like.n_states, like.n_outputs, like.Q.flat.size, like.H.flat.size, like.R.flat.size
    flat = np.zeros(0, np.int64) if like.flat is None else like.flat
    phi_at = offsets_of(like.phi.rows * like.n)
    arrays = {name: getattr(ss, name).flat for name in BLOCKS}
    xi = np.zeros((1, 0)) if ss.xi is None else ss.xi
    steps = [0 if len(own) == 1 and B > 1 else own.shape[1] for own in (*arrays.values(), xi)]
    rows = np.ascontiguousarray(np.where(seen, T, 0.0))
    given: Any = recursion.Given(  # type: ignore[call-arg]
        *(np.ascontiguousarray(own).reshape(-1) for own in (*arrays.values(), xi)), rows.reshape(-1), *steps,
        0 if len(rows) == 1 and B > 1 else S * m, arrays["phi"].shape[1], S, flat, phi_at, np.array(seen),
    )  # fmt: skip
    told = recursion.Told(np.empty(B), np.empty(B), np.empty(B * m), np.empty(B * flat.size))
    shapes: dict[str, tuple[Any, dict[str, int]]] = {
        "likelihood": (recursion.Scores, dict.fromkeys(("phi", "H", "Q", "R", "xi"), 0)),
        "filter": (
            recursion.FilterFills,
            {"P": Q, "P_plus": Q, "D": R, "L": R, "G": H, "z": n * S, "z_plus": n * S, "eps": m * S},
        ),
        "smooth": (recursion.SmootherFills, {"Lambda": Q, "S": Q, "costate": n * S, "x": n * S, "a": m * S}),
        "score": (recursion.Scores, {"phi": int(phi_at[-1]), "H": H, "Q": Q, "R": R, "xi": n}),
    }
    kind, widths = shapes[what]
    out = {name: np.empty((B, width)) for name, width in widths.items()}
    wanted = dict(zip(shapes, (recursion.LIKELIHOOD, recursion.FILTERED, recursion.SMOOTH, recursion.SCORE)))[what]
    tags = Tag(wanted), Tag(1) if like.common.most_outputs > 1 else None
    sizes = arrays["phi"].shape[1], int(phi_at[-1]), Q, H, R, n, m, S, flat.size, wanted
    filled = kind(*(array.reshape(-1) for array in out.values()))
    over_models(
        B,
        recursion.numbers(sizes, like.common.most_states, like.common.most_outputs),
        lambda lanes, share: recursion.evaluate_models(lanes, *tags, like.address, given, told, filled, share),
    )
    with np.errstate(all="ignore"):
        logdet = 2.0 * np.log(told.deviations).reshape(B, m).sum(axis=1)
        if what != "filter":
            logdet += 2.0 * np.log(told.diagonal).reshape(B, -1).sum(axis=1)
        llf = -0.5 * (S * (int(seen.sum()) * _LOG_2PI + logdet) + told.squares)
        whole = llf + told.lost + sum(array.sum(axis=1) for array in out.values())
    return {**out, "llf": llf, "alone": np.flatnonzero(~np.isfinite(whole)).tolist()}
