"""Three-vectors as numba's tuples, for the recursions of dynamics that are not yet in the language of sweeps."""

from kfdyn._kernels import compiler as compiler
