"""Doors to the fused sweeps of dynamics, see :mod:`kfdyn.multibody._kernels.doors`."""
