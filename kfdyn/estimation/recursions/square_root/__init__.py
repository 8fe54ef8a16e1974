"""The gather and the scatter of roots of covariances."""
