"""Jain, "Single Rigid Body Dynamics" (SRB): one body, four ways to write M dβ/dt + b = f, and constraints for a hinge.

Spatial vectors are [angular; linear]. ``formulations`` has the equations, ``tumbling`` lets a body fly in each of them
and measures what it conserves, ``constraints`` has what his slides set beside a hinge.

Parameters
----------
formulation : {"cm", "point", "body", "inertial"}
    A key of ``FORMULATIONS``.
M6 : (6, 6)
    Spatial inertia about the frame's origin, in body axes.
rotation, position, V : (3, 3), (3,), (6,)
    Pose of the body frame, and its spatial velocity in inertial axes; at the first time of a motion.
time : (n,)
    Increasing.
"""

from kfdyn.lazy import on_first_use

_PLACES = {
    "constraints": (
        "constraint_rows", "hinge_as_constraints", "natural_coordinates", "particle_rates",
        "pin_in_natural_coordinates",
    ),
    "formulations": (
        "BodyEquations", "FORMULATIONS", "Formulation", "body_acceleration", "body_equations", "change_velocities",
        "convert_acceleration", "generalized_force", "gyroscopic_about_body", "gyroscopic_about_point",
        "gyroscopic_in_frame", "inertia_rate", "point_acceleration", "summary_table",
    ),
    "tumbling": ("FreeMotion", "Measured", "free_motion", "measure_formulations"),
}  # fmt: skip

__getattr__, __dir__, __all__ = on_first_use(__name__, _PLACES)
