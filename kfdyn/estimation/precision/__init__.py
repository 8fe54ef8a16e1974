"""Estimate the digits a filter has left; refuse or warn where too few are."""
