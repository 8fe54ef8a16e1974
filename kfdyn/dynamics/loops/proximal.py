"""Proximal forces: a constraint is information on the co-state, given little by little.

With the world, node by node, K the rows of a contact at body k (THEORY section 12):

    Q(k) += K*K/μ,   ξ(k) −= K*(c/μ + y);   filter and smooth;   y += (c − Kλ)/μ

A loop between two bodies has a cross block that no Q(k) holds, and so have dependent rows of contacts at several; there
the same iteration runs on the rows, (Ω + μ1) Δf = c − Ja. Either way the rows are as many combinations as are
independent (``closure.Ranked``), and they are watched as the accelerations are.
"""

from __future__ import annotations

import numpy as np

from kfdyn.arrays import Array
from kfdyn.dynamics.assembly import as_forest
from kfdyn.dynamics.forward import forward_dynamics
from kfdyn.dynamics.loops.cut_joint import Cut
from kfdyn.dynamics.solving.batched_cholesky import solve_positive
from kfdyn.dynamics.solving.forest import States
from kfdyn.dynamics.solving.kinds import own_way
from kfdyn.errors import ModelError
from kfdyn.estimation import StateSpace, bryson_frazier, kalman_filter
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import expect_finite
from kfdyn.multibody.loops.closure import loop_slices
from kfdyn.multibody.loops.loop import Loop

# Softness in units of the compliance: a smaller one needs fewer sweeps but stalls at rounding/μ.
MU = 1e-4
MOST_SWEEPS = 1000
# What later sweeps may still change, as part of the accelerations; where rounding keeps them changing, what they may.
SETTLED, NOISE, LOOK_BACK = 1e-13, 1e-11, 10
# What is left of the rows, as part of what they are sums of.
KEPT = 1e-9
HARDEST = 1e-10


class _Settling:
    """Stopping rule: the ratio of successive changes tells what is left to change, and the rows must hold.

    Rows that are nearly dependent settle by μ/(μ + σ) a sweep, σ being their smallest compliance, and long before the
    accelerations do.
    """

    def __init__(self, cut: Cut, free: Array) -> None:
        self.cut, units = cut, cut.ranked
        self.changes: list[float] = []
        # what accelerations and rows are sums of: free ones (B, nv), without loops, and drift
        self.size = np.maximum(cut.magnitude(free), 1e-300)
        drift = np.abs(cut.drift / units.row).max(axis=-1, initial=0.0)
        self.rates = np.abs(units.column * free).max(axis=-1, initial=0.0) + drift

    @property
    def slow(self) -> bool:
        """True if the last sweep left more than a third of what there was to change."""
        return len(self.changes) > 1 and self.changes[-1] > 0.3 * self.changes[-2]

    def over(self, change: Array, a: Array) -> bool:
        """Tell whether no later sweep will change a (B, nv), given what this one did, and all rows hold."""
        return self._still(change) and self._holds(a)

    def _holds(self, a: Array) -> bool:
        cut, units = self.cut, self.cut.ranked
        left = np.abs(units.reached(cut.of_accelerations(a)) / units.row).max(axis=-1, initial=0.0)
        size = self.rates + np.abs(units.column * a).max(axis=-1, initial=0.0)
        return bool((left <= KEPT * size).all())

    def _still(self, change: Array) -> bool:
        """Changes are measured by √(a*𝓜a)."""
        part = self.cut.norm(change) / self.size
        self.changes.append(float(part.max(initial=0.0)))
        now, before = self.changes[-1], self.changes[-2] if len(self.changes) > 1 else np.inf
        if now == 0.0 or (now < before < np.inf and now * now / (before - now) <= SETTLED):
            return True
        return len(self.changes) > LOOK_BACK and now <= NOISE and now >= 0.9 * self.changes[-1 - LOOK_BACK]


