"""Recursions of multibody kinematics in the language of :mod:`kfdyn.sweeps`. Imported on first use.

World orientation, reference at each body's origin, unless a module says otherwise.
"""
