"""Many models of one tree and sizes: the model, its filter, smoother and score."""
