"""The gather and the scatter of factors of covariances."""
