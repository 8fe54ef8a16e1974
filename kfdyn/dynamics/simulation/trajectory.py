"""Trajectory: a simulated motion, with its energy, its momentum, and how far they drifted."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kfdyn.multibody import System

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What :func:`simulate` returns; time is the first axis, a batch of motions the next ones.

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
        """Largest |energy drift| of all times and motions, against the largest kinetic energy."""
        size = float(self.kinetic.max(initial=0.0)) or 1.0
        return float(np.abs(self.energy_drift).max(initial=0.0)) / size

    def report(self) -> str:
        """Say in a few lines what was simulated and what drifted.

        Examples
        --------
        >>> from kfdyn.multibody.models import pendulum
        >>> from kfdyn.dynamics.simulation.simulate import simulate
        >>> print(simulate(pendulum(), [1.0], [0.0], [0.0, 0.5, 1.0], substeps=100).report())
        pendulum: 1 s by rk4, 200 steps
        energy drift    6.5e-11 of the largest kinetic energy
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
        return (
            f"{what}\nenergy drift    {self.worst_energy_drift:.1e} of the largest kinetic energy"
            f"\nmomentum change {angular:.1e} kg m²/s, {linear:.1e} kg m/s, {meaning}"
        )

    @property
    def _is_held(self) -> bool:
        """Whether some root hinge, or a loop, passes forces of the world on to what moved."""
        tree = self.system.open_tree  # of bodies that bend, too
        roots = (body.hinge for body, parent in zip(tree.bodies, tree.parent) if parent < 0)
        held = any(None in (loop.frame_a, loop.frame_b) for loop in self.system.loops)
        return held or any(hinge.nv < 6 for hinge in roots)

    def __repr__(self) -> str:
        return f"Trajectory({self.report()})"
