"""Many models of one tree and sizes, a lane for each."""
