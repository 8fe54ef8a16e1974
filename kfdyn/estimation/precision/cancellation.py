"""Estimate the digits lost where a vague prior meets sharp measurements, and warn."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kfdyn.errors import LostDigitsWarning

if TYPE_CHECKING:
    from kfdyn.estimation.inference.filter_covariances import BoolArray, Riccati

_PACKAGE = __name__.partition(".")[0]
_EPS = float(np.finfo(float).eps)
#: Relative error of a covariance above which is warned: fewer than five digits are left.
TOLERABLE = 1e-5


class Loss(NamedTuple):
    """Relative ``error`` of some covariance that cancellation leaves, and the ``node`` where it arises."""

    error: float
    node: int


def lost_digits(cov: Riccati, above: float = TOLERABLE) -> Loss:
    """Estimate what cancellation costs in P⁺ = P − G D G*.

    A state that is not measured itself, but correlated with what is, has its variance P_ii reduced by a difference of
    large numbers: what is left, P⁺_ii, has the relative error ε P_ii/P⁺_ii. In the measured direction itself nothing is
    lost: there P⁺h* = r g is put in (the step of refinement of the update). So

        error = ε max_k max_i (1 − l_i) P_ii/P⁺_ii,     l_i = Σ_a h_ai² P_ii / Σ_j h_aj² P_jj  ≤ 1

    with the share l_i of state i in what is measured. Several outputs of one node are worse off: what the first leave
    of the last is a pivot of D's factor, with the relative error ε D_aa/L_aa². The larger of the two counts. It is an
    estimate: beside 60 digits the true error was between a hundredth and a hundred times this. Nodes with exact
    outputs (r = 0) are left out: there zero variances are the rule.

    Notes
    -----
    O(N): since P⁺_ii ≥ P_ii r/d, only nodes with d/r > ``above``/ε are looked at, and in most models there is none.

    Examples
    --------
    >>> import kfdyn as kf
    >>> F, H, one = [[1.0, 1.0], [0.0, 1.0]], [[1.0, 0.0]], np.eye(2)
    >>> ss = kf.StateSpace.chain(F, H, one, [[1.0]], P0=1e12 * one, steps=9)
    >>> loss = lost_digits(kf.riccati(ss))
    >>> loss.node, f"{loss.error:.0e}"
    (1, '6e-05')
    """
    worst = Loss(0.0, -1)
    D, R, m = cov.D, cov.ss.R, cov.ss.m
    if not m.size or cov.ss.n_outputs == 0:
        return worst
    if cov.ss.common.m == 1:
        if not np.count_nonzero(_EPS * D.flat > above * R.flat):  # the usual case, in one look
            return worst
        owner, place = np.arange(m.size), np.zeros(1, dtype=np.int64)
    else:
        owner = np.repeat(np.arange(m.size), m)
        place = (np.arange(owner.size) - np.repeat(np.cumsum(m) - m, m)) * (m[owner] + 1)
    d, r = D.flat[D.offsets[owner] + place], R.flat[R.offsets[owner] + place]
    suspect = cov.observed & (r > 0) & (_EPS * d > above * r)
    for k in np.unique(owner[suspect]):
        exact = (r[owner == k] == 0).any() if m[k] > 1 else False
        error = 0.0 if exact else _error(cov, k, cov.observed[owner == k])
        if error > worst.error:
            worst = Loss(error, int(k))
    return worst


def _error(cov: Riccati, k: int, seen: BoolArray) -> float:
    before, after = cov.P[k].diagonal(), cov.P_plus[k].diagonal()
    parts = cov.ss.H[k][seen] ** 2 * before
    total = parts.sum(axis=1, keepdims=True)
    share = np.divide(parts, total, out=np.zeros_like(parts), where=total > 0).sum(axis=0)
    ratio = np.divide(before, after, out=np.zeros(len(before)), where=after > 0)
    reduced = (np.clip(1.0 - share, 0.0, 1.0) * ratio).max(initial=0.0)
    pivots = (cov.D[k].diagonal()[seen] / cov.D_factor[k].diagonal()[seen] ** 2).max(initial=0.0)
    return float(_EPS * max(reduced, pivots))


def is_of(frame: FrameType, package: str) -> bool:
    """Return True if code of a package, or of a module, runs in a frame.

    The module's name says so. A file's path does not: that of a user's script may begin with the path of the package.
    """
    return f"{frame.f_globals.get('__name__')}.".startswith(f"{package}.")


def level_of_caller(room: str) -> int | None:
    """Return the stack level of the first caller outside ``room``; None if that is the package itself.

    Frames of cached properties are passed over.
    """
    level, frame = 1, sys._getframe(1)
    while frame.f_back and (is_of(frame, room) or is_of(frame, "functools")):
        level, frame = level + 1, frame.f_back
    return None if is_of(frame, _PACKAGE) else level


def warn_of_lost_digits(cov: Riccati, level: int) -> None:
    """Warn at every call if fewer than five digits are left somewhere; the estimate is kept with the covariances.

    Whether a warning that comes again is shown again is for the filters of :mod:`warnings` to say. There is none if the
    package itself asks, ``level`` calls up: a fit tries models that nobody will see, and constraints of a robot are
    measurements that are sharp on purpose.
    """
    if is_of(sys._getframe(level), _PACKAGE):
        return
    loss = cov.__dict__.get("loss")
    if loss is None:
        loss = cov.__dict__["loss"] = lost_digits(cov)  # kept as the property keeps it, whose lock takes as long
    if loss.error > TOLERABLE:
        _warn(cov, level + 1)


def warn_of_the_worst(covs: Sequence[Riccati], level: int) -> None:
    """Warn once of what is filtered in several parts: of the part that loses most."""
    if is_of(sys._getframe(level), _PACKAGE) or not covs:
        return
    cov = max(covs, key=lambda cov: cov.loss.error)
    if cov.loss.error > TOLERABLE:
        _warn(cov, level + 1)


def _warn(cov: Riccati, level: int) -> None:
    """Warn of ``cov.loss``, ``level`` calls up; of square roots only a score warns, which loses digits all the same."""
    loss, label = cov.loss, cov.ss.tree.label(cov.loss.node)
    digits = min(round(math.log10(loss.error / _EPS)), 16)
    where = f"{label}, where a variance of {cov.P[loss.node].diagonal().max():.1g} meets measurements that leave little"
    error = f"a relative error of about {min(loss.error, 1.0):.0e}"
    cure = "give a smaller prior covariance, or none (a flat prior: StateSpace.chain without P0, or flat=)"
    if cov.by_roots:
        said = (
            f"score.phi and score.H lose about {digits} of their 16 digits at {where} of it, and have {error}; {cure}"
        )
    else:
        said = (
            f"the filter loses about {digits} of its 16 digits at {where} of it: covariances have {error}, and "
            f'estimates lose as much; {cure}, or take method="square_root"'
        )
    warnings.warn(said, LostDigitsWarning, stacklevel=level + 1)
