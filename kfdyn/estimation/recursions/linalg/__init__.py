"""Linear algebra of small blocks, as the recursions need it."""
