"""Gears, loops and contacts: embedding, cut joints, and constraints as information."""
