"""Recursions in the coordinates that couplings leave."""
