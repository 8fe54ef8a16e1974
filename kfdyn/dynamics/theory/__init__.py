"""The theory read off a solution: decompositions of forces, causes of accelerations, partitions, boundary values."""
