"""scipy's adaptive solvers on the configuration manifold."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.dynamics.simulation.equation import Motion
from kfdyn.errors import KfdynError
from kfdyn.multibody import System
from kfdyn.multibody.parts.hinge import Coordinates
from kfdyn.spatial import quaternion_rate, quaternion_to_matrix

Solver = Literal["RK45", "RK23", "DOP853", "Radau", "BDF", "LSODA"]


def solve_adaptively(
    motion: Motion,
    q: Array,
    v: Array,
    t: Array,
    method: Solver,
    rtol: float,
    atol: float,
    advance: Callable[[float], None],
) -> tuple[Array, Array, Array, int]:
    """March one motion with ``scipy.integrate.solve_ivp``: q (nt, nq), v (nt, nv), work (nt,), evaluations.

    The solver's state is (q, v, work) with q̇ as :func:`rates` gives it. The exact flow keeps a quaternion's
    length, so that a solver leaves it within its tolerance; it is divided out at every evaluation and
    in the result. A state of constant meaning lets multistep solvers keep their history.
    """
    from scipy.integrate import solve_ivp

    system, nq, nv = motion.system, motion.system.nq, motion.system.nv
    rate, unit = rates(system), normalised(system)
    reached = float(t[0])

    def derivative(time: float, y: Array) -> Array:
        nonlocal reached
        reached = time
        here, u = unit(y[:nq]), y[nq : nq + nv]
        a, power = motion.acceleration(time, here, u)
        advance(time)
        return np.concatenate([rate(here, u), a, [power]])

    start = np.concatenate([q, v, [0.0]])
    if t.size == 1:  # no time passes, and scipy would give a list
        return unit(q[None]), v[None].copy(), np.zeros(1), 0
    solved = solve_ivp(derivative, (t[0], t[-1]), start, method, t_eval=t, rtol=rtol, atol=atol)
    if not solved.success:
        raise KfdynError(
            f"{method} gave up at t = {reached:.6g} s on system {system.name!r}: {solved.message} "
            "Loosen rtol and atol, or take 'Radau' or 'implicit' for a stiff motion"
        )
    y = solved.y.T
    return unit(y[:, :nq]), y[:, nq : nq + nv], y[:, -1], int(solved.nfev)


@lru_cache(maxsize=16)
def rates(system: System) -> Callable[[Array, Array], Array]:
    """Return the function q̇(q, v) (..., nq) of states.

    v itself for screws, ½ e∘[ω, 0] for a quaternion e, R(e) u for a position, with [ω; u] = H* β.

    Examples
    --------
    >>> from kfdyn.multibody import models
    >>> flyer = models.free_flyer()
    >>> rates(flyer)(flyer.neutral(), np.eye(20)[0])[:7]
    array([0. , 0. , 0. , 0.5, 0. , 0. , 0. ])
    """
    turned = _turned(system)
    posed = np.array([is_pose for is_pose, _, _, _ in turned], dtype=bool)
    of_q, of_v = np.ones(system.nq, dtype=bool), np.ones(system.nv, dtype=bool)
    hinge_map = np.zeros((len(turned), 6, system.nv))  # [ω; u] = H* β of the turned hinges
    for i, (_, own_q, own_v, screws) in enumerate(turned):
        of_q[own_q], of_v[own_v], hinge_map[i, :, own_v] = False, False, screws.T
    quaternion = quaternions(system)
    position = np.array([own_q.start for is_pose, own_q, _, _ in turned if is_pose], int)[:, None] + np.arange(3)

    def rate(q: Array, v: Array) -> Array:
        out = np.empty(q.shape)
        out[..., of_q] = v[..., of_v]
        if turned:
            twist, e = np.einsum("kij,...j->...ki", hinge_map, v), q[..., quaternion]
            out[..., quaternion] = quaternion_rate(e, twist[..., :3])
            turn = quaternion_to_matrix(e[..., posed, :])
            out[..., position] = np.einsum("...kij,...kj->...ki", turn, twist[..., posed, 3:])
        return out

    return rate


@lru_cache(maxsize=16)
def normalised(system: System) -> Callable[[Array], Array]:
    """Return the function that divides the quaternions of q (..., nq) by their lengths."""
    columns = quaternions(system)

    def unit(q: Array) -> Array:
        out = q.copy()
        if len(columns):
            e = q[..., columns]
            out[..., columns] = e / np.sqrt((e**2).sum(-1, keepdims=True))
        return out

    return unit


@lru_cache(maxsize=16)
def quaternions(system: System) -> NDArray[np.int64]:
    """Return where the quaternions are in q, (k, 4)."""
    ends = np.array([own_q.stop for _, own_q, _, _ in _turned(system)], np.int64)
    return ends[:, None] + np.arange(-4, 0)


def _turned(system: System) -> list[tuple[bool, slice, slice, Array]]:
    """Hinges with quaternions: whether with a position, where they are in q and in v, and their screws (m, 6)."""
    layout = system.open_tree.layout
    found = []
    for k, name in enumerate(system.hinge_names):
        kind = layout.coordinates[k]
        if kind != Coordinates.SCREWS:
            screws = layout.screws[layout.v_start[k] : layout.v_start[k + 1]]
            found.append((kind == Coordinates.POSE, system.q_slice(name), system.v_slice(name), screws))
    return found
