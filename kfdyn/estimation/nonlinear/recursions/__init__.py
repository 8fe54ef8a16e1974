"""Compiled parts of filters and smoothers of nonlinear models, for matrices so small that calls would cost most."""
