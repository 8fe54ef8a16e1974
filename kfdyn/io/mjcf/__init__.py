"""MJCF, as MuJoCo's own compiler reads it."""
