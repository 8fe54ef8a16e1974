"""Time around space: a robot's motion as a state-space model whose every step contains the space filter."""

from kfdyn.lazy import on_first_use

_PLACES = {
    "identification.identify": ("identify",),
    "identification.residuals": ("ResidualTest",),
    "identification.result": ("Ellipsoid", "Identified", "LikelihoodRatio"),
    "model": ("MotionModel",),
    "plan": ("Goal", "MotionPlan", "Mpc", "Reached", "inverse_kinematics", "plan_motion"),
    "regressor": ("inertial_parameters", "torque_regressor"),
    "result": ("MotionFiltered", "MotionSmoothed"),
    "step": ("StepDerivatives", "step_derivatives"),
}

__getattr__, __dir__, __all__ = on_first_use(__name__, _PLACES)
