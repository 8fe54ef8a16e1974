"""What was identified: numbers with their errors, comparisons, and tests of what is left."""
