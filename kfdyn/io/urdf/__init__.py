"""URDF: read, and written."""
