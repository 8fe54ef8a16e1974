"""Compiled sweeps of rigid-body dynamics."""

from kfdyn._kernels import compiler as compiler
