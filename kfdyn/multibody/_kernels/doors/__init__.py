"""Doors to the fused sweeps: what stands between Python's arrays and the kernels, compiled; one file for each.

A model reaches compiled code as one number, the address of a table (see :mod:`kfdyn.multibody.doors`). The doors
look at what Python could only look at slowly: that numbers are finite and quaternions of unit length. Where they are
not, or where a hinge has no inertia, they answer False, and nothing is said about the result; the caller's long way
then finds the words.

The file of a door has its name, a function of that name and its ``SIGNATURE``: the model's address; arrays; how many
rows there are, how many are done at a time, the address of a counter by which threads share them; the result.
"""
