"""Six-dimensional algebra of rigid bodies: rotations, transformations, cross products, inertias.

Spatial vectors are [angular; linear]. Every function broadcasts over leading axes and is pure numpy.
Nothing in this room knows of trees or filters.
"""

from kfdyn.spatial.constraint import hinge_map_from_constraint
from kfdyn.spatial.cross import cross_force, cross_motion, skew
from kfdyn.spatial.inertia import (
    InertiaParameters,
    combine_inertia,
    inertia_parameters,
    kinetic_energy,
    momentum,
    rotate_inertia,
    shift_inertia,
    spatial_inertia,
)
from kfdyn.spatial.quaternion import (
    matrix_to_quaternion,
    normalize_quaternion,
    quaternion_exp,
    quaternion_log,
    quaternion_multiply,
    quaternion_rate,
    quaternion_to_matrix,
)
from kfdyn.spatial.rotation import (
    matrix_to_rotation_vector,
    rotation_from_axis_angle,
    rotation_from_rpy,
    rotation_vector_to_matrix,
    rpy_rate_map,
)
from kfdyn.spatial.transform import (
    inverse_transform,
    rigid_transform,
    transform_force,
    transform_inertia,
    transform_momentum,
    transform_velocity,
)
from kfdyn.spatial.validate import IndefiniteInertiaWarning, TriangleInequalityWarning, validate_inertia

__all__ = [
    "IndefiniteInertiaWarning",
    "InertiaParameters",
    "TriangleInequalityWarning",
    "combine_inertia",
    "cross_force",
    "cross_motion",
    "hinge_map_from_constraint",
    "inertia_parameters",
    "inverse_transform",
    "kinetic_energy",
    "matrix_to_quaternion",
    "matrix_to_rotation_vector",
    "momentum",
    "normalize_quaternion",
    "quaternion_exp",
    "quaternion_log",
    "quaternion_multiply",
    "quaternion_rate",
    "quaternion_to_matrix",
    "rigid_transform",
    "rotate_inertia",
    "rotation_from_axis_angle",
    "rotation_from_rpy",
    "rotation_vector_to_matrix",
    "rpy_rate_map",
    "shift_inertia",
    "skew",
    "spatial_inertia",
    "transform_force",
    "transform_inertia",
    "transform_momentum",
    "transform_velocity",
    "validate_inertia",
]
