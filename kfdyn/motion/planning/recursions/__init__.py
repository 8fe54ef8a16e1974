"""Compiled recursions of plans."""
