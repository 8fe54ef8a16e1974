"""Calibrated tests of claimed covariances, and how small an error they find."""
