"""Rounding tolerances, units, and preconditions of a cross-check."""
