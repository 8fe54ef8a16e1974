"""Flexible systems: the same engine with nodes that are larger than six (SKO 85, THEORY section 17)."""
