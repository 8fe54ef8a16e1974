"""Parameters to identify, by names or by a function that builds the model."""
