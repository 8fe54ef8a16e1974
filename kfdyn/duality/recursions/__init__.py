"""Compiled loops of the cross-check, in the language of sweeps."""
