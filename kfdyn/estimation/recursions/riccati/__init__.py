"""The gather of covariances, for nodes of every kind."""
