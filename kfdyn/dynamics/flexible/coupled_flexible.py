"""Systems with couplings whose bodies bend: what they do beside what those of rigid bodies do."""

from kfdyn.dynamics.loops.coupled import *  # noqa: F403
from kfdyn.dynamics.loops.coupled import __all__ as of_rigid
from kfdyn.dynamics.solving.blocks import expect_invertible
from kfdyn.dynamics.vibration import gravity_slope_by_differences as gravity_slope

__all__ = [*of_rigid, "expect_invertible", "gravity_slope"]
