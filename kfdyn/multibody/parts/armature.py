"""The same robot with other rotors."""

from __future__ import annotations

from numpy.typing import ArrayLike

from kfdyn.errors import ShapeError
from kfdyn.multibody.calls.arguments import checked, expect_system
from kfdyn.multibody.kinds import expect_rigid
from kfdyn.multibody.system import System


def with_armature(system: System, armature: ArrayLike) -> System:
    """Return the same system with other rotors.

    Parameters
    ----------
    system : System
        The robot; its couplings and loops stay.
    armature : (nv of the open tree,)
        Inertia that each dof of ``system.open_tree`` has beside its bodies', such as a rotor's times its gear ratio
        squared; 0 is a direct drive.

    Returns
    -------
    System

    Examples
    --------
    >>> import kfdyn as kf
    >>> arm = kf.dynamics.with_armature(kf.models.double_pendulum(), [0.5, 0.0])
    >>> kf.mass_matrix(arm, [0.0, 0.0]) - kf.mass_matrix(kf.models.double_pendulum(), [0.0, 0.0])
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    expect_system(system)
    expect_rigid(system, "with_armature")
    tree = system.open_tree
    rotors = checked(tree, armature, (tree.nv,), "armature")
    if rotors.ndim != 1:
        raise ShapeError(f"armature is of one robot: it must have shape ({tree.nv},), got {rotors.shape}")
    return system.with_rotors(rotors)
