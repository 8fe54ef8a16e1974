"""Refuse at the door what is no model, or no result of a filter, with what it would take to become one."""

from __future__ import annotations

from typing import Any

from kfdyn.errors import ModelError
from kfdyn.estimation.inference.filter_words import FilterWords
from kfdyn.estimation.model.state_space import StateSpace


def expect_model(ss: Any, name: str = "ss") -> None:
    """Refuse what is no StateSpace; ``name`` is the argument's."""
    if not isinstance(ss, StateSpace):
        cure = "a robot becomes one by kf.as_estimation(system, q)"
        if hasattr(ss, "root_cov"):
            cure = "a tree that branches outward has smooth(y), which returns means, covariances, likelihood and score"
        elif isinstance(getattr(ss, "ss", None), StateSpace):
            cure = "this is a result, whose model is its attribute ss"
        raise ModelError(f"{name} must be a kfdyn.StateSpace, got {_told(ss)}; {cure}")


def expect_filtered(filt: Any, function: str) -> None:
    """Refuse what no filter has returned, where ``function`` is asked to go on from it."""
    if not isinstance(filt, FilterWords):
        raise ModelError(
            f"{function} goes on from what a filter has found: filt must be the result of kf.kalman_filter(ss, T), "
            f"got {_told(filt)}"
        )


def _told(value: Any) -> str:
    """A value in a message: its type, and the start of what it looks like in one line."""
    return f"{type(value).__name__} {' '.join(repr(value).split()):.60}"
