"""Models on trees whose children inherit from their parent: phylogenies, hierarchies, scales."""
