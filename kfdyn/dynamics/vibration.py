"""Small vibrations about a configuration: natural frequencies and mode shapes of a whole robot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.dynamics.bias import bias_forces
from kfdyn.dynamics.derivatives import inverse_dynamics_derivatives
from kfdyn.dynamics.mass_matrix import mass_matrix
from kfdyn.dynamics.solving.forest import moved_by
from kfdyn.dynamics.solving.kinds import own_way
from kfdyn.errors import ShapeError, SingularError
from kfdyn.multibody import FlexibleSystem, System, difference, integrate
from kfdyn.multibody.calls.arguments import expect_one, expect_system
from kfdyn.multibody.parts.body import as_floats


class Modes(NamedTuple):
    """Vibrations 𝓜ẍ + Kx = 0 of x = q ⊖ q₀.

    ``frequencies`` (nv,) are angular, ascending [rad/s]; a negative one is the rate at which the configuration is left,
    as an inverted pendulum's. ``shapes`` (nv, nv) has one vibration a column, with shapes* 𝓜 shapes = 1. Then
    ``mass_matrix`` and ``stiffness`` (nv, nv); ``residual`` (nv,) is the force that holds q₀ in place: where it is not
    0 this is no equilibrium.

    Examples
    --------
    >>> import kfdyn as kf
    >>> hanging = kf.modes(kf.models.pendulum(length=2.0), [0.0])
    >>> bool(abs(hanging.frequencies[0] - (9.81 / 2.0) ** 0.5) < 1e-9)
    True
    """

    frequencies: Array
    shapes: Array
    mass_matrix: Array
    stiffness: Array
    residual: Array


def modes(
    system: System | FlexibleSystem,
    q: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
    rest: ArrayLike | None = None,
) -> Modes:
    """Linearise a robot about a configuration at rest; springs of hinges and elasticity of bodies count.

    Parameters
    ----------
    system : System or FlexibleSystem
        The robot, with or without couplings. ``system.stiffness`` are its hinges' springs; those of flexible joints and
        bodies are part of its own forces.
    q : (nq,), optional
        The configuration; neutral if not given.
    gravity : (3,), optional
        ``system.gravity`` if not given.
    rest : (nq,), optional
        Where springs of hinges are slack; neutral if not given.

    Returns
    -------
    Modes
        Frequencies, shapes, matrices and the force that is left over.

    Notes
    -----
    K is the symmetric part of ∂(c + spring)/∂q in tangent coordinates: the derivatives of inverse dynamics, exact, for
    rigid robots; where bodies bend, or springs turn, differences of order four, right to some 1e-10 of the largest
    entry. Source: SKO 85; THEORY sections 16 and 17.

    Examples
    --------
    A beam on a hinge that a spring holds, and the same beam clamped:

    >>> import kfdyn as kf
    >>> rod = kf.beam("rod", 1.0, 1.0, bending=(0.0, 10.0), modes=2)
    >>> clamped = kf.modes(kf.FlexibleSystem([rod]), gravity=(0, 0, 0))
    >>> bool(abs(clamped.frequencies[0] - 3.5160153 * 10**0.5) < 1e-4)
    True
    """
    expect_system(system)
    from scipy.linalg import eigh

    expect_one(system, "modes")
    body: Any = system
    here = body.neutral() if q is None else as_floats(q, "q")
    if here.shape != (body.nq,):
        raise ShapeError(f"modes are of one configuration: q must have shape ({body.nq},), got {here.shape}")
    slack = body.neutral() if rest is None else as_floats(rest, "rest")
    if slack.shape != (body.nq,):
        raise ShapeError(f"rest must have shape ({body.nq},), as q has, got {slack.shape}")

    def pull(moved: Array) -> Array:
        tree, e = body.uncoupled, body._expansion
        stretched = difference(tree, e.positions(slack), e.positions(moved))
        return np.asarray(e.at(moved).forces(tree.stiffness * stretched))

    weight = (own_way(body, "gravity_slope") or _gravity_slope)(body, here, gravity)
    K = weight + _slope(body, here, pull)
    K = 0.5 * (K + K.T)
    M = mass_matrix(body, here)
    try:
        # older releases of scipy take no empty matrices
        squares, shapes = eigh(K, M) if len(M) else (np.zeros(0), np.zeros((0, 0)))
    except np.linalg.LinAlgError:
        worst = int(np.abs(np.linalg.eigh(M)[1][:, 0]).argmax())
        raise SingularError(
            f"system {body.name!r}: its mass matrix is singular, {_name(body, worst)} moves no mass; give a body some, "
            "or the hinge an armature"
        ) from None
    return Modes(np.sign(squares) * np.sqrt(np.abs(squares)), shapes, M, K, _weight(body, here, gravity) + pull(here))


def _weight(body: Any, q: Array, gravity: ArrayLike | None) -> Array:
    """Forces (..., nv) of gravity, and of what bends bodies, at rest."""
    return bias_forces(body, q, np.zeros(body.nv), gravity=gravity)


def _gravity_slope(system: System, q: Array, gravity: ArrayLike | None) -> Array:
    """Its derivative (nv, nv)."""
    return inverse_dynamics_derivatives(system, q, None, np.zeros(system.nv), gravity).dtau_dq


def gravity_slope(body: Any, q: Array, gravity: ArrayLike | None) -> Array:
    """The same for kinds whose derivatives are not to be had."""
    return _slope(body, q, lambda moved: _weight(body, moved, gravity))


def _name(body: Any, dof: int) -> str:
    """A coordinate in words: a mode or a hinge, and all hinges of a coupling."""
    if body.elastic[dof]:
        return f"mode {body.dof_names[dof]!r}"
    hinges = [repr(body.hinge_names[k]) for k in moved_by(body, np.array([dof]))]
    return f"hinge {hinges[0]}" if len(hinges) == 1 else f"the coupling of hinges {', '.join(hinges)}"


def _slope(body: Any, here: Array, force: Callable[[Array], Array]) -> Array:
    """∂force/∂q (nv, nv) in tangent coordinates, by differences of order four."""
    h = 1e-3 * body.sizes
    steps = np.array([-2.0, -1.0, 1.0, 2.0])[:, None, None] * np.diag(h)
    moved = integrate(body, here, steps.reshape(4 * body.nv, body.nv))
    f = force(moved).reshape(4, body.nv, body.nv)
    return np.asarray((f[0] - f[3] + 8 * (f[2] - f[1])) / (12 * h[:, None])).T
