"""Entries made of other entries: the same recursions for other kinds of robots."""
