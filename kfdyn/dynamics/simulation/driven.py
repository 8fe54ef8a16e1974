"""Hinges that are driven as a function of time: the rheonomic term U(t) of the sources, solved as hybrid dynamics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.dynamics.hybrid import hybrid_dynamics
from kfdyn.dynamics.simulation.equation import Motion
from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody import difference
from kfdyn.multibody.kinds import expect_rigid, expect_tree

#: position, rate and acceleration of a hinge at time t
Course = Callable[[float], tuple[ArrayLike, ArrayLike, ArrayLike]]

# Step of the difference that looks whether a rate is that of its position, and what it may be off by: rounding and the
# next order of the difference leave a part of 1e-6 of what changes within 1e-4 s.
_STEP, _OFF = 1e-4, 1e-3


@dataclass(frozen=True, eq=False)
class Driven(Motion):
    """A motion in which some hinges follow courses of their own: their torques are answers."""

    courses: Mapping[str, Course] = field(default_factory=dict, kw_only=True)

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Return which dofs are driven (nv,)."""
        mask = np.zeros(self.system.nv, dtype=bool)
        for name in self.courses:
            mask[self.system.v_slice(name)] = True
        return mask

    def onto(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """The state with the driven hinges where they are at time t."""
        q, v, _ = self._at(t, q, v)
        return q, v

    def _at(self, t: float, q: Array, v: Array) -> tuple[Array, Array, Array]:
        q, v, a = np.array(q), np.array(v), np.zeros(v.shape)
        for name, course in self.courses.items():
            qs, vs = self.system.q_slice(name), self.system.v_slice(name)
            for out, where, given, what in zip((q, v, a), (qs, vs, vs), _told(name, course, t), _WHAT):
                size = where.stop - where.start
                if given.shape not in ((size,), (*q.shape[:-1], size)) and not (size == 1 and given.shape == ()):
                    raise ShapeError(
                        f"the course of hinge {name!r} gives {what} of shape {given.shape} at t = {t:.6g} s; it "
                        f"must be ({size},)"
                    )
                if not np.isfinite(given).all():
                    raise ModelError(f"the course of hinge {name!r} gives {what} of {given} at t = {t:.6g} s")
                out[..., where] = given
        return q, v, a

    def solved(self, t: float, q: Array, v: Array) -> tuple[Array, Array, Array, Array, Array | None]:
        """State, all accelerations, all driving torques (those of driven hinges are answers), external forces."""
        q, v, known = self._at(t, q, v)
        passive = self.spring(q) - self.resistance(q, v, self.damping)
        external = self.external(t, q, v)
        tau = self.driving(t, q, v) + passive
        tau, a = hybrid_dynamics(self.system, q, v, tau, known, self.mask, external, self.gravity)
        return q, v, a, tau - passive, external

    def acceleration(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """Return a (..., nv) by one hybrid dynamics, and the power (...), that of the drives included; O(N)."""
        q, v, a, driving, external = self.solved(t, q, v)
        return a, self.power_of(driving, external, q, v, v)

    def driving_along(self, times: Array, q: Array, v: Array) -> Array:
        """Driving torques (nt, ..., nv) at states (nt, ...): what the drives had to give is among them."""
        tau = np.array([self.solved(float(t), *state)[3] for t, *state in zip(times, q, v)])
        return tau if self.hinges is None else tau - self.hinges.forces(q, v)


_WHAT = ("a position", "a rate", "an acceleration")


def driven(motion: Motion, courses: Mapping[str, Course], t: float) -> Driven:
    """Return the motion with hinges driven; refuse courses whose rates are not those of their positions."""
    system = motion.system
    expect_rigid(system, "simulate with courses", "kf.hybrid_dynamics takes led hinges beside free modes")
    expect_tree(
        system, "simulate with courses", "give a hinge that is coupled to none a stiff spring, or drive the open tree"
    )
    for name, course in courses.items():
        system.v_slice(name)
        if not callable(course):
            raise ModelError(f"the course of hinge {name!r} must be a function of t, got {course!r:.60}")
    kept = {f.name: getattr(motion, f.name) for f in fields(Motion)}
    result = Driven(**kept, courses=dict(courses))
    nothing = np.zeros(system.nv)
    before, here, after = (result._at(t + s * _STEP, system.neutral(), nothing) for s in (0.0, 1.0, 2.0))
    mean = difference(system, before[0], after[0]) / (2 * _STEP)
    for what, rate, expected in (
        ("a rate", here[1], mean),
        ("an acceleration", here[2], (after[1] - before[1]) / (2 * _STEP)),
    ):
        off = np.abs(rate - expected) > _OFF * (1.0 + np.abs(expected))
        if off.any():
            i = int(np.argmax(off))
            name = next(n for n in courses if system.v_slice(n).start <= i < system.v_slice(n).stop)
            raise ModelError(
                f"the course of hinge {name!r} gives {what} of {rate[i]:.6g} near t = {t:.6g} s, where that of its "
                f"{'position' if what == 'a rate' else 'rate'} is {expected[i]:.6g}; a course returns position, "
                "rate and acceleration"
            )
    return result


def _told(name: str, course: Course, t: float) -> list[Array]:
    given = course(t)
    if not isinstance(given, tuple) or len(given) != 3:
        raise ModelError(f"the course of hinge {name!r} must return (position, rate, acceleration), got {given!r:.80}")
    return [np.asarray(x, dtype=float) for x in given]
