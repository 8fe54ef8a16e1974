"""Recursions of dynamics in the language of :mod:`kfdyn.sweeps`. Imported on first use.

World orientation, reference at the hinge point, so that φ is a pure shift; inertial derivatives, which need no
linear velocities (SRB); a hinge of any size as a succession of scalar measurements (PART), so that only scalars
are divided by. Inverse dynamics, which moves vectors only, runs in body frames.

What makes them fast, in the order of what it brought: nothing is called within a sweep; bodies on a revolute hinge
have frames whose z is the axis (``robot``); sums are chains of fused multiply-adds; rows become lanes in registers; a
body's sum is passed to its parent in place.
"""
