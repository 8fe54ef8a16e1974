"""Compiled loops of the cross-check."""

from kfdyn._kernels import compiler as compiler
