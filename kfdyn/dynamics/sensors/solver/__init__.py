"""The solver: where readings enter, the order of elimination, the program of the sweeps, and the dense estimate."""
