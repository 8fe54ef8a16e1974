"""Filters for chains whose matrices are the same at every step."""
