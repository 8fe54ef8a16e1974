"""Closed loops and contacts: what they are, what their rows say, and whether they are closed."""
