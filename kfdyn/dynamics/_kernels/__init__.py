"""Compiled sweeps of rigid-body dynamics."""
