"""Compiled recursions of control."""
