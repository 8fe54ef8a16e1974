"""Results of an identification: numbers with their errors, comparisons, and tests of what is left."""
