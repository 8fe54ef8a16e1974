"""Stops at the limits of hinges, Coulomb friction, and torques clipped at the limits of effort."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.dynamics.mass_matrix import mass_matrix
from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody import System
from kfdyn.multibody.parts.body import as_floats
from kfdyn.multibody.parts.hinge import Coordinates

Index = NDArray[np.int64]

#: Time in which a stop of the default stiffness brings its hinge to rest, s.
STOP_TIME = 0.01
# Explicit steps are stable while h times a damper's rate, and h times a spring's frequency, stay below this.
STABLE = 2.0


@dataclass(frozen=True, eq=False)
class HingeForces:
    """Forces of hinges beside linear springs and dampers: −X* μ tanh(Xv/v₀), and pushes from the limits of q.

    Attributes
    ----------
    system : System
        What moves.
    at_q, at_v : (n,)
        Where the coordinates with limits are in q and in v.
    lower, upper, stiffness, damping : (n,)
        Their limits, and the springs and dampers of the stops.
    friction : (nv of the uncoupled system,)
        μ of the hinges.
    slow : float
        v₀.
    effort : (nv,)
        Limits of driving torques.
    """

    system: System
    at_q: Index
    at_v: Index
    lower: Array
    upper: Array
    stiffness: Array
    damping: Array
    friction: Array
    slow: float
    effort: Array

    def clipped(self, tau: Array) -> Array:
        """Driving torques (..., nv) that the motors can give."""
        return np.clip(tau, -self.effort, self.effort)

    def forces(self, q: Array, v: Array) -> Array:
        """Generalised forces (..., nv) of stops and friction."""
        out = np.zeros(v.shape)
        if self.at_v.size:
            here = q[..., self.at_q]
            beyond = here - np.clip(here, self.lower, self.upper)
            push = -(self.stiffness * beyond + self.damping * v[..., self.at_v])
            # a stop pushes and does not pull
            out[..., self.at_v] = np.where(beyond * push < 0, push, 0.0)
        if self.friction.any():
            way = self.system._expansion.at(q)
            out -= way.forces(self.friction * np.tanh(way.rates(v) / self.slow))
        return out

    def substeps(self, q: Array, h: float) -> tuple[int, int]:
        """Into how many parts explicit steps h must be cut to be stable at q (nq,), and for which dof of v."""
        damper, spring = np.zeros(self.system.nv), np.zeros(self.system.nv)
        damper[self.at_v], spring[self.at_v] = self.damping, self.stiffness
        damper += self.system._expansion.at(q).squares(self.friction / self.slow)
        own = np.diag(np.linalg.inv(mass_matrix(self.system.without_loops, q)))
        parts = np.maximum(h * damper * own, h * np.sqrt(spring * own)) / STABLE
        worst = int(parts.argmax()) if parts.size else 0
        return int(np.ceil((1 - 1e-9) * parts.max(initial=0.0))), worst  # times of a linspace are rounded


def hinge_forces(
    system: System,
    stops: bool | ArrayLike,
    stop_damping: ArrayLike | None,
    friction: Array,
    slow: float,
    effort: bool | ArrayLike,
) -> HingeForces | None:
    """Check what is asked of the hinges; None if nothing is."""
    if not (np.ndim(slow) == 0 and 0 < slow < np.inf):
        raise ModelError(f"friction_speed must be a positive number, got {slow!r}")
    at_q, at_v = _limited(system)
    asked = not (isinstance(stops, bool | np.bool_) and not stops)
    if not asked:
        at_q, at_v = at_q[:0], at_v[:0]
        if stop_damping is not None:
            raise ModelError("stop_damping is that of the stops; ask for them, with stops=True or their stiffness")
    k = c = np.zeros(0)
    if at_v.size:
        own = 1.0 / np.diag(np.linalg.inv(mass_matrix(system.without_loops, system.neutral())))[at_v]
        k = own / STOP_TIME**2 if isinstance(stops, bool | np.bool_) else _numbers(system, stops, "stops")[at_v]
        c = 2.0 * np.sqrt(k * own) if stop_damping is None else _numbers(system, stop_damping, "stop_damping")[at_v]
    most = np.full(system.nv, np.inf)
    if isinstance(effort, bool | np.bool_):
        most = system.effort if effort else most
    else:
        most = _numbers(system, effort, "effort", infinite=True)
    if not (at_v.size or friction.any() or np.isfinite(most).any()):
        return None
    return HingeForces(system, at_q, at_v, system.lower[at_v], system.upper[at_v], k, c, friction, float(slow), most)


def _numbers(system: System, value: ArrayLike, what: str, infinite: bool = False) -> Array:
    """One number for all coordinates, or (nv,), none negative."""
    array = as_floats(value, what)
    if array.shape not in ((), (system.nv,)):
        raise ShapeError(f"{what} must be True, False, a number or have shape ({system.nv},), got {array.shape}")
    if not (array >= 0).all() or (np.isinf(array).any() and not infinite):
        raise ModelError(f"{what} must not be negative{'' if infinite else ' or infinite'}, got {array}")
    return np.broadcast_to(array, (system.nv,))


def _limited(system: System) -> tuple[Index, Index]:
    """Places in q and v of the coordinates that have limits; all are of hinges made of screws."""
    at_q: list[int] = []
    at_v: list[int] = []
    follow = {name for c in system.couplings for name in c.hinges if name not in c.named}
    kinds = system.pattern.open_tree.layout.coordinates
    for k, name in enumerate(system.hinge_names):
        if name not in follow and kinds[k] == Coordinates.SCREWS:
            of_q, of_v = system.q_slice(name), system.v_slice(name)
            at_q += range(of_q.start, of_q.stop)
            at_v += range(of_v.start, of_v.stop)
    rows, columns = np.array(at_q, np.int64), np.array(at_v, np.int64)
    has = np.isfinite(system.lower[columns]) | np.isfinite(system.upper[columns])
    return rows[has], columns[has]
