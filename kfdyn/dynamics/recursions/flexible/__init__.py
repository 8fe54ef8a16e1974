"""Recursions over bodies that bend."""
