"""Systems with loops: dynamics in the coordinates of the system without them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.dynamics.entries import Declined, fused_cut_joint, quick_cut_joint
from kfdyn.dynamics.forest import States, expect_method
from kfdyn.dynamics.inverse import inverse_dynamics
from kfdyn.dynamics.loops.coupled import by_embedding
from kfdyn.dynamics.loops.cut_joint import Cut, cut_joint, expect_loops
from kfdyn.dynamics.mass_matrix import mass_matrix
from kfdyn.dynamics.positive import solve_positive
from kfdyn.errors import ModelError, ShapeError, SingularError
from kfdyn.multibody import System
from kfdyn.multibody.closure import Ranked, loop_slices
from kfdyn.multibody.loop_tables import loop_tables
from kfdyn.multibody.overflow import expect_finite

Array = NDArray[np.float64]

METHODS = ("filter", "cut", "embedding", "engine", "proximal")
# Accelerations that break a loop by more than this part of themselves are none that it can have.
CONSISTENT = 1e-6


def closed_forward_dynamics(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None,
    tau: ArrayLike,
    external_forces: ArrayLike | None,
    gravity: ArrayLike | None,
    method: str,
) -> Array:
    """Accelerations (..., nv) that keep the loops closed; "filter" is "cut", "engine" is "embedding"."""
    expect_method(method, METHODS, "forward_dynamics of a system with loops")
    if method in ("filter", "cut"):
        return _by_cut(system, q, v, tau, external_forces, gravity)[0]
    states = States.of(system, q, v, external_forces, gravity, tau=tau)
    if method == "proximal":
        from kfdyn.dynamics.loops.proximal import proximal_forward_dynamics

        a, _ = proximal_forward_dynamics(system, states)
    else:
        a = by_embedding(system, states)
    return a.reshape(*states.lead, system.nv)


def _by_cut(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None,
    tau: ArrayLike,
    external_forces: ArrayLike | None,
    gravity: ArrayLike | None,
    least_norm: bool = False,
) -> tuple[Array, Array]:
    """Accelerations (..., nv) and forces (..., Σr): in lanes where the rows' rank is plain to see, else with its rank.

    Of dependent rows the lanes give some forces; ``least_norm`` asks for the least ones.
    """
    if not system.without_loops.is_tree:
        found = cut_joint(system, q, v, tau, external_forces, gravity)
        return found.a, np.concatenate(found.forces, axis=-1)
    quick = quick_cut_joint(system, q, v, tau, external_forces, gravity)
    if isinstance(quick, tuple):
        if not (least_norm and (quick[2] < quick[1].shape[-1]).any()):
            return quick[:2]
        quick = Declined(quick)
    states = States.of(system, q, v, external_forces, gravity, tau=tau)
    if quick is None:
        a, f, rank = fused_cut_joint(states)
    else:
        (a, f, rank), undecided = quick.of(states)
        rank[undecided] = np.nan
    left = np.flatnonzero(~(rank >= (f.shape[-1] if least_norm else 0)))  # NaN is not, either
    if left.size:
        which: Any = left if loop_tables(system).ends.ndim == 2 else slice(None)  # anchors are those of the whole batch
        state, velocity, force, g = states.part(which)
        found = cut_joint(system, state, velocity, states["tau"][which], force, g)
        a[which], f[which] = found.a, np.concatenate(found.forces, axis=-1)
    return a.reshape(*states.lead, a.shape[-1]), f.reshape(*states.lead, f.shape[-1])


def constraint_forces(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None,
    tau: ArrayLike,
    external_forces: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
) -> list[Array]:
    """Forces that keep the loops of a system closed: f = −Ω⁺(J a₀ + J̇v), the innovation of each loop.

    Parameters
    ----------
    system : System
        With loops or contacts.
    q : (..., nq)
        Configurations; leading axes of all arguments broadcast.
    v : (..., nv) or None
        Velocities; None is at rest.
    tau : (..., nv)
        Generalised forces.
    external_forces : (..., n_bodies, 6), optional
        [moment; force] on each body, world orientation, at the body's origin.
    gravity : (..., 3), optional
        ``system.gravity`` if not given.

    Returns
    -------
    list of (..., r) arrays
        One for each loop: its rows of [moment; force] as they act on frame_b, in the axes of frame_a, at frame_b's
        origin. With the world as frame_b it is what the robot does to the world; as frame_a, the reaction on the robot.

    Notes
    -----
    Where rows are dependent the forces are not unique, and those of least norm (in units of their deviation) are
    given. Source: SKO "cut-joint".

    Examples
    --------
    A pendulum of 2 kg hangs in a contact that carries it:

    >>> import kfdyn as kf
    >>> system = kf.models.pendulum(mass=2.0, length=1.0).with_loops([kf.Loop(None, "bob", rows=(1,))])
    >>> constraint_forces(system, [0.5 * np.pi], None, [0.0])[0].round(6)  # moment about y
    array([19.62])
    """
    expect_loops(system)
    f = _by_cut(system, q, v, tau, external_forces, gravity, least_norm=True)[1]
    return [f[..., own] for own in loop_slices(system)]


def free_rates(system: System, q: Array) -> tuple[Array, NDArray[np.int64]]:
    """Basis X (B, nv, f) of the rates that the loops leave free, and their number (B,); spare columns are zero."""
    rows = Ranked.at(system, q)
    return rows.free(), system.nv - rows.rank


def closed_mass_matrix_inverse(system: System, q: ArrayLike) -> Array:
    """X(X*𝓜X)⁻¹X* (..., nv, nv): the covariance of accelerations that the loops allow."""
    states = States.of(system, q)
    X, _ = free_rates(system, states["q"])
    Xt = np.swapaxes(X, -1, -2)
    M = Xt @ mass_matrix(system.without_loops, states["q"]) @ X
    spare = np.logical_not(np.asarray(X.any(axis=1)))
    M = M + spare[:, :, None] * np.eye(M.shape[-1])
    half, fine = solve_positive(0.5 * (M + np.swapaxes(M, -1, -2)), Xt)
    if not fine.all():
        raise SingularError(
            f"system {system.name!r}: the mass matrix of the free rates is singular, so some motion that the loops "
            "allow moves no inertia; give its bodies mass or the hinges an armature"
        )
    out = X @ half
    return (0.5 * (out + np.swapaxes(out, -1, -2))).reshape(*states.lead, system.nv, system.nv)


def closed_inverse_dynamics(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None,
    a: ArrayLike,
    external_forces: ArrayLike | None,
    gravity: ArrayLike | None,
    actuated: ArrayLike | None,
) -> Array:
    """Generalised forces (..., nv) of least norm that cause accelerations which the loops allow."""
    states = States.of(system, q, v, external_forces, gravity, a=a)
    state, velocity, force, g = states.part(slice(None))
    cut = Cut(system, state, velocity)
    with np.errstate(over="ignore", invalid="ignore"):
        rows, size = cut.of_accelerations(states["a"]), cut.magnitude(states["a"])
    expect_finite(system, rows, "the acceleration of a loop", **states.arrays)
    off = np.abs(rows / cut.scale).max(axis=-1, initial=0.0)
    if (off > CONSISTENT * size).any():
        worst = int(np.argmax(off - CONSISTENT * size))
        loop = next(
            loop.name for loop, own in zip(system.loops, loop_slices(system)) if np.abs(rows[worst, own]).max() > 0
        )
        raise ModelError(
            f"these accelerations break loop {loop} by {np.abs(rows[worst]).max():.3g} (m/s² or rad/s²); inverse "
            "dynamics wants some that the loops allow, as forward_dynamics gives"
        )
    every = inverse_dynamics(system.without_loops, state, velocity, states["a"], force, g)
    X, _ = free_rates(system, state)
    wanted = (np.swapaxes(X, -1, -2) @ every[..., None])[..., 0]
    mask = np.ones(system.nv, dtype=bool) if actuated is None else np.asarray(actuated)
    if mask.shape != (system.nv,) or mask.dtype != bool:
        raise ShapeError(f"actuated must be a mask of booleans of shape ({system.nv},), got {mask.dtype}, {mask.shape}")
    reach = np.swapaxes(X, -1, -2) * mask
    tau = (np.linalg.pinv(reach, rcond=1e-12) @ wanted[..., None])[..., 0] * mask
    missed = np.abs((reach @ tau[..., None])[..., 0] - wanted).max(initial=0.0)
    if missed > 1e-8 * np.abs(wanted).max(initial=0.0):
        raise ModelError(
            f"system {system.name!r}: the actuated coordinates cannot cause these accelerations, {missed:.3g} of "
            f"{np.abs(wanted).max():.3g} is missed; actuate more of them"
        )
    return tau.reshape(*states.lead, system.nv)
