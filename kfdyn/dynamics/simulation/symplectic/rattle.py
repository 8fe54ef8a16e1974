"""The variational step on loops (RATTLE): symplectic as on a tree, its forces keep positions and rates on them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kfdyn.arrays import Array
from kfdyn.dynamics.loops.cut_joint import Cut
from kfdyn.dynamics.simulation.equation import Motion
from kfdyn.dynamics.simulation.integrators import Step
from kfdyn.dynamics.simulation.symplectic.variational import (
    dragged,
    force_and_power,
    generalised_force,
    lagrangian,
    size_of_forces,
    solve_mass,
    transport_of,
)
from kfdyn.errors import KfdynError, ModelError
from kfdyn.multibody import System, integrate, kinetic_energy
from kfdyn.multibody.loops.closure import CLOSED, gap_units, rows_that_hold_positions
from kfdyn.multibody.loops.loop_tables import loop_readings

MOST_SWEEPS = 60
# Velocities that are so many times those at the beginning are no answer.
FAR = 1e6
# Velocities, as part of what they are sums of, and gaps, of a radian or of the size: what is left then is rounding.
SETTLED, SHUT = 4e-15, 0.02 * CLOSED


def rattle_step(motion: Motion, t: float, h: float, q: Array, v: Array) -> Step:
    """Störmer–Verlet on loops: forces J*f of the first kick close positions at the end, those of the last close rates.

    ::

        p = 𝓜(q) v
        π = p + h/2 (F(q, u) + J(q)*f),   𝓜(q) u = J*π            kick
        q ← q ⊕ h/2 u,   then   q ← q ⊕ h/2 w,   𝓜(q) w = J*π      move, twice; f such that gap(q) = 0
        p = Ad*π + h/2 (F(q, w) + J(q)*g),   𝓜(q) v = p            kick; g such that J(q) v = 0

    The step of :func:`.variational.symplectic_step` for a constrained system: symplectic on the loops,
    symmetric, of order 2. Energy oscillates, O(h²), and does not drift.

    Parameters
    ----------
    motion, t, h, q, v
        As for :func:`kfdyn.dynamics.simulation.integrators.rk4_step`; the state is on the loops.

    Returns
    -------
    Step

    Raises
    ------
    ModelError
        If a loop holds rates that are no rates of positions: nothing is Hamiltonian then.
    KfdynError
        If the equations do not settle, because h is too long.

    Notes
    -----
    u, w and f are improved in turn, some ten times; f by Ω⁺ of the gap, so that dependent rows share their force.
    Dampers are measurement noise there as on a tree, in 𝓜 and in Ω.
    Source: Jay, "Symplectic partitioned Runge-Kutta methods for constrained Hamiltonian systems", SIAM J. Numer. Anal.
    33 (1996); Hairer, Lubich and Wanner, "Geometric Numerical Integration", VII.1.4.
    """
    system, half = motion.system, h / 2
    base = system.without_loops
    if not rows_that_hold_positions(system).all():
        loop = next(loop for loop in system.loops if not loop.holds_positions)
        raise ModelError(
            f"loop {loop.name} holds rates alone (it is non-holonomic), and there is nothing to be symplectic for; "
            "take method 'rk4', 'implicit' or 'euler'"
        )
    stiff, drag = dragged(motion, half)
    stiff_base = stiff.without_loops
    here = motion.kept.get("rattle")
    if here is None or drag is not None or not np.array_equal(here.cut.q, _flat(q)):
        here = Held.at(stiff, q)
    W = here.cut.W
    carry, p = transport_of(base), lagrangian(base, q, v).momentum
    # begin with what is known here: the force that the loops have, and the acceleration that it leads to
    drift = loop_readings(system, _flat(q), _flat(v)).drift
    free = _flat(solve_mass(stiff_base, q, generalised_force(motion, base, t, q, v)))
    f = -_times(here.inverse, here.cut.of_rates(free) + drift)
    u = w = v + half * (free + _times(W, f)).reshape(v.shape)
    # what rounding is a part of: near rest the velocities are a small difference of forces that hold each other
    sizes = size_of_forces(motion, base, t, q, v) + np.abs(here.forces(f)).reshape(v.shape)
    terms = half * solve_mass(stiff_base, q, sizes)
    unit = gap_units(system, _flat(q))
    last, most = np.inf, FAR * max(np.abs(x).max(initial=0.0) for x in (u, v, terms))
    for sweep in range(MOST_SWEEPS):
        pull = generalised_force(motion, base, t, q, u) + here.forces(f).reshape(v.shape)
        mean, _ = carry(half * u, p + half * pull)
        if drag is not None:
            mean = mean + half * motion.resistance(q, u, drag)
        u_new = solve_mass(stiff_base, q, mean)
        if drag is not None:
            pull = pull - motion.resistance(q, u_new - u, drag)
        _, p_half = carry(half * u_new, p + half * pull)
        q_half = integrate(base, q, half * u_new)
        mean, _ = carry(half * w, p_half)
        w_new = solve_mass(base, integrate(base, q_half, half * w), mean)
        q_end = integrate(base, q_half, half * w_new)
        if not max(np.abs(u_new).max(initial=0.0), np.abs(w_new).max(initial=0.0)) <= most:
            raise _too_long(system, h)
        gap = here.cut.ranked.reached(loop_readings(system, _flat(q_end)).gap)
        off = _change(base, q, (u_new - u, w_new - w), (u_new, w_new, terms))
        u, w, open_by = u_new, w_new, float(np.abs(gap / unit).max(initial=0.0))
        worst = max(off / SETTLED, open_by / SHUT)
        if worst <= 1.0 or (worst >= 0.5 * last and off <= 100 * SETTLED and open_by <= CLOSED):
            break
        if not np.isfinite(worst) or (sweep > 3 and worst > 2 * last):
            raise _too_long(system, h)
        last = worst
        if open_by > SHUT:  # else 2/h² times rounding would keep the velocities from settling
            more = (-2.0 / h**2) * _times(here.inverse, gap)
            f, moved = f + more, half * _times(W, more).reshape(v.shape)
            u, w = u + moved, w + moved
    else:
        raise _too_long(system, h)
    power = motion.power(t, q, u)
    _, p_end = carry(half * w, p_half)
    force, power_end = force_and_power(motion, base, t + h, q_end, w)
    v_free = solve_mass(base, q_end, p_end + half * force)
    end = motion.kept["rattle"] = Held.at(system, q_end)
    v_end = _flat(v_free)
    for _ in range(2):  # once more for what rounding left
        v_end = v_end - end.cut.response(_times(end.inverse, end.cut.of_rates(v_end)))
    return Step(q_end, v_end.reshape(v.shape), half * (power + power_end))


class Held(NamedTuple):
    """Loops at some configurations: their rows and Ω⁺. The end of a step is where the next one begins."""

    cut: Cut
    inverse: Array

    @classmethod
    def at(cls, system: System, q: Array) -> Held:
        """At q (..., nq)."""
        cut = Cut(system, _flat(q))
        return cls(cut, cut.inverse())

    def forces(self, f: Array) -> Array:
        """J*f (B, nv)."""
        return _times(np.swapaxes(self.cut.J, -1, -2), f)


def _times(A: Array, x: Array) -> Array:
    return np.asarray((A @ x[..., None])[..., 0])


def _flat(x: Array) -> Array:
    return x.reshape(-1, x.shape[-1])


def _change(base: System, q: Array, changes: tuple[Array, ...], sizes: tuple[Array, ...]) -> float:
    """Return the change of velocities relative to the sums that they are, in the metric 𝓜."""
    change = sum(kinetic_energy(base, q, x) for x in changes)
    size = sum(kinetic_energy(base, q, x) for x in sizes)
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.sqrt(np.where(change > 0, change / size, 0.0)).max(initial=0.0))


def _too_long(system: System, h: float) -> KfdynError:
    return KfdynError(
        f"the equations of the symplectic step on the loops of system {system.name!r} do not settle at h = {h:.3g}; "
        "take a shorter step (more substeps), or method 'rk4'"
    )


symplectic_step = rattle_step
