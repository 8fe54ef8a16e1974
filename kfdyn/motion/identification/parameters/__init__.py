"""What may be identified, by names or by a function that builds the model."""
