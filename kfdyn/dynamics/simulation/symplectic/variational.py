"""The variational step: Störmer-Verlet for any tree, symplectic because it is Hamilton's principle, discretised."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from kfdyn.arrays import Array
from kfdyn.dynamics.forward import forward_dynamics
from kfdyn.dynamics.simulation.equation import Motion, damped_key
from kfdyn.dynamics.simulation.feedback import LinearFeedback
from kfdyn.dynamics.simulation.integrators import Step
from kfdyn.dynamics.simulation.symplectic.implicit_equations import NoNearRoot, Update, settle
from kfdyn.errors import KfdynError
from kfdyn.multibody import System, integrate, kinetic_energy
from kfdyn.multibody.calls.kernel import FINE, Kernel
from kfdyn.multibody.calls.layout import Layout
from kfdyn.multibody.parts.armature import with_armature
from kfdyn.multibody.parts.hinge import Coordinates

# Of exp(ad), and of what they add up to: |ad| = 2 leaves 2^40 / 40! = 1e-36.
MOST_TERMS, LEFT = 40, 1e-18
WEIGHTLESS = np.zeros(3)
WEIGHTLESS.flags.writeable = False

LAGRANGIAN = Kernel("kfdyn.dynamics.recursions.steps.lagrangian", "LAGRANGIAN", meaning="the momentum")
VARIATIONAL_STEP = Kernel("kfdyn.dynamics.recursions.steps.verlet", "VARIATIONAL_STEP")


class Lagrangian(NamedTuple):
    """Momentum p = ∂L/∂v and force ∂L/∂q at fixed v, both (..., nv); L is kinetic − potential energy."""

    momentum: Array
    force: Array


def lagrangian(
    system: System, q: Array, v: Array, external_forces: Array | None = None, gravity: Array | None = None
) -> Lagrangian:
    """Generalised momentum and the Lagrangian's force, in one sweep out and one in.

    ::

        h(k) = Σ φ(k,j) M(j) V(j)                    momentum outboard of hinge k
        p(k) = H(k) h(k) + R v                       = 𝓜 v
        F(k) = (V(p) × H*(k))·h(k) + H(k) Σ φ(k,j) (M(j) [0; g] + f_ext(j))

    so that ṗ = F + τ for hinges with coordinates, and ṗ = ad*_v p + F + τ for ball and free hinges. A custom
    hinge that forms no group has V(k) in the place of V(p), and then ṗ = F + τ again.

    Parameters
    ----------
    q, v : (..., nq), (..., nv)
    external_forces : (..., n_bodies, 6), optional
    gravity : (..., 3), optional
        ``system.gravity`` if not given.

    Returns
    -------
    Lagrangian

    Notes
    -----
    O(N). The relation to inverse dynamics is c = 𝓜̇ v − ad*_v p − F.

    Examples
    --------
    >>> from kfdyn.multibody.models import pendulum
    >>> lagrangian(pendulum(mass=2.0), np.array([0.0]), np.array([3.0])).momentum
    array([6.])
    """
    tree, q_tree, v_tree = system.opened(q, v=v)
    momentum, force = LAGRANGIAN.rows(tree, (q_tree, v_tree, external_forces, gravity))
    here = system._expansion.at(q)
    return Lagrangian(here.forces(momentum), here.forces(force) + here.turning(momentum, v))


def symplectic_step(motion: Motion, t: float, h: float, q: Array, v: Array) -> Step:
    """Störmer-Verlet step for 𝓜(q): kick, move, move, kick, each half implicit where it must be.

    ::

        p = 𝓜(q) v
        π = p + h/2 F(q, u),     𝓜(q) u = J*π        solved for u          kick
        q ← q ⊕ h/2 u,           π ← Ad*π                                  move
        q ← q ⊕ h/2 w,           𝓜(q) w = J*π        solved for w and q    move
        p = Ad*π + h/2 F(q, w),  𝓜(q) v = p                                kick

    with F the force of :func:`lagrangian` and the driving force, and Ad*, J* of exp(h/2 u), exp(h/2 w): unity for
    hinges with coordinates, so that this is the generalised Störmer-Verlet scheme; for ball and free
    hinges they carry the momentum into the moved frame. It is the composition of the variational Euler
    method and its adjoint, hence second order, symmetric, symplectic, and it keeps the momentum of a free-flying
    system to rounding. Its energy error oscillates, O(h²), and does not grow. Custom hinges that form no
    group are non-holonomic: there the step is symmetric and second order, but there is nothing to be symplectic for.

    Parameters
    ----------
    motion, t, h, q, v
        As for :func:`kfdyn.dynamics.simulation.integrators.rk4_step`.

    Returns
    -------
    Step

    Raises
    ------
    KfdynError
        If the implicit equations have no solution near the state, because h is too long.

    Notes
    -----
    𝓜^-1 is applied once per iteration, some 3 to 10 times in either half, by forward dynamics: in one compiled call
    (``recursions/verlet.py``) for trees under forces that no law gives, as long as corrections halve, else function by
    function. There dampers, and rates that a :class:`.LinearFeedback` feeds back, are solved for with it
    (:func:`dragged`). Corrections count until they are
    rounding of the forces and momenta that the velocity is a sum of, which at rest is all there is of it. Where that
    contracts slowly Newton's steps take over, and where they would lead astray the root is followed from h = 0
    (:func:`.implicit_equations.settle`): of several roots the step takes the one that this state leads to.
    Sources: Hairer, Lubich and Wanner, "Geometric numerical integration illustrated by the Störmer-Verlet
    method", Acta Numerica 12 (2003); Bou-Rabee and Marsden, "Hamilton-Pontryagin integrators on Lie
    groups", Foundations of Computational Mathematics 9 (2009).

    Examples
    --------
    >>> from kfdyn.multibody.models import pendulum
    >>> from kfdyn.dynamics.simulation.motion_arguments import motion
    >>> step = symplectic_step(motion(pendulum()), 0.0, 1e-3, np.array([np.pi / 2]), np.array([0.0]))
    >>> step.v.round(8)
    array([-0.00981])
    """
    system, half = motion.system, h / 2
    _, w, q_end, p_end, power = _swept(motion, t, h, q, v) or _by_parts(motion, t, h, q, v)
    force, power_end = force_and_power(motion, system, t + h, q_end, w)
    return Step(q_end, solve_mass(system, q_end, p_end + half * force), half * (power + power_end))


class Halves(NamedTuple):
    """A step before its last kick: u, w (..., nv), q (..., nq) and Ad*π (..., nv), and the power (...) of the first."""

    u: Array
    w: Array
    q: Array
    p: Array
    power: Array


def _swept(motion: Motion, t: float, h: float, q: Array, v: Array) -> Halves | None:
    """Both implicit equations in one compiled call, where no law of Python's depends on u.

    Rows whose iteration does not contract are left to Python, they alone: what a row becomes does not depend on others.
    """
    system, lead = motion.system, v.shape[:-1]
    served = VARIATIONAL_STEP.serving(system) is not None
    if not served or callable(motion.torque) or callable(motion.external_forces) or motion.hinges is not None:
        return None
    driving, external = motion.driving(t, q, v), motion.external(t, q, v)
    u, w, q_end, p_end = out = [np.empty(x.shape) for x in (v, v, q, v)]
    g = motion.gravity
    given = (
        np.ascontiguousarray(q), np.ascontiguousarray(v), np.ascontiguousarray(driving + motion.spring(q)),
        None if external is None else np.ascontiguousarray(external),
        np.ascontiguousarray(np.broadcast_to(g, (*lead, 3))) if g.ndim > 1 else g,
    )  # fmt: skip
    status = VARIATIONAL_STEP(system, math.prod(lead), np.array([h]), motion.damping, *given, *out)
    if status < 0 or (status != FINE and not lead):
        return None
    lost = ~np.isfinite(u).all(axis=-1)
    if status != FINE and lost.any():
        rows = np.nonzero(lost)
        for every, some in zip(out, _by_parts(motion.of_row(rows, lead), t, h, q[rows], v[rows])):
            every[rows] = some
    return Halves(u, w, q_end, p_end, motion.power_of(driving, external, q, u, u))


def _by_parts(motion: Motion, t: float, h: float, q: Array, v: Array) -> Halves:
    """The same function by function, for any motion and any root that the state leads to."""
    system, half = motion.system, h / 2
    stiff, drag = dragged(motion, half)
    carry = transport_of(system)
    p = lagrangian(system, q, v).momentum

    def kick(u: Array, part: Array) -> Array:
        mean, _ = carry(part * half * u, p + part * half * generalised_force(motion, system, t, q, u))
        if drag is not None:
            mean = mean + half * motion.resistance(q, u, drag)
        return solve_mass(stiff, q, mean)

    terms = half * solve_mass(stiff, q, size_of_forces(motion, system, t, q, v))
    u = _settled(kick, system, q, v, terms, "kick", h)
    force, power = force_and_power(motion, system, t, q, u)
    _, p_half = carry(half * u, p + half * force)
    q_half = integrate(system, q, half * u)

    def move(w: Array, part: Array) -> Array:
        mean, _ = carry(part * half * w, p_half)
        return solve_mass(system, integrate(system, q_half, part * half * w), mean)

    start = solve_mass(system, q_half, p_half)
    w = _settled(move, system, q_half, start, start, "move", h)
    _, p_end = carry(half * w, p_half)
    return Halves(u, w, integrate(system, q_half, half * w), p_end, power)


def generalised_force(motion: Motion, system: System, t: float, q: Array, v: Array) -> Array:
    """F(q, v) of :func:`lagrangian` and the driving force (..., nv); ``system`` is the motion's, loops left out."""
    tau, external = motion.force(t, q, v)
    return tau + lagrangian(system, q, v, external, motion.gravity).force


