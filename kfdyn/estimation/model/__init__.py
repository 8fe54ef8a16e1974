"""The model: a forest, its blocks, and what they must be."""
