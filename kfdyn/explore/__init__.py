"""A robot in the browser, to be dragged: its articulated inertias, its mass matrix, its motion. Needs ``viser``."""

from kfdyn.explore.app import Explorer, record, serve
from kfdyn.explore.moment import Mode, Moment, Numbers, pulled, solve

__all__ = ["Explorer", "Mode", "Moment", "Numbers", "pulled", "record", "serve", "solve"]