def force_and_power(motion: Motion, system: System, t: float, q: Array, v: Array) -> tuple[Array, Array]:
    """:func:`generalised_force` (..., nv), and the power (...) of what is not in the energy; laws are asked once."""
    driving, external = motion.driving(t, q, v), motion.external(t, q, v)
    tau = driving - motion.resistance(q, v, motion.damping) + motion.spring(q)
    force = tau + lagrangian(system, q, v, external, motion.gravity).force
    return force, motion.power_of(driving, external, q, v, v)


def size_of_forces(motion: Motion, system: System, t: float, q: Array, v: Array) -> Array:
    """Σ |f| (..., nv) of the forces that :func:`generalised_force` adds up: what its rounding is a part of."""
    drag, external = motion.resistance(q, v, motion.damping), motion.external(t, q, v)
    own = lagrangian(system, q, v, None, motion.gravity).force
    size = np.abs(motion.driving(t, q, v)) + np.abs(drag) + np.abs(motion.spring(q)) + np.abs(own)
    if external is not None:
        size = size + np.abs(lagrangian(system, q, v, external, motion.gravity).force - own)
    return size


def dragged(motion: Motion, half: float) -> tuple[System, Array | None]:
    """The system with R ← R + h/2 D, and D, of dampers and of the rates that a law feeds back; D is None if it is 0.

    With h/2 D u on both sides of the kick's equation a damper of any stiffness is solved for at once, as measurement
    noise (THEORY section 6), and the iteration is left with what is not linear.
    """
    if "drag" not in motion.kept:
        drag, law = motion.damping, motion.torque
        if isinstance(law, LinearFeedback):
            gain = law.gains[1]
            drag = drag + motion.system._expansion.of_named(np.maximum(gain if gain.ndim == 1 else np.diag(gain), 0.0))
        motion.kept["drag"] = drag if drag.any() else None
    drag = motion.kept["drag"]
    if drag is None or half <= 0:
        return motion.system, None
    key = "dragged", damped_key(half)
    if key not in motion.kept:
        tree = motion.system.open_tree
        motion.kept[key] = motion.system.like(with_armature(tree, tree.armature + half * drag))
    return motion.kept[key], drag


