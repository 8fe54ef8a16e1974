"""Recursions over the rows of loops."""
