"""FlexibleJoint: what a hinge is told that its motor drives the link through a spring."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kfdyn.errors import ModelError

if TYPE_CHECKING:
    from kfdyn.multibody.parts.body import Body

#: What of a hinge stays with the motor, where a spring is between motor and link.
OF_MOTORS = ("lower", "upper", "speed", "effort", "friction")


@dataclass(frozen=True)
class FlexibleJoint:
    """A series-elastic actuator, the option ``flexible`` of a hinge of one dof: rotor, gear, spring and damper, link.

    The motor turns by θ behind the gear, the spring gives way by δ, and the link turns by θ + δ (or slides)::

        R θ̈ + …(link at θ + δ) = τ,        …(link at θ + δ) = −k δ − d δ̇,        R = ratio² J

    so that a :class:`FlexibleSystem` has two coordinates for such a hinge: θ bears the hinge's name, and behind it is
    δ, ``hinge/spring``. ``tau`` of the first is the motor's torque behind the gear. The spring's force is the system's
    own, as that of modes is: part of forward dynamics, energies, implicit steps and vibrations.

    Parameters
    ----------
    stiffness : float
        k of the spring, on the link's side [N m/rad, or N/m].
    rotor_inertia : float
        J of the rotor, on the motor's side of the gear [kg m², or kg].
    damping : float
        d of the damper beside the spring. The hinge's own ``damping`` is that of the motor's bearings.
    ratio : float
        Turns of the rotor for one behind the gear.
    gyroscopic : bool
        Whether the rotor is a body of its own, a disc on the inboard body that is geared to the hinge: then it resists
        being carried about, and what speeds it up acts back on the inboard body (as with :class:`Rotor`). Without, it
        counts by ratio² J alone (Spong's model), right where the ratio is large.

    Examples
    --------
    Two inertias and a spring, ω² = k (1/R + 1/J):

    >>> import numpy as np, kfdyn as kf
    >>> drive = kf.FlexibleJoint(stiffness=500.0, rotor_inertia=1e-4, ratio=100.0)
    >>> link = kf.Body("link", 0.25 * np.eye(6), kf.Hinge.revolute([0, 0, 1], flexible=drive), hinge_name="knee")
    >>> leg = kf.FlexibleSystem([link])
    >>> leg.dof_names, kf.modes(leg).frequencies.round(6) + 0.0
    (('knee', 'knee/spring'), array([ 0., 50.]))
    """

    stiffness: float
    rotor_inertia: float
    damping: float = 0.0
    ratio: float = 1.0
    gyroscopic: bool = False

    def __post_init__(self) -> None:
        for key in ("stiffness", "rotor_inertia", "damping", "ratio"):
            value = getattr(self, key)
            number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
            if not number or not math.isfinite(value):
                raise ModelError(f"flexible joint: {key} must be a finite number, got {value!r:.60}")
            object.__setattr__(self, key, float(value))
        if self.stiffness <= 0:
            raise ModelError(
                f"flexible joint: stiffness must be positive, got {self.stiffness}; without a spring nothing leads the "
                "link back: it would be a hinge of its own"
            )
        if self.damping < 0:
            raise ModelError(
                f"flexible joint: damping must not be negative, got {self.damping}; it would feed the motion"
            )
        if self.ratio == 0:
            raise ModelError("flexible joint: ratio must not be 0, or the motor turns nothing")
        if self.rotor_inertia <= 0:
            raise ModelError(
                f"flexible joint: rotor_inertia must be positive, got {self.rotor_inertia}; a motor without inertia at "
                "the end of a spring is where the spring has it: leave the joint out and give the hinge a stiffness"
            )
        if not 0 < self.reflected < math.inf:
            raise ModelError(
                f"flexible joint: ratio² rotor_inertia is {self.reflected}, which is no inertia that doubles can hold; "
                f"got ratio {self.ratio}, rotor_inertia {self.rotor_inertia}"
            )

    @property
    def reflected(self) -> float:
        """R = ratio² J, the rotor as the hinge feels it behind the gear."""
        return self.ratio * self.ratio * self.rotor_inertia

    def split(self, link: Body) -> tuple[Body, Body]:
        """The joint as two hinges of a rigid :class:`System`: those who take a motor and a link for it take all of it.

        Parameters
        ----------
        link : Body
            The link with its hinge of one dof, with or without this option.

        Returns
        -------
        motor, link : Body
            The dof of ``motor``, a body without mass, is θ, that of ``link`` is δ with the spring as the hinge's
            ``stiffness`` and ``damping``: data of the system, which :func:`kfdyn.simulate` takes into account where
            it is told to (``stiffness=True``), and :func:`kfdyn.modes` always.

        Examples
        --------
        >>> import kfdyn as kf
        >>> arm = kf.models.uniform_chain(1, length=0.5).bodies[0]
        >>> pair = kf.System(kf.FlexibleJoint(500.0, rotor_inertia=1e-4, ratio=100.0).split(arm))
        >>> pair.hinge_names, kf.mass_matrix(pair, [0.0, 0.0]).round(4).tolist()
        (('joint_0', 'joint_0/spring'), [[1.0833, 0.0833], [0.0833, 0.0833]])
        """
        split = getattr(link, "split_by", None)
        if split is None:
            raise ModelError(
                f"a joint of a rigid system carries a rigid Body, and {getattr(link, 'name', link)!r} is a "
                f"{type(link).__name__}; give the joint to its hinge, in a FlexibleSystem"
            )
        self.expect(link)
        if self.gyroscopic:
            raise ModelError(
                f"hinge {link.hinge_name!r}: the gyroscopic rotor of a joint that is split is one of kf.with_rotors; "
                "split the joint without it"
            )
        pair: tuple[Body, Body] = split(self)
        return pair

    def expect(self, link: Body) -> None:
        """Refuse a link whose hinge cannot give way so."""
        name = link.hinge_name
        if link.hinge.nv != 1:
            raise ModelError(f"hinge {name!r} has {link.hinge.nv} dofs; a flexible joint has one")
        if np.any(link.armature):
            raise ModelError(
                f"hinge {name!r} has armature {link.armature}; give it as the joint's rotor_inertia instead"
            )
        if np.any(link.stiffness):
            raise ModelError(
                f"hinge {name!r} has stiffness {link.stiffness} of its own beside the spring of its flexible joint; "
                "give the joint's spring as FlexibleJoint(stiffness=...), another as a torque"
            )
        if self.gyroscopic and link.hinge.kind != "revolute":
            raise ModelError(f"hinge {name!r}: gyroscopic rotors are for revolute hinges, and it is {link.hinge.kind}")
