"""Jain, "Single Rigid Body Dynamics" (SRB): one body, four ways to write M dβ/dt + b = f, and constraints for a hinge.

Spatial vectors are [angular; linear]. ``formulations`` has the equations, ``tumbling`` lets a body fly in each of them
and measures what it conserves, ``constraints`` has what his slides set beside a hinge.
"""

from kfdyn.textbook.srb.constraints import (
    constraint_rows,
    hinge_as_constraints,
    natural_coordinates,
    particle_rates,
    pin_in_natural_coordinates,
)
from kfdyn.textbook.srb.formulations import (
    FORMULATIONS,
    BodyEquations,
    Formulation,
    body_acceleration,
    body_equations,
    change_velocities,
    convert_acceleration,
    generalized_force,
    gyroscopic_about_body,
    gyroscopic_about_point,
    gyroscopic_in_frame,
    inertia_rate,
    point_acceleration,
    summary_table,
)
from kfdyn.textbook.srb.tumbling import FreeMotion, Measured, free_motion, measure_formulations

__all__ = [
    "FORMULATIONS",
    "BodyEquations",
    "Formulation",
    "FreeMotion",
    "Measured",
    "body_acceleration",
    "body_equations",
    "change_velocities",
    "constraint_rows",
    "convert_acceleration",
    "free_motion",
    "generalized_force",
    "gyroscopic_about_body",
    "gyroscopic_about_point",
    "gyroscopic_in_frame",
    "hinge_as_constraints",
    "inertia_rate",
    "measure_formulations",
    "natural_coordinates",
    "particle_rates",
    "pin_in_natural_coordinates",
    "point_acceleration",
    "summary_table",
]
