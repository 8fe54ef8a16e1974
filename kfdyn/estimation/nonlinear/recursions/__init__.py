"""What filters and smoothers of nonlinear models compute, compiled: matrices so small that calls would cost most."""
