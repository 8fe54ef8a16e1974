"""The fused outward sweep, written for one number and run on machine vectors of configurations."""
