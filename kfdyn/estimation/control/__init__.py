"""Linear-quadratic optimal control on chains and scenario trees, by the filter and smoother."""
