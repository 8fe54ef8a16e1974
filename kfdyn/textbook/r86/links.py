"""R86 sections 2 and 3: the arm, its links counted from the tip to the base; spatial inertia and transition matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kfdyn.errors import ModelError, ShapeError
from kfdyn.textbook.algebra import Array, block, tilde


class Link(NamedTuple):
    """Link k of section 2, all vectors in its own frame.

    Attributes
    ----------
    m : float
        Mass.
    I : (3, 3)
        Inertia about joint k.
    p : (3,)
        From joint k to the mass centre.
    L : (3,)
        From joint k to joint k − 1, which is the next one outward; joint 0 is any point of link 1.
    h : (3,)
        Unit vector along the axis of joint k.
    A : (3, 3)
        The link's frame in the frame of link k + 1 (of the base, for the last) when the joint angle is zero.

    Examples
    --------
    A rod of 1 m and 2 kg that turns about its end:

    >>> import numpy as np
    >>> rod = Link(2.0, np.diag([0.0, 2 / 3, 2 / 3]), [0.5, 0, 0], [1.0, 0, 0], [0, 0, 1.0], np.eye(3))
    >>> spatial_inertia_3_1(rod)[2, 4]
    np.float64(1.0)
    """

    m: Any
    I: Any
    p: Any
    L: Any
    h: Any
    A: Any


@dataclass(frozen=True)
class Arm:
    """N links joined by N rotational joints to a branch-free chain on an immobile base (section 2).

    Attributes
    ----------
    links : tuple of Link
        From the tip to the base: ``links[0]`` is link 1, the tip; ``arm.link(k)`` counts as the paper does.
    gravity : (3,)
        Acceleration of gravity in the base's frame. In R86 gravity is an external force at the mass centres.

    Examples
    --------
    >>> import kfdyn as kf
    >>> arm = kf.textbook.r86.arm_of(kf.models.uniform_chain(3))
    >>> arm.N, float(arm.link(3).m)
    (3, 1.0)
    """

    links: tuple[Link, ...]
    gravity: Any = (0.0, 0.0, -9.81)

    @property
    def N(self) -> int:
        """Number of links."""
        return len(self.links)

    def link(self, k: int) -> Link:
        """Link k, k = 1 (tip) to N (base)."""
        if not 1 <= k <= self.N:
            raise ShapeError(f"there is no link {k}; the links are numbered 1 (tip) to {self.N} (base)")
        return self.links[k - 1]


def spatial_inertia_3_1(link: Link) -> Array:
    """M = [[I, m p~], [−m p~, m U]], (6, 6). R86 (3.1)."""
    mp = tilde(np.asarray(link.p) * link.m)
    return block([[np.asarray(link.I), mp], [-mp, np.eye(3, dtype=mp.dtype) * link.m]])


def kinetic_energy_3_2(link: Link, V: Array) -> Any:
    """½ V*M V from the spatial velocity at the joint. R86 (3.2)."""
    return V @ spatial_inertia_3_1(link) @ V / 2


def kinetic_energy_3_3(link: Link, V: Array) -> Any:
    """½ ω*Ĩω + ½ m|v|² from the velocity of the mass centre, R86 (3.3), (3.4); Ĩ = I − m(p·p U − p p*)."""
    p, omega = np.asarray(link.p), V[:3]
    at_centre = np.asarray(link.I) + link.m * tilde(p) @ tilde(p)
    v = V[3:] - tilde(p) @ omega
    return (omega @ at_centre @ omega + link.m * (v @ v)) / 2


def transition_3_5(L: Array) -> Array:
    """φ_{k,m} = [[U, L~], [0, U]] with L from joint k to joint m, (6, 6). R86 (3.5); its text has the reverse."""
    L = np.asarray(L)
    one = np.eye(3, dtype=tilde(L).dtype)
    return block([[one, tilde(L)], [0 * one, one]])


def rotation(h: Array, cosine: Any, sine: Any) -> Array:
    """The rotation (3, 3) about the unit vector h by an angle of which cosine and sine are given."""
    h = np.asarray(h)
    return np.eye(3, dtype=tilde(h).dtype) * cosine + tilde(h) * sine + np.outer(h, h) * (1 - cosine)


def change_of_frame(link: Link, cosine: Any, sine: Any) -> Array:
    """C_k (6, 6): what has components x in link k's frame has C x in link k + 1's; "not shown explicitly" in R86 8."""
    C = np.asarray(link.A) @ rotation(link.h, cosine, sine)
    return block([[C, 0 * C], [0 * C, C]])


def arm_of(system: Any) -> Arm:
    """The arm of R86 that a serial robot with revolute hinges is.

    Parameters
    ----------
    system : System
        Bodies on revolute hinges, one outboard of the other, without rotors (the report has none).

    Returns
    -------
    Arm
        The same arm with its links counted from the tip: link k is the system's body N − k if they are in order.

    Notes
    -----
    Source: R86 section 2.

    Examples
    --------
    >>> import kfdyn as kf
    >>> kf.textbook.r86.arm_of(kf.models.double_pendulum()).N
    2
    """
    parent = [int(p) for p in system.parent]
    tips = [k for k in range(len(parent)) if k not in parent]
    if len(tips) != 1 or parent.count(-1) != 1:
        raise ModelError(f"system {system.name!r} branches; R86 treats a chain: use kfdyn.textbook.sko for trees")
    order = [tips[0]]
    while parent[order[-1]] >= 0:
        order.append(parent[order[-1]])
    links, outer = [], np.zeros(3)
    for k in order:
        body = system.bodies[k]
        if body.hinge.kind != "revolute":
            raise ModelError(f"hinge {body.hinge_name!r} is {body.hinge.kind}; the joints of R86 are rotational")
        if np.any(body.armature):
            raise ModelError(f"hinge {body.hinge_name!r} has a rotor, which R86 has not; set its armature to 0")
        m = body.inertia[5, 5]
        mp = np.array([body.inertia[2, 4], body.inertia[0, 5], body.inertia[1, 3]])
        p = mp / m if m else np.zeros(3)
        links.append(Link(m, body.inertia[:3, :3], p, outer, body.hinge.screws[0, :3], body.rotation))
        outer = body.position
    return Arm(tuple(links), system.gravity)
