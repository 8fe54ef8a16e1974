"""Calibrated tests of claimed covariances, and the smallest errors they detect."""
