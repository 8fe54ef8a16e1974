"""The operators of a model (φ, ψ, H, …), their covariances and Lyapunov equations."""