def solve_mass(system: System, q: Array, p: Array) -> Array:
    """𝓜^-1(q) p: forward dynamics at rest and without gravity."""
    return forward_dynamics(system, q, np.zeros(p.shape), p, None, WEIGHTLESS)


def transport_of(system: System) -> Callable[[Array, Array], tuple[Array, Array]]:
    """:func:`transport` of (step, p), where hinges have coordinates no call of anything."""
    turns = (system.open_tree.layout.coordinates != Coordinates.SCREWS).any()
    return partial(transport, system) if turns else lambda _, p: (p, p)


def transport(system: System, step: Array, p: Array) -> tuple[Array, Array]:
    """J*p and Ad*p of a move exp(step): p itself for hinges with coordinates."""
    tree, e = system.open_tree, system._expansion  # coupled hinges have coordinates
    step_tree, p_tree = np.zeros((2, *p.shape[:-1], tree.nv))
    step_tree[..., e.plain_v], p_tree[..., e.plain_v] = step[..., e.here_v], p[..., e.here_v]
    mean, moved = p.copy(), p.copy()
    for x, y in zip((mean, moved), _carried(tree.layout, step_tree, p_tree)):
        x[..., e.here_v] = y[..., e.plain_v]
    return mean, moved


def _carried(layout: Layout, step: Array, p: Array) -> tuple[Array, Array]:
    from kfdyn.dynamics.recursions.steps import lagrangian as sweeps

    steps = np.ascontiguousarray(step)
    terms = _terms(float(np.abs(steps).max(initial=0.0)))
    mean, moved = np.empty(p.shape), np.empty(p.shape)
    sweeps.transport(
        layout.coordinates, layout.v_start, terms, steps.reshape(-1), np.ascontiguousarray(p).reshape(-1),
        mean.reshape(-1), moved.reshape(-1),
    )  # fmt: skip
    return mean, moved


def _terms(largest: float) -> int:
    """Terms of exp(ad) that count where no entry of a step is larger: |ad| ≤ |ω| + |v| ≤ √12 of it."""
    left, n = 1.0, 0
    while n < MOST_TERMS and not left < LEFT:  # nor where it is NaN
        n += 1
        left *= 3.5 * largest / n
    return n


def _settled(update: Update, system: System, q: Array, start: Array, terms: Array, name: str, h: float) -> Array:
    """Solve one half of the step; the length of a velocity is the root of twice its kinetic energy at q."""
    try:
        return settle(update, lambda u: np.sqrt(2.0 * kinetic_energy(system, q, u)), start, terms)
    except NoNearRoot as why:
        raise KfdynError(
            f"the implicit equations of the symplectic step have no solution near this state at h = {h:.3g}: the root "
            f"of its {name} {why}; take a shorter step (more substeps), or method 'rk4' or 'implicit'"
        ) from None
