"""Coordinates: where hinges are in q and v, how couplings lead to all of them, and how q moves."""
