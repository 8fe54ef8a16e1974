"""Compiled loops of the cross-check."""
