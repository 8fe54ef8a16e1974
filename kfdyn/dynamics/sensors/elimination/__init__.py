"""The solver of estimates from sensors: what enters where, its elimination, and the answers read off."""
