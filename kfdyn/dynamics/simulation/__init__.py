"""Motion in time: steps, laws that drive them, and what a trajectory tells."""
