"""One rigid body, four ways to write M dβ/dt + b = f, and what each way conserves (SRB)."""

from kfdyn.spatial.single_body.equations import (
    BodyEquations,
    body_acceleration,
    body_equations,
    convert_acceleration,
    point_acceleration,
)
from kfdyn.spatial.single_body.formulation import FORMULATIONS, Formulation
from kfdyn.spatial.single_body.free_motion import FreeMotion, free_motion
from kfdyn.spatial.single_body.generalized import GeneralizedEquations, change_velocities, generalized_force
from kfdyn.spatial.single_body.gyroscopic import (
    angular_part,
    gyroscopic_about_body,
    gyroscopic_about_point,
    gyroscopic_in_frame,
    inertia_rate,
    linear_part,
)
from kfdyn.spatial.single_body.summary import Measured, SummaryRow, measure_formulations, summary_table

__all__ = [
    "FORMULATIONS",
    "BodyEquations",
    "Formulation",
    "FreeMotion",
    "GeneralizedEquations",
    "Measured",
    "SummaryRow",
    "angular_part",
    "body_acceleration",
    "body_equations",
    "change_velocities",
    "convert_acceleration",
    "free_motion",
    "generalized_force",
    "gyroscopic_about_body",
    "gyroscopic_about_point",
    "gyroscopic_in_frame",
    "inertia_rate",
    "linear_part",
    "measure_formulations",
    "point_acceleration",
    "summary_table",
]
