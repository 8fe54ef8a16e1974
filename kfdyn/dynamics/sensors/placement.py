"""Choose sensors one by one: the candidate that leaves least undetermined, then least variance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.dynamics.sensors.observability import Observability, observability
from kfdyn.dynamics.sensors.sensor import Sensor
from kfdyn.dynamics.sensors.solver.problem import check_sensors
from kfdyn.errors import ModelError, shown
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import expect_system

Target = str | tuple[str, str] | Callable[[Observability], float]


@dataclass(frozen=True)
class Placement:
    """Sensors in the order in which they were chosen; made by :func:`place_sensors`.

    Attributes
    ----------
    chosen : tuple of Sensor
        The candidates that were taken.
    undetermined : tuple of int
        How many entries of the target had an infinite variance: before, and after each.
    rms : tuple of float
        Root mean variance of its other entries, likewise.
    steps : tuple of dict
        For each choice, every candidate with the (undetermined, rms) it would have left.

    Examples
    --------
    >>> import kfdyn as kf
    >>> arm, imu = kf.models.double_pendulum(), kf.sensors.Imu
    >>> place_sensors(arm, [0.3, 0.4], [], [imu("upper", 0.01), imu("lower", 0.01)])
    Placement: a of 2 entries
      before: 2 undetermined
      + Imu('lower'): rms 0.122
    """

    chosen: tuple[Sensor, ...]
    undetermined: tuple[int, ...]
    rms: tuple[float, ...]
    steps: tuple[dict[Sensor, tuple[int, float]], ...]
    target: str = "a"
    entries: int = 0

    def __repr__(self) -> str:
        lines = [f"Placement: {self.target} of {self.entries} entries"]
        for i, (lost, rms) in enumerate(zip(self.undetermined, self.rms)):
            who = "before" if i == 0 else f"+ {self.chosen[i - 1]}"
            what = [f"{lost} undetermined"] * bool(lost) + [f"rms {rms:.3g}"] * (lost < self.entries)
            lines.append(f"  {who}: " + ", ".join(what))
        return "\n".join(lines)


def place_sensors(
    system: System,
    q: ArrayLike,
    sensors: Sequence[Sensor],
    candidates: Sequence[Sensor],
    count: int = 1,
    target: Target = "a",
) -> Placement:
    """Choose the next best sensors for a set, one after the other.

    Parameters
    ----------
    system : System
        The robot.
    q : (..., nq)
        Configurations; variances are averaged over them.
    sensors : sequence of kf.sensors
        Those there already, priors included.
    candidates : sequence of kf.sensors
        Those to choose from; each may be chosen once.
    count : int
        How many to choose.
    target : str, pair of str, or callable
        What is to be known: a quantity as "a" or "external_forces"; with a hinge or body, ("tau", "elbow"); or
        ``target(observability)``, a number to be made small.

    Returns
    -------
    Placement
        The choice, and what each step gained. Cost: one :func:`observability` a candidate and step.

    Examples
    --------
    For a push on the lower link, torques are known; a sensor in the elbow tells more of it than one in the shoulder:

    >>> import kfdyn as kf
    >>> kinds = kf.sensors
    >>> known = [kinds.JointTorque(0.01), kinds.JointPrior(1.0), kinds.ExternalForce("lower", np.inf)]
    >>> extra = [kinds.ForceTorque("shoulder", 0.01), kinds.ForceTorque("elbow", 0.01)]
    >>> place_sensors(kf.models.double_pendulum(), [0.3, 0.4], known, extra, target=("external_forces", "lower")).chosen
    (ForceTorque('elbow'),)
    """
    expect_system(system)
    have, left = list(check_sensors(sensors)), list(check_sensors(candidates, "candidate"))
    if not isinstance(count, int | np.integer) or not 0 < count <= len(left):
        raise ModelError(f"cannot choose {shown(count)} of {len(left)} candidates")
    lost, rms, entries = _score(system, q, have, target)
    undetermined, sizes, chosen = [lost], [rms], []
    steps = []
    for _ in range(count):
        offers = {one: _score(system, q, [*have, one], target)[:2] for one in left}
        best = min(left, key=lambda one: offers[one])
        chosen.append(best)
        have.append(best)
        left.remove(best)
        steps.append(offers)
        undetermined.append(offers[best][0])
        sizes.append(offers[best][1])
    name = target if isinstance(target, str) else " at ".join(target) if isinstance(target, tuple) else "target"
    return Placement(tuple(chosen), tuple(undetermined), tuple(sizes), tuple(steps), name, entries)


def _score(system: System, q: ArrayLike, sensors: Sequence[Sensor], target: Target) -> tuple[int, float, int]:
    """Entries of the target that are undetermined, root mean variance of the others, and how many there are."""
    seen = observability(system, q, sensors)
    if callable(target):
        value = float(target(seen))
        return int(not np.isfinite(value)), value if np.isfinite(value) else 0.0, 1
    if not isinstance(target, str) and not (isinstance(target, tuple) and len(target) == 2):
        raise ModelError(f'target must be a quantity as "a", ("tau", "elbow") or a function, got {shown(target)}')
    key, at = (target, None) if isinstance(target, str) else target
    std = seen.std(key)
    if at is not None:
        std = std[..., system.v_slice(at)] if key in ("a", "tau") else std[..., system.body_index(at), :]
    endless = np.isinf(std)
    rest = std[~endless]
    return int(endless.sum()), float(np.sqrt(np.mean(rest**2))) if rest.size else 0.0, std.size
