"""Advance a moment in time by the steps of ``kf.simulate``, as many as conserve its energy."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.dynamics.simulation.driven import Driven
from kfdyn.dynamics.simulation.equation import Motion
from kfdyn.dynamics.simulation.fixed_steps import march
from kfdyn.dynamics.simulation.motion_arguments import motion
from kfdyn.dynamics.simulation.trajectory import Trajectory
from kfdyn.errors import KfdynError
from kfdyn.explore.moment import Moment
from kfdyn.multibody import kinetic_energy, momentum

FASTEST = 1e3  # rates beyond which a motion is held: no robot, and soon no number
STEPS = (16, 64, 256, 1024)  # in a frame: as many as keep the energy
DRIFT = 1e-7  # of the energy exchanged in a frame, which may be lost or gained


@dataclass(frozen=True, eq=False)
class Led(Driven):
    """A motion in which the accelerations of some dofs are given."""

    moment: Moment = field(kw_only=True)

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Mask of dofs that are locked or prescribed (nv,)."""
        return self.moment.known

    def _at(self, t: float, q: Array, v: Array) -> tuple[Array, Array, Array]:
        return q, v, self.moment.given


def advanced(moment: Moment, seconds: float) -> Moment | None:
    """Advance by so many seconds; return None where that is too fast to follow.

    Runge-Kutta steps of fourth order, four times as many again until the energy that no work accounts for is 1e-7 of
    what was exchanged.

    Parameters
    ----------
    moment : Moment
        Where it is.
    seconds : float
        How long it moves.

    Returns
    -------
    Moment or None

    Examples
    --------
    A pendulum held out level falls for a second, and keeps its energy:

    >>> import numpy as np, kfdyn as kf
    >>> here = Moment.at_rest(kf.models.pendulum(), [0.5 * np.pi])
    >>> there = advanced(here, 1.0)
    >>> gained = kf.kinetic_energy(here.system, there.q, there.v) + kf.potential_energy(here.system, there.q)
    >>> bool(abs(gained - kf.potential_energy(here.system, here.q)) < 1e-6)
    True
    """
    driven = motion(moment.built, moment.tau, gravity=None if moment.gravity else (0.0, 0.0, 0.0))
    if moment.known.any():
        driven = Led(**{f.name: getattr(driven, f.name) for f in fields(Motion)}, moment=moment)
    times = np.array([0.0, seconds])
    for steps in STEPS:
        try:
            q, v, work, _ = march(driven, moment.q, moment.v, times, "rk4", steps, lambda _: None)
        except KfdynError:  # it exploded, as too long a step does
            continue
        if not np.abs(v).max() < FASTEST:
            continue
        kept = Trajectory(
            system=moment.built, t=times, q=q, v=v, tau=np.zeros(v.shape), kinetic=kinetic_energy(moment.built, q, v),
            potential=driven.potential(q), work=work, momentum=momentum(moment.built, q, v), method="rk4", steps=steps,
        )  # fmt: skip
        if kept.worst_energy_drift < DRIFT:
            return replace(moment, q=q[1], v=v[1])
    return None
