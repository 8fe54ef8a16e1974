"""Compiled sweeps of the engine (numba). Imported when first needed, never by ``import kfdyn``."""

from kfdyn._kernels import compiler as compiler
