"""Dynamics from sensors in compiled lanes: what a program is, messages and their elimination, means, deviations."""