def proximal_forward_dynamics(system: System, states: States) -> tuple[Array, Array]:
    """Accelerations (B, nv) and forces of all rows (B, Σr)."""
    state, velocity, force, g = states.part(slice(None))
    cut = Cut(system, state, velocity)
    cut.expect_consistent()
    a = forward_dynamics(cut.base, state, velocity, states["tau"], force, g)
    settling = _Settling(cut, a)
    with_the_world = all(None in (loop.frame_a, loop.frame_b) for loop in system.loops)
    if with_the_world and own_way(cut.base, "forest") is None:  # nodes are single rigid bodies
        bodies = [system.open_tree.locate(_held(loop))[0] for loop in system.loops]
        if (cut.ranked.rank == cut.drift.shape[-1]).all():
            unit = np.sqrt(np.einsum("bii->bi", cut.Omega))
            return _with_the_world(states, settling, bodies, np.eye(unit.shape[-1]) / unit[..., None])
        if len(set(bodies)) == 1:
            C, Omega = cut.independent()
            return _with_the_world(states, settling, bodies, C / np.sqrt(np.einsum("bii->bi", Omega))[..., None])
    f, mu = np.zeros_like(cut.drift), MU
    C, Omega = cut.independent()
    scale = np.sqrt(np.einsum("bii->bi", Omega))[..., None]
    C, Omega = C / scale, Omega / (scale * np.swapaxes(scale, -1, -2))
    for _ in range(MOST_SWEEPS):
        soft = Omega + mu * np.eye(C.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused, with words
            rows = C @ cut.of_accelerations(a)[..., None]
            more = -(np.swapaxes(C, -1, -2) @ solve_positive(soft, rows)[0])[..., 0]
            change = cut.response(more)
            f, a = f + more, a + change
        expect_finite(system, np.stack([change, a]), "the acceleration", **states.arrays)
        if settling.over(change, a):
            return a, f
        if settling.slow:  # the rows' own equations are small: here a harder μ costs no digits of the filter's
            mu = max(0.1 * mu, HARDEST)
    raise _stalled(system, settling.changes[-1])


def _held(loop: Loop) -> str:
    """The frame that a contact holds, or what carries it along."""
    return loop.moves_with(loop.frame_a or loop.frame_b or "")


def _with_the_world(states: States, settling: _Settling, bodies: list[int], C: Array) -> tuple[Array, Array]:
    """The same by sweeps of the engine whose process noise holds combinations C (B, k, Σr) of the contacts' rows.

    Each is of contacts at one of the ``bodies``, and has a compliance of 1.
    """
    cut, system = settling.cut, settling.cut.system
    base, size = system.open_tree, states.size
    state, velocity, force, g = states.part(slice(None))
    forest = as_forest(base, state, velocity, force, g)
    ss = forest.ss
    n = base.n_bodies
    Q = np.array(ss.Q.flat).reshape(size, n, 6, 6)
    xi = np.array(ss.xi).reshape(size, n, 6)
    rows_of = {body: np.zeros((size, C.shape[1], 6)) for body in bodies}  # on the bodies' own accelerations
    for body, loop, own in zip(bodies, system.loops, loop_slices(system)):
        forces = cut.read.forces[:, own, :6] if loop.frame_a is not None else cut.read.forces[:, own, 6:]
        rows_of[body] += C[..., own] @ forces
    at_body = list(rows_of.items())
    # rows J a + J̇v = Σ K λ + d, where d is all that is known
    zero = np.zeros((size, base.nv))
    at_rest = (C @ cut.of_accelerations(zero)[..., None])[..., 0]
    still = _costates(base, state, velocity, g)
    known = at_rest - sum((K @ still[:, body, :, None])[..., 0] for body, K in at_body)
    for body, K in at_body:
        Q[:, body] += np.swapaxes(K, -1, -2) @ K / MU
    model = StateSpace.trusted(ss.tree, ss.n, ss.m, ss.phi.flat, ss.H.flat, Q.reshape(-1), ss.R.flat, None, ss.eta)
    y = np.zeros_like(known)
    T, last = forest.stack(states["tau"]), np.zeros_like(states["tau"])
    for _ in range(MOST_SWEEPS):
        bias = xi.copy()
        for body, K in at_body:
            bias[:, body] -= (np.swapaxes(K, -1, -2) @ (-known / MU + y)[..., None])[..., 0]
        smooth = bryson_frazier(model, kalman_filter(model, T, xi=bias.reshape(-1)), covariances=False)
        a = forest.by_dof(smooth.a)
        costate = smooth.costate.flat.reshape(size, n, 6)
        rows = known + sum((K @ costate[:, body, :, None])[..., 0] for body, K in at_body)
        y = y - rows / MU
        if settling.over(a - last, a):
            return a, (np.swapaxes(C, -1, -2) @ y[..., None])[..., 0]
        last = a
    raise _stalled(system, settling.changes[-1])


def _costates(base: System, q: Array, v: Array | None, g: Array | None) -> Array:
    """Co-states λ (B, n, 6) of motion without joint accelerations: φ*η."""
    from kfdyn.estimation import Operators

    forest = as_forest(base, q, v, None, g)
    return Operators(forest.ss).phi.backward(forest.ss.eta).reshape(len(q), base.n_bodies, 6)


def _stalled(system: System, off: float) -> ModelError:
    return ModelError(
        f"the proximal iteration of system {system.name!r} does not settle ({off:.1e} of the accelerations still "
        f"changes after {MOST_SWEEPS} sweeps): the loops are near a singular configuration or contradict each other; "
        "method='cut' finds which"
    )
