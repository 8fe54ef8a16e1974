"""What compiled sweeps of every room are built of: numbers that are machine vectors, sizes known when compiled."""
