"""The compiled sweeps, what they are told, and which states they answer."""
