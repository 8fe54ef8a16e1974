"""Trajectory: a simulated motion, with its energy, its momentum, and how far they drifted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kfdyn.arrays import Array
from kfdyn.errors import ShapeError
from kfdyn.multibody import System, center_of_mass

# Of the energies, in ε: what sums over some bodies and steps leave.
ROUNDING = 32 * np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The motion that :func:`simulate` returns; time is the first axis, a batch of motions the next ones.

    Indexing chooses motions of a batch: ``fan[3]``, ``fan[:10]``, ``grid[0, -1]`` are trajectories, too.

    Attributes
    ----------
    system : System
        What moved.
    t : (nt,)
        Times.
    q, v, tau : (nt, ..., nq), (nt, ..., nv), (nt, ..., nv)
        Configuration, velocity, and driving torque at those times.
    kinetic, potential : (nt, ...)
        Energies, rotors and springs included.
    work : (nt, ...)
        Work done since t[0] by torques, damping and external forces, to the order of the method.
    momentum : (nt, ..., 6)
        [angular; linear] of the bodies about the world's origin.
    method : str
        Name of the integrator.
    steps : int
        Fixed steps taken, or evaluations of the acceleration by an adaptive solver.

    Examples
    --------
    A pendulum falls from the side; at the bottom its potential energy has become kinetic energy.

    >>> import numpy as np, kfdyn as kf
    >>> fall = kf.simulate(kf.models.pendulum(), [0.5 * np.pi], [0.0], np.linspace(0, 0.6, 61))
    >>> float(np.abs(fall.kinetic + fall.potential - fall.potential[0]).max().round(6))
    0.0
    >>> fall.q.shape, fall.method, fall.steps
    ((61, 1), 'rk4', 60)

    Three of them at once, and the last one of these:

    >>> falls = kf.simulate(kf.models.pendulum(), [[0.5], [1.0], [1.5]], [0.0], np.linspace(0, 0.6, 61))
    >>> falls.q.shape, falls[-1].q.shape
    ((61, 3, 1), (61, 1))
    """

    system: System = field(repr=False)
    t: Array
    q: Array
    v: Array
    tau: Array
    kinetic: Array
    potential: Array
    work: Array
    momentum: Array
    method: str
    steps: int

    @property
    def energy(self) -> Array:
        """Kinetic and potential energy, (nt, ...)."""
        return self.kinetic + self.potential

    @property
    def energy_drift(self) -> Array:
        """Energy gained that no work accounts for, E(t) − E(0) − W(t), (nt, ...): the integrator's error."""
        return self.energy - self.energy[0] - self.work

    @property
    def momentum_drift(self) -> Array:
        """Change of the momentum, (nt, ..., 6): an error only if nothing pushes the system from outside."""
        return self.momentum - self.momentum[0]

    @property
    def worst_energy_drift(self) -> float:
        """Largest |energy drift| of all times and motions, against the largest energy exchanged.

        That is the largest of the kinetic energy, the change of the potential energy and the work. A drift that is
        within the rounding of the energies themselves is 0: of a robot at rest there is nothing else.
        """
        sizes = (self.kinetic, self.potential - self.potential[:1], self.work)
        worst, exchanged = _largest(self.energy_drift), max(map(_largest, sizes))
        return worst / exchanged if worst > self._rounding and exchanged > 0 else 0.0

    @property
    def _rounding(self) -> float:
        """Return a bound of the rounding in energies; a weight that bears on others is summed up to small heights."""
        size = _largest(self.kinetic) + _largest(self.potential) + _largest(self.work)
        if np.all(self.system.mass) and self.potential.any():  # else there is no weight
            lever = np.linalg.norm(center_of_mass(self.system, self.q[0]), axis=-1).max(initial=0.0)
            size += float(np.max(self.system.mass) * np.linalg.norm(self.system.gravity) * lever)
        return float(ROUNDING * size)

    def report(self) -> str:
        """Say in a few lines what was simulated and what drifted.

        Examples
        --------
        >>> from kfdyn.multibody.models import pendulum
        >>> from kfdyn.dynamics.simulation.simulate import simulate
        >>> print(simulate(pendulum(), [1.0], [0.0], [0.0, 0.5, 1.0], substeps=100).report())
        pendulum: 1 s by rk4, 200 steps
        energy drift    6.5e-11 of the largest energy exchanged
        momentum change 3.0e+00 kg m²/s, 3.0e+00 kg m/s, as it must: the world holds what is fixed to it
        """
        many = self.t.size and self.q.shape[1:-1]
        what = f"{self.system.name}: {self.t[-1] - self.t[0]:.6g} s by {self.method}, {self.steps} steps"
        if many:
            what += f", {int(np.prod(many))} motions"
        angular, linear = (float(np.abs(part).max(initial=0.0)) for part in np.split(self.momentum_drift, 2, axis=-1))
        meaning = (
            "as it must: the world holds what is fixed to it"
            if self._is_held
            else "an error if neither gravity nor anything else pushes from outside"
        )
        worst = self.worst_energy_drift
        drift = f"{worst:.1e} of the largest energy exchanged" if worst else "none beyond rounding"
        return f"{what}\nenergy drift    {drift}\nmomentum change {angular:.1e} kg m²/s, {linear:.1e} kg m/s, {meaning}"

    @property
    def _is_held(self) -> bool:
        """True if some root hinge, or a loop, passes forces of the world on to what moved."""
        tree = self.system.pattern.open_tree  # of bodies that bend, too
        roots = (body.hinge for body, parent in zip(tree.bodies, tree.parent) if parent < 0)
        held = any(None in (loop.frame_a, loop.frame_b) for loop in self.system.loops)
        return held or any(hinge.nv < 6 for hinge in roots)

    def __getitem__(self, which: Any) -> Trajectory:
        """Some motions of a batch; ``which`` indexes the axes between time and coordinates, by numbers and slices."""
        lead = self.q.shape[1:-1]
        every = which if isinstance(which, tuple) else (which,)
        chosen_by = (int, np.integer, slice)
        if len(every) > len(lead) or not all(isinstance(i, chosen_by) and not isinstance(i, bool) for i in every):
            motions = f"motions {lead}" if lead else "one motion"
            raise ShapeError(
                f"this trajectory is of {motions}, chosen by as many numbers or slices, got [{which!r:.60}]; times "
                "are the first axis of its arrays: take trajectory.q[i]"
            )
        names = ("q", "v", "tau", "kinetic", "potential", "work", "momentum")
        chosen = {name: getattr(self, name)[(slice(None), *every)] for name in names}
        return replace(self, system=_of_motions(self.system, lead, every), **chosen)

    def __repr__(self) -> str:
        return f"Trajectory({self.report()})"


def _largest(x: Array) -> float:
    return float(np.abs(x).max(initial=0.0))


def _of_motions(system: System, lead: tuple[int, ...], which: tuple[Any, ...]) -> System:
    """The system of some motions of a batch: contacts that each motion anchored of its own, at those alone."""
    if system.robots:
        robots: Any = system
        if len(which) < len(lead):
            return system
        found: System = robots.some(which[-1]) if isinstance(which[-1], slice) else robots[which[-1]]
        return found
    loops = []
    for loop in system.loops:
        if loop.anchor is not None and np.ndim(loop.anchor[1]) > 1:
            rotation, position = (x.reshape(*lead, *x.shape[1:])[which] for x in loop.anchor)
            if position.ndim > 1:
                rotation, position = rotation.reshape(-1, 3, 3), position.reshape(-1, 3)
            loop = loop.anchored(rotation, position)
        loops.append(loop)
    same = all(x is y for x, y in zip(loops, system.loops))
    return system if same else system.without_loops.with_loops(loops)
