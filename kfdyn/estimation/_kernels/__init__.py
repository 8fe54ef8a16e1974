"""Compiled sweeps of the engine (numba). Imported when first needed, never by ``import kfdyn``."""
