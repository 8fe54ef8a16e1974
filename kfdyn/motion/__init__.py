"""Time around space: a robot's motion as a state-space model whose every step contains the space filter."""

from kfdyn.lazy import on_first_use

_PLACES = {
    "identification.identify": ("identify",),
    "identification.results.residuals": ("ResidualTest",),
    "identification.results.result": ("Ellipsoid", "Identified", "LikelihoodRatio"),
    "log_check": ("LogReport", "Suspect", "check_log"),
    "model": ("MotionModel",),
    "planning.goal": ("Goal",),
    "planning.horizon": ("Mpc",),
    "planning.inverse_kinematics": ("Reached", "inverse_kinematics"),
    "planning.plan": ("plan_motion",),
    "planning.result": ("MotionPlan",),
    "regressor": ("inertial_parameters", "torque_regressor"),
    "result": ("MotionFiltered", "MotionSmoothed"),
    "step": ("StepDerivatives", "step_derivatives"),
}

__getattr__, __dir__, __all__ = on_first_use(__name__, _PLACES)
