"""LinearFeedback: a torque law that compiled motions know, and that can be called like any other."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody import System, difference, integrate
from kfdyn.multibody.calls.arguments import checked, configuration, expect_system
from kfdyn.multibody.parts.body import as_floats
from kfdyn.multibody.parts.hinge import Coordinates


class References(NamedTuple):
    """References of a law, knot by knot: q (..., k, nq), the way to the next one, v and τ (..., k, nv)."""

    q: Array
    way: Array
    v: Array
    tau: Array


@dataclass(frozen=True, eq=False)
class LinearFeedback:
    """Torque law τ = τ_ref + Kp (q_ref ⊖ q) + Kd (v_ref − v), with references that may change in time.

    :func:`kfdyn.simulate` runs it inside its compiled loop; called with (t, q, v) it is a law like any other.

    Parameters
    ----------
    system : System
        The robot.
    kp, kd : scalar, (nv,) or (nv, nv)
        Gains; 0 if not given.
    q : (..., nq), or (..., k, nq) with ``t``
        Reference configuration; ``system.neutral()`` if not given.
    v, tau : (..., nv), or (..., k, nv) with ``t``
        Reference velocity and torque; 0 if not given. Leading axes are those of the motions.
    t : (k,), optional
        Increasing times of the references. Between them q moves at constant velocity and v and tau are linear; before
        the first and after the last they stay.
    held : bool
        Keep references from one time of ``t`` to the next, as a sequence of commands does. A step of fixed size then
        sees those of its beginning.

    Attributes
    ----------
    times : (k,)
        Times of the references; one where they are constant.
    gains : tuple of two arrays
        Kp and Kd, (nv,) or (nv, nv).
    references : tuple of arrays
        q (..., k, nq), the way to the next one (..., k, nv), v and tau (..., k, nv).

    Notes
    -----
    At ball and free hinges q_ref ⊖ q is the rotation vector, or the twist, that leads from q to q_ref in the body's
    axes. All springs and dampers that are linear in this sense are such a law, and so is every torque that is given
    as samples: ``LinearFeedback(system, t=times, tau=samples)``.

    Examples
    --------
    A pendulum is held at the side by a torque, and kept there by a spring and a damper:

    >>> import numpy as np, kfdyn as kf
    >>> pendulum = kf.models.pendulum(mass=1.0, length=1.0)
    >>> law = kf.LinearFeedback(pendulum, kp=50.0, kd=10.0, q=[np.pi / 2], tau=[9.81])
    >>> law(0.0, np.array([1.5]), np.array([0.2])).round(3)
    array([11.35])
    >>> kf.simulate(pendulum, [1.5], [0.0], np.linspace(0, 3, 301), law).q[-1].round(4)
    array([1.5708])
    """

    system: System
    kp: ArrayLike = 0.0
    kd: ArrayLike = 0.0
    q: ArrayLike | None = None
    v: ArrayLike | None = None
    tau: ArrayLike | None = None
    t: ArrayLike | None = None
    held: bool = False
    times: Array = field(init=False, repr=False)
    gains: tuple[Array, Array] = field(init=False, repr=False)
    references: References = field(init=False, repr=False)
    _loose: NDArray[np.bool_] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        expect_system(self.system)
        object.__setattr__(self, "system", self.system.pattern)  # of robots that differ one law
        system, nv = self.system, self.system.nv
        times = np.zeros(1) if self.t is None else as_floats(self.t, "t").copy()
        if times.ndim != 1 or times.size == 0 or not np.isfinite(times).all() or (np.diff(times) <= 0).any():
            raise ModelError("t of a LinearFeedback must be finite times (k,) that increase")
        k, keep = times.size, object.__setattr__
        q = system.neutral() if self.q is None else configuration(system, self.q)
        v, tau = (
            np.zeros(nv) if x is None else checked(system, x, (nv,), name)
            for x, name in ((self.v, "v"), (self.tau, "tau"))
        )
        given = {"q": self.q, "v": self.v, "tau": self.tau}
        by_knot = [self._by_knot(x, k, name, given[name] is None) for x, name in ((q, "q"), (v, "v"), (tau, "tau"))]
        gains = gain_of(self.kp, nv, "kp"), gain_of(self.kd, nv, "kd")
        keep(self, "gains", gains)
        keep(self, "_loose", _entries_without_pull(system, gains[0]))
        by_knot[0][..., self._loose] = by_knot[0][..., :1, self._loose]  # nobody goes there, and perhaps nobody can
        way = np.zeros((*by_knot[0].shape[:-1], nv))
        if k > 1 and not self.held:
            way[..., :-1, :] = difference(system, by_knot[0][..., :-1, :], by_knot[0][..., 1:, :])
        keep(self, "times", times)
        keep(self, "references", References(by_knot[0], way, by_knot[1], by_knot[2]))

    def _by_knot(self, x: Array, k: int, name: str, missing: bool) -> Array:
        """With an axis for the times."""
        if self.t is None or missing:
            return np.array(np.repeat(x[..., None, :], k, axis=-2))
        if x.ndim < 2 or x.shape[-2] != k:
            raise ShapeError(
                f"{name} of a LinearFeedback with {k} times must have shape (..., {k}, {x.shape[-1]}), got {x.shape}"
            )
        return np.array(x)

    def __call__(self, t: ArrayLike, q: ArrayLike, v: ArrayLike) -> Array:
        """τ (..., nv) at a time t, or at times (nt,) where q and v have these as their first axis."""
        return self._at(as_floats(t, "t"), _of_state(q, self.system.nq, "q"), _of_state(v, self.system.nv, "v"))

    def _at(self, moment: Array, q: Array, v: Array) -> Array:
        times, (q_ref, way, v_ref, tau_ref) = self.times, self.references
        if times.size == 1 and max(x.ndim for x in self.references) == 2:  # the same at all times, of all motions
            return self._towards(q_ref[0], v_ref[0], tau_ref[0], q, v)
        k = np.clip(np.searchsorted(times, moment, side="right") - 1, 0, times.size - 1)
        after = np.minimum(k + 1, times.size - 1)
        part = np.where(
            after > k, np.clip(moment - times[k], 0.0, None) / np.where(after > k, times[after] - times[k], 1.0), 0.0
        )
        part = np.zeros_like(part) if self.held else part

        def at(array: Array, k: NDArray[np.integer]) -> Array:
            """Knots k of a reference, with the axes of v; times lead."""
            if not moment.ndim:
                return array[..., k, :]
            x = np.moveaxis(array[..., k, :], -2, 0)
            return x.reshape((*x.shape[:1], *(1,) * (v.ndim - x.ndim), *x.shape[1:]))

        def between(array: Array) -> Array:
            first = at(array, k)
            s = part.reshape(part.shape + (1,) * (first.ndim - part.ndim))
            return np.asarray(first + s * (at(array, after) - first))

        where = at(q_ref, k)
        if part.any() and self.gains[0].any():
            ahead = at(way, k)
            where = integrate(self.system, where, part.reshape(part.shape + (1,) * (ahead.ndim - part.ndim)) * ahead)
        return self._towards(where, between(v_ref), between(tau_ref), q, v)

    def _towards(self, q_ref: Array, v_ref: Array, tau_ref: Array, q: Array, v: Array) -> Array:
        """τ_ref + Kp (q_ref ⊖ q) + Kd (v_ref − v)."""
        kp, kd = self.gains
        tau = tau_ref
        if kp.any():
            target = np.where(self._loose, q, np.broadcast_to(q_ref, q.shape))
            tau = tau + _times(kp, difference(self.system, q, target))
        return np.broadcast_to(tau + _times(kd, v_ref - v), v.shape)

    @property
    def reaches_all(self) -> bool:
        """True if every hinge that is pulled can go straight to any reference: all kinds can but custom ones."""
        hinges, start = self.system.uncoupled.places.hinges, self.system._expansion.q_start
        custom = np.array([hinge.coordinates == Coordinates.POSE and hinge.nv < 6 for hinge in hinges], bool)
        return bool(self._loose[np.repeat(custom, np.diff(start))].all())

    def beginning(self, t: float) -> LinearFeedback:
        """The law of a step that begins at t: if held, what is held from then on."""
        k = int(np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, self.times.size - 1))
        return self._with([x[..., [k], :] for x in self.references], np.zeros(1))

    def of_row(self, own: Callable[[Array, int], Array]) -> LinearFeedback:
        """The law of one motion of a batch: ``own`` takes its part of an array with so many trailing axes."""
        return self._with([own(x, 2) for x in self.references], self.times)

    def _with(self, references: list[Array], times: Array) -> LinearFeedback:
        other = copy(self)
        object.__setattr__(other, "references", References(*references))
        object.__setattr__(other, "times", times)
        return other


def _of_state(x: ArrayLike, size: int, what: str) -> Array:
    """One argument of a law; whether it is finite is for those who march to say."""
    array = as_floats(x, what)
    if array.ndim == 0 or array.shape[-1] != size:
        raise ShapeError(f"{what} of a LinearFeedback must have shape (..., {size}), got {array.shape}")
    return array


def _entries_without_pull(system: System, kp: Array) -> NDArray[np.bool_]:
    """Mark the entries (nq,) of q, of hinges and of the modes of their bodies, whose error has no gain."""
    places, loose = system._expansion, np.zeros(system.nq, dtype=bool)
    pulled = np.asarray(np.atleast_2d(kp != 0).any(axis=0))
    for k in range(system.n_bodies):
        if not pulled[places.v_start[k] : places.v_start[k + 1]].any():
            loose[places.q_start[k] : places.q_start[k + 1]] = True
    return loose


def gain_of(gain: ArrayLike, size: int, what: str) -> Array:
    """A gain as (size,), or (size, size) if it is a matrix."""
    K = as_floats(gain, what)
    if not np.isfinite(K).all():
        raise ModelError(f"{what} has entries that are not finite")
    if K.shape not in ((), (size,), (size, size)):
        raise ShapeError(f"{what} must be a scalar or have shape ({size},) or ({size}, {size}), got {K.shape}")
    return K.copy() if K.ndim else np.full(size, float(K))


def _times(gain: Array, x: Array) -> Array:
    return (gain @ x[..., None])[..., 0] if gain.ndim == 2 else gain * x
