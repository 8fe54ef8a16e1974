"""One step in time on the configuration manifold: RK4, semi-implicit Euler, implicit damping.

The variational step has a file of its own. Every step moves q by :func:`kfdyn.integrate`, so quaternions
stay unit and a hinge map is never left, and carries the work of what is not in the energy.
"""

from __future__ import annotations

from typing import NamedTuple

from kfdyn.arrays import Array
from kfdyn.dynamics.forward import forward_dynamics
from kfdyn.dynamics.simulation.equation import Motion
from kfdyn.multibody import System, integrate


class Step(NamedTuple):
    """State after a step, q (..., nq), v (..., nv), and the work (...) done on the system meanwhile."""

    q: Array
    v: Array
    work: Array


def rk4_step(motion: Motion, t: float, h: float, q: Array, v: Array) -> Step:
    """Fourth-order Runge-Kutta on the manifold: the classical one where q adds.

    ::

        v_1 = v             a_1 = a(t, q, v_1)
        v_2 = v + h/2 a_1   a_2 at q ⊕ h/2 v_1
        v_3 = v + h/2 a_2   a_3 at q ⊕ h/2 v_2
        v_4 = v + h a_3     a_4 at q ⊕ h/2 v_1 ⊕ h (v_3 − v_1/2)
        q ← q ⊕ h/12 (3v_1 + 2v_2 + 2v_3 − v_4) ⊕ h/12 (−v_1 + 2v_2 + 2v_3 + 3v_4)

    The two half moves are what makes it fourth order for turning hinges too. They are moves along
    velocities alone, no commutators, so a custom hinge that forms no group is served as well.

    Parameters
    ----------
    motion : Motion
        The system and what drives it.
    t, h : float
        Time and step.
    q, v : (..., nq), (..., nv)
        State.

    Returns
    -------
    Step

    Notes
    -----
    Four forward dynamics; local error O(h⁵). Source: Celledoni, Marthinsen and Owren, "Commutator-free
    Lie group methods", Future Generation Computer Systems 19 (2003).

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.multibody.models import pendulum
    >>> from kfdyn.dynamics.simulation.motion_arguments import motion
    >>> step = rk4_step(motion(pendulum()), 0.0, 1e-3, np.array([np.pi / 2]), np.array([0.0]))
    >>> step.v.round(8)
    array([-0.00981])
    """
    system = motion.system
    v1, middle = v, t + h / 2
    a1, w1 = motion.acceleration(t, q, v1)
    q2, v2 = integrate(system, q, h / 2 * v1), v + h / 2 * a1
    a2, w2 = motion.acceleration(middle, q2, v2)
    q3, v3 = integrate(system, q, h / 2 * v2), v + h / 2 * a2
    a3, w3 = motion.acceleration(middle, q3, v3)
    q4, v4 = integrate(system, q2, h * (v3 - v1 / 2)), v + h * a3
    a4, w4 = motion.acceleration(t + h, q4, v4)
    half = integrate(system, q, h / 12 * (3 * v1 + 2 * v2 + 2 * v3 - v4))
    end = integrate(system, half, h / 12 * (-v1 + 2 * v2 + 2 * v3 + 3 * v4))
    return Step(end, v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4), h / 6 * (w1 + 2 * w2 + 2 * w3 + w4))


def euler_step(motion: Motion, t: float, h: float, q: Array, v: Array) -> Step:
    """Semi-implicit Euler: v ← v + h a(t, q, v), then q ← q ⊕ h v.

    Damping is explicit here: stable only while h B stays below about twice the inertia it acts on.

    Parameters
    ----------
    motion, t, h, q, v
        As for :func:`rk4_step`.

    Returns
    -------
    Step

    Notes
    -----
    One forward dynamics; first order. Symplectic only where the mass matrix does not depend on q; see
    :func:`.variational.symplectic_step` for the general case.
    """
    return _semi_implicit(motion, motion.system, motion.damping, t, h, q, v)


def implicit_step(motion: Motion, t: float, h: float, q: Array, v: Array) -> Step:
    """Semi-implicit Euler with implicit damping and springs: damping is measurement noise.

    With B (v + ha) for B v, and K (q + hv + h²a ⊖ rest) for the spring, the step solves

        (𝓜 + hB + h²K) a = τ − c − B v − K (q + hv ⊖ rest)

    which is forward dynamics with R ← R + hB + h²K (THEORY section 6): every D(k) of the filter gains
    what the damper adds, and no other line changes. Linear damping is stable for every h. Bodies that
    bend join with R = h²K + hC of their modes (THEORY section 17).

    Parameters
    ----------
    motion, t, h, q, v
        As for :func:`rk4_step`.

    Returns
    -------
    Step

    Notes
    -----
    One forward dynamics; first order. Without springs the step of MuJoCo's Euler integrator.

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.multibody.models import pendulum
    >>> from kfdyn.dynamics.simulation.motion_arguments import motion
    >>> stiff = motion(pendulum(), damping=[1e6], gravity=[0, 0, 0])
    >>> implicit_step(stiff, 0.0, 1.0, np.array([0.0]), np.array([1.0])).v.round(6)
    array([1.e-06])
    """
    drag, stiff = motion.damping + h * motion.stiffness, motion.elastic(h * v)
    return _semi_implicit(motion, motion.damped(h), drag, t, h, q, v, stiff)


def _semi_implicit(
    motion: Motion, system: System, drag: Array, t: float, h: float, q: Array, v: Array, stiff: Array | float = 0.0
) -> Step:
    """Step of a system against drag (nv,) and ``stiff`` forces, springs as they are; forces are asked for once."""
    driving, external = motion.driving(t, q, v), motion.external(t, q, v)
    tau = driving - motion.resistance(q, v, drag) + motion.spring(q) - stiff
    v_new = v + h * forward_dynamics(system, q, v, tau, external, motion.gravity)
    work = h * motion.power_of(driving, external, q, v, v_new)
    return Step(integrate(motion.system, q, h * v_new), v_new, work)
