"""Exact flat priors: states of which nothing is known, in the limit of an infinite variance."""
