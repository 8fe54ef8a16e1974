"""How a quantity is solved: states, kernels and explanations, kinds of systems."""
