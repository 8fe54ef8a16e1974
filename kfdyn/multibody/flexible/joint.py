"""A flexible joint in a system that bends: the spring is the one mode of the motor, a body without mass."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.multibody.flexible.body import FlexibleBody
from kfdyn.multibody.parts.body import Body
from kfdyn.multibody.parts.coupling import Coupling
from kfdyn.multibody.parts.hinge import Hinge
from kfdyn.multibody.parts.rotor import Rotor, rotor_body
from kfdyn.multibody.parts.series_elastic import FlexibleJoint


class Motor(FlexibleBody):
    """The joint between the gear and the link of a flexible joint: no mass, and a spring about the hinge's own screw.

    A mode turns what is attached by exp(Π_ω δ), for one axis without any approximation; so this is the node of one
    more state that THEORY section 17 asks for, and everything that serves modes serves it.
    """

    def __init__(self, link: Body, joint: FlexibleJoint) -> None:
        hinge = replace(link.hinge, flexible=None)
        turn, shift = np.split(hinge.screws[0], 2)
        put = partial(object.__setattr__, self)
        put("name", f"{link.name}/motor")
        put("mass", np.zeros(1))
        put("points", np.zeros((1, 3)))
        put("shapes", shift.reshape(1, 3, 1))
        put("turns", turn.reshape(1, 3, 1))
        put("bends", None)
        put("stiffness", np.array([[joint.stiffness]]))
        put("damping", np.array([[joint.damping]]))
        put("shape_at", None)
        put("rigid", link.motor_of(joint, hinge))

    @property
    def spring(self) -> str:
        """Name of the coordinate δ."""
        return f"{self.rigid.hinge_name}/spring"


def with_motors(
    bodies: Sequence[Body | FlexibleBody], couplings: Sequence[Coupling]
) -> tuple[tuple[Body | FlexibleBody, ...], tuple[Coupling, ...]]:
    """Bodies on hinges that give way, with motors before them and fixed to those; rotors that are bodies, geared."""
    out: list[Body | FlexibleBody] = []
    gears = list(couplings)
    for body in bodies:
        bends = isinstance(body, FlexibleBody)
        link = body.rigid if isinstance(body, FlexibleBody) else body
        joint = link.hinge.flexible if isinstance(link, Body) else None
        if joint is None:
            out.append(body)
            continue
        joint.expect(link)
        motor = Motor(link, joint)
        fixed = Body(
            link.name, link.inertia, Hinge.fixed(), motor.name, hinge_name=f"{link.hinge_name}/link"
        )  # limits are those of the motor
        out += [motor, _on(body, fixed) if bends else fixed]
        if joint.gyroscopic:
            rotor = Rotor(joint.rotor_inertia, joint.ratio)
            out.append(rotor_body(rotor_name(link.hinge_name), link, rotor))
            gears = geared(gears, link.hinge_name, rotor_name(link.hinge_name), joint.ratio)
    return tuple(out), tuple(gears)


def _on(body: Body | FlexibleBody, rigid: Body) -> Body | FlexibleBody:
    """The same flexible body on another hinge."""
    other = copy(body)
    object.__setattr__(other, "rigid", rigid)
    return other


def geared(couplings: Sequence[Coupling], hinge: str, other: str, ratio: float) -> list[Coupling]:
    """Couplings in which ``other`` turns ``ratio`` times as fast as a hinge, which may be in one of them."""
    out, found = [], False
    for c in couplings:
        if isinstance(c, Coupling) and hinge in c.hinges:
            if c.curves:
                raise ModelError(
                    f"hinge {hinge!r} gives way and drives a rotor that is a body, and its coupling follows functions; "
                    "let the rotor be an armature, or the hinge be stiff"
                )
            i, found = c.hinges.index(hinge), True
            X, offset = np.vstack([c.X, ratio * c.X[i]]), np.append(c.offset, ratio * c.offset[i])
            c = Coupling([*c.hinges, other], X, offset)
        out.append(c)
    return out if found else [*out, Coupling([hinge, other], [1.0, ratio])]


def regeared(
    couplings: Sequence[Coupling], more: Sequence[Coupling], bodies: Sequence[Body | FlexibleBody]
) -> tuple[Coupling, ...]:
    """Couplings and more of them: where these take in a motor that drives a rotor, its gear becomes part of them."""
    kept, new = list(couplings), list(more)
    for motor in bodies:
        if not isinstance(motor, Motor):
            continue
        hinge, rotor = motor.rigid.hinge_name, rotor_name(motor.rigid.hinge_name)
        gear = next((c for c in kept if c.hinges == (hinge, rotor)), None)
        if gear is not None and any(isinstance(c, Coupling) and hinge in c.hinges for c in new):
            kept.remove(gear)
            new = geared(new, hinge, rotor, float(gear.X[1, 0]))
    return (*kept, *new)


def rotor_name(hinge: str) -> str:
    """Name of the body and of the hinge of a rotor that is carried."""
    return f"{hinge}/rotor"
