"""Configurations: q moved by dv, the dv between two q, and q drawn at random."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.multibody.calls.arguments import expect_system
from kfdyn.multibody.calls.kernel import Kernel, known
from kfdyn.multibody.calls.packed_model import model_of
from kfdyn.multibody.calls.states import States
from kfdyn.multibody.parts.hinge import Coordinates

if TYPE_CHECKING:
    from kfdyn.multibody.flexible.system import FlexibleSystem
    from kfdyn.multibody.system import System


# Far above the rounding of exp and log, far below any motion a hinge map was meant to forbid.
REACH_TOLERANCE = 1e-9
_TOLERANCE = np.array([REACH_TOLERANCE])


def integrate(system: System, q: ArrayLike, dv: ArrayLike) -> Array:
    """Move q along a constant velocity: q ⊕ dv, where dv = v·dt.

    A system with loops moves in its coordinates and so leaves the loops by O(dv²); :func:`kfdyn.assemble` leads back.

    Angles and slides add; a ball turns by exp(dv), a free or custom hinge moves by exp(H* dv) in its own
    frame (SRB "quasi": v is not the derivative of q there). Quaternions come out normalised.

    Parameters
    ----------
    system : System
        The robot.
    q : (..., nq)
    dv : (..., nv)

    Returns
    -------
    (..., nq) array

    Examples
    --------
    >>> from kfdyn.multibody.models import pendulum
    >>> integrate(pendulum(), [0.5], [0.25])
    array([0.75])
    """
    answer: Array = INTEGRATE.solve(system, q, dv)
    return answer


def difference(system: System, q: ArrayLike, q2: ArrayLike) -> Array:
    """Return dv with integrate(q, dv) = q2, rotations by the shorter way: q2 ⊖ q.

    Parameters
    ----------
    system : System
        The robot.
    q, q2 : (..., nq)

    Returns
    -------
    (..., nv) array

    Raises
    ------
    ModelError
        If a custom hinge cannot go from one pose to the other along a constant H* β.

    Examples
    --------
    The way between two orientations of a ball is a rotation vector, not a difference of quaternions:

    >>> import kfdyn as kf
    >>> ball = kf.System([kf.Body("ball", np.eye(6), kf.Hinge.ball())])
    >>> turned = integrate(ball, ball.neutral(), [0.1, 0.2, 0.3])
    >>> difference(ball, ball.neutral(), turned).round(6)
    array([0.1, 0.2, 0.3])
    """
    expect_system(system)
    if system.kind not in DIFFERENCE.variants:
        return system.apart(q, q2)
    answer: Array = DIFFERENCE.solve(system, model_of(system).left_inverse, _TOLERANCE, q, q2)
    return answer


def random_configuration(system: System, rng: np.random.Generator | int | None = None) -> Array:
    """Draw one q, shape (nq,); see :meth:`kfdyn.multibody.System.random_configuration`.

    Parameters
    ----------
    system : System
        The robot.
    rng : numpy Generator, int or None
        Source of randomness, or its seed.

    Returns
    -------
    (nq,) array
        Within the limits of the hinges where they have some; quaternions uniform.

    Examples
    --------
    >>> from kfdyn.multibody.models import humanoid
    >>> q = random_configuration(humanoid(), 0)
    >>> q.shape, round(float(np.linalg.norm(q[3:7])), 12)
    ((48,), 1.0)
    """
    expect_system(system)
    return system.random_configuration(rng)


def _unreachable(states: States) -> NoReturn:
    """Name the first hinge that does not lead from its part of q to that of q2."""
    system, start, end = states.system, states["q"], states["q2"]
    layout, dv, left_inverse = system.layout, np.empty((len(start), system.nv)), model_of(system).left_inverse
    for k in np.flatnonzero(layout.coordinates != Coordinates.SCREWS):
        own, there = slice(layout.q_start[k], layout.q_start[k + 1]), start.copy()
        there[:, own] = end[:, own]
        if not known(DIFFERENCE(system, len(start), left_inverse, _TOLERANCE, start, there, dv)):
            raise ModelError(
                f"hinge {system.hinge_names[k]!r}: the two poses differ by a motion that its hinge map does not allow "
                "at constant velocity; go there by several integrate() steps"
            )
    raise AssertionError("every hinge leads there")


_ROOM = "kfdyn.multibody.recursions.displacement"

INTEGRATE = Kernel(
    _ROOM, "INTEGRATE", meaning="the configuration that integrate() leads to",
    otherwise=lambda system, q, dv: system.moved(q, dv),
)  # fmt: skip
DIFFERENCE = Kernel(_ROOM, "DIFFERENCE", explain=_unreachable)


def drawn_of_tree(system: System, rng: np.random.Generator) -> Array:
    """One q of a tree, shape (nq,); see :meth:`System.random_configuration`."""
    layout, q = system.layout, system.neutral()
    turns = layout.screws[:, :3].any(axis=1)
    draw = np.where(turns, rng.uniform(-np.pi, np.pi, system.nv), rng.normal(size=system.nv))
    bounded = np.isfinite(system.lower) & np.isfinite(system.upper)
    low, high = np.where(bounded, system.lower, 0.0), np.where(bounded, system.upper, 0.0)
    draw = np.where(bounded, rng.uniform(low, high), draw)
    of_screws = layout.coordinates == Coordinates.SCREWS
    v_owner = np.repeat(of_screws, np.diff(layout.v_start))
    q[np.repeat(of_screws, np.diff(layout.q_start))] = draw[v_owner]
    step = np.zeros(system.nv)
    for k in np.flatnonzero(~of_screws):
        at, end = layout.q_start[k : k + 2]
        if system.bodies[k].hinge.kind == "custom":
            own = slice(*layout.v_start[k : k + 2])
            step[own] = rng.uniform(-1, 1, own.stop - own.start)
        else:
            quaternion = rng.normal(size=4)
            q[end - 4 : end] = quaternion / np.linalg.norm(quaternion)
            q[at : end - 4] = rng.normal(size=end - 4 - at)
    return integrate(system, q, step) if step.any() else q


def drawn_of_couplings(system: System | FlexibleSystem, rng: np.random.Generator, drawn: Array) -> Array:
    """One q of a system with couplings, shape (nq,), with plain coordinates as ``drawn`` without them.

    See :meth:`System.random_configuration`.
    """
    e, tree = system._expansion, system.open_tree
    own = [tree.hinge_index(name) for coupling in e.couplings for name in coupling.named]
    named = np.array(own, dtype=np.int64)
    turns = tree.layout.screws[tree.layout.v_start[named], :3].any(axis=1)
    draw = np.where(turns, rng.uniform(-np.pi, np.pi, len(named)), rng.normal(size=len(named)))
    low, high = system.lower[e.own_v], system.upper[e.own_v]
    bounded = np.isfinite(low) & np.isfinite(high)
    draw = np.where(bounded, rng.uniform(np.where(bounded, low, 0.0), np.where(bounded, high, 0.0)), draw)
    return e.contracted(drawn, draw)
