"""Systems with loops: dynamics in the coordinates of the system without them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.dynamics.forward import FORWARD
from kfdyn.dynamics.inverse import inverse_dynamics as of_every_motor
from kfdyn.dynamics.loops.coupled import by_embedding
from kfdyn.dynamics.loops.cut_joint import Cut, cut_joint
from kfdyn.dynamics.mass_matrix import mass_matrix
from kfdyn.dynamics.operational_space import through_inverse
from kfdyn.dynamics.solving.batched_cholesky import solve_positive
from kfdyn.dynamics.solving.forest import States, expect_method
from kfdyn.errors import ModelError, ShapeError, SingularError
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import expect_finite
from kfdyn.multibody.calls.kernel import Kernel, flattened, unanswered
from kfdyn.multibody.kinds import expect_loops
from kfdyn.multibody.loops.closure import Ranked, loop_slices
from kfdyn.multibody.loops.loop_tables import loop_tables

#: Accelerations, forces and ranks of a tree with loops. The loops' rows are filtered as forces and change the
#: innovations before the one scatter (THEORY section 12). Not decided are states whose rows are neither clearly
#: dependent nor clearly not, or contradict each other.
CUT_JOINT = Kernel("kfdyn.dynamics.recursions.cut_joint", "CUT_JOINT")

METHODS = ("filter", "cut", "embedding", "engine", "proximal")
# Accelerations that break a loop by more than this part of themselves are none that it can have.
CONSISTENT = 1e-6


def forward_dynamics(system: System, *given: ArrayLike | None) -> Array:
    """Accelerations (..., nv) that keep the loops closed, by cut joints."""
    return by_cut(system, given)[0]


def forward_dynamics_by(system: System, given: tuple[Any, ...], method: str) -> Array:
    """The same by another way; "engine" is "embedding"."""
    expect_method(method, METHODS, "forward_dynamics of a system with loops")
    if method == "cut":
        return forward_dynamics(system, *given)
    states = FORWARD.bound(system, given)
    if method == "proximal":
        from kfdyn.dynamics.loops.proximal import proximal_forward_dynamics

        a, _ = proximal_forward_dynamics(system, states)
    else:
        a = by_embedding(system, states)
    return states.shaped(a)


def by_cut(system: System, given: tuple[Any, ...], least_norm: bool = False) -> tuple[Array, Array]:
    """Accelerations (..., nv) and forces (..., Σr): in lanes where the rows' rank is plain to see, else with its rank.

    ``given`` is what forward dynamics takes. Of dependent rows the lanes give some forces; ``least_norm`` asks for the
    least ones.
    """
    tree = system.without_loops
    if tree.kind not in CUT_JOINT.variants:
        found = cut_joint(system, *given)
        return found.a, np.concatenate(found.forces, axis=-1)
    tables = loop_tables(system)
    answers, fine = CUT_JOINT.attempt(tree, (*tables.of, *given, tables.ends, None, None))
    if answers is not None and fine and not (least_norm and (answers[2] < answers[1].shape[-1]).any()):
        return answers[0], answers[1]
    states = FORWARD.bound(tree, given)
    if answers is None:
        answers, undecided = CUT_JOINT.swept(states, tables.of, ends=tables.ends)
    else:
        answers = flattened(states, answers)
        undecided = unanswered(False, *answers)
    a, f, rank = answers
    rank[undecided] = np.nan  # answers that overflow are none
    left = np.flatnonzero(~(rank >= (f.shape[-1] if least_norm else 0)))  # NaN is not, either
    if left.size:
        which: Any = left if tables.ends.ndim == 2 else slice(None)  # anchors are those of the whole batch
        state, velocity, force, g = states.part(which)
        found = cut_joint(system, state, velocity, states["tau"][which], force, g)
        a[which], f[which] = found.a, np.concatenate(found.forces, axis=-1)
    return states.shaped(a), states.shaped(f)


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
    q, v, tau, external_forces, gravity
        As for :func:`kfdyn.forward_dynamics`.

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
    f = by_cut(system, (q, v, tau, external_forces, gravity), least_norm=True)[1]
    return [f[..., own] for own in loop_slices(system)]


def free_rates(system: System, q: Array) -> tuple[Array, NDArray[np.int64]]:
    """Basis X (B, nv, f) of the rates that the loops leave free, and their number (B,); spare columns are zero."""
    rows = Ranked.at(system, q)
    return rows.free(), system.nv - rows.rank


def mass_matrix_inverse(system: System, q: ArrayLike) -> Array:
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


def compliance_of(states: States, frames: Sequence[str]) -> dict[str, Array]:
    """J X(X*𝓜X)⁻¹X*J* (size, 6k, 6k) of frames; O(nv³), through the inverse mass matrix."""
    return {"the compliance": through_inverse(states, frames, mass_matrix_inverse(states.system, states["q"]))}


def inverse_dynamics(system: System, *given: ArrayLike | None) -> Array:
    """Generalised forces (..., nv) of least norm that cause accelerations which the loops allow."""
    return inverse_dynamics_by(system, given)


def inverse_dynamics_by(
    system: System, given: tuple[Any, ...], method: str = "newton_euler", actuated: ArrayLike | None = None
) -> Array:
    """The same at the coordinates that have motors."""
    q, v, a, external_forces, gravity = given
    a = np.zeros(system.nv) if a is None else a
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
    every = of_every_motor(system.without_loops, state, velocity, states["a"], force, g)
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
