"""The variational step, with and without loops."""
