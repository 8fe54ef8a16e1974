"""Trees that branch outward, where children inherit from their parent: phylogenies, hierarchies, multi-scale models."""
