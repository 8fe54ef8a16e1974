"""Fused sweeps of rigid-body dynamics, written for one number and run on machine vectors of configurations.

World orientation, reference at the hinge point, so that φ is a pure shift; inertial derivatives, which need no
linear velocities (SRB); a hinge of any size as a succession of scalar measurements (PART), so that only scalars
are divided by.
"""
