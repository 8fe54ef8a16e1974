"""Traits on a phylogeny: Newick trees, and models of how traits change along a branch."""
