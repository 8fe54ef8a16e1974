"""Filter, smoother, score and draws of a model."""
