"""Mechanics solved as estimation: forward dynamics is the smoother, the mass matrix the covariance of T.

A name is imported when it is first used: who wants forward dynamics need not wait for sensors and loops.
"""

# Functions that are named as their modules are must be here before anybody imports these.
from kfdyn.dynamics.mass_matrix import mass_matrix as mass_matrix
from kfdyn.dynamics.mass_matrix_inverse import mass_matrix_inverse as mass_matrix_inverse
from kfdyn.lazy import on_first_use, public_in

# Beside those of the package, which say where they are.
_OWN = {
    "assembly": (
        "Forest",
        "as_forest",
    ),
    "derivatives": (
        "ForwardDerivatives",
        "InverseDerivatives",
    ),
    "sensors": (
        "Observability",
        "Placement",
    ),
    "simulation.motion_arguments": ("with_armature",),
    "theory.causes": (
        "AccelerationCauses",
        "Responses",
        "causes_of_outputs",
    ),
    "theory.decomposition": ("ForceDecompositions",),
    "theory.hinge_partition": ("Partition",),
    "theory.partition": (
        "behind_modes",
        "succession",
    ),
}
__getattr__, __dir__, _names = on_first_use(__name__, public_in(__name__), _OWN, rooms=("sensors",))

__all__ = ["sensors", *_names]
