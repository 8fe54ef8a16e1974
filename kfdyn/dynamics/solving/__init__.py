"""Solving a quantity: states, kernels and explanations, kinds of systems."""
