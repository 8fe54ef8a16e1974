"""Flexible bodies: floating frames with modes clamped at the inboard hinge (SKO 85, THEORY section 17)."""

from kfdyn.multibody.flexible.beam import beam
from kfdyn.multibody.flexible.body import FlexibleBody
from kfdyn.multibody.flexible.finite_elements import from_finite_elements
from kfdyn.multibody.flexible.system import FlexibleSystem

__all__ = ["FlexibleBody", "FlexibleSystem", "beam", "from_finite_elements"]
