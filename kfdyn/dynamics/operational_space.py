"""Operational space compliance: the covariance of the co-state, seen at task frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.dynamics.solving.forest import DENSE, States
from kfdyn.dynamics.solving.kinds import own_way
from kfdyn.dynamics.solving.solver import Solver
from kfdyn.errors import ModelError, shown
from kfdyn.multibody import System, jacobian
from kfdyn.multibody.calls.arguments import expect_system
from kfdyn.multibody.calls.packed_model import Model, model_of
from kfdyn.spatial import rigid_transform


def operational_space_compliance(
    system: System, q: ArrayLike, frames: str | Sequence[str], *, out: Array | None = None
) -> Array:
    """Compliance Ω = J 𝓜⁻¹ J* of frames on any bodies, without J and without 𝓜.

    ::

        Λ⁺(k) = φ* Λ(p) φ,   Λ(k) = τ̄* Λ⁺ τ̄ + H* D⁻¹ H         roots to leaves
        Ω(f,g) = X_f* Λ(c) X_g,   X_f = ψ(c, body of f) φ(body, frame)

    with c the nearest common ancestor of the two bodies (which may be one of them, or both); frames on different
    trees do not feel each other. Force at one frame times Ω is the acceleration it causes at another.

    Parameters
    ----------
    system : System
        The robot.
    q : (..., nq)
        Configurations.
    frames : str or sequence of str
        Names of bodies or of ``system.frames``; k of them, repetition allowed.
    out : (..., 6k, 6k) array of float64, optional
        Where the answer goes, instead of a new array; returned. It may overlap arguments. After an error its numbers
        mean nothing.

    Returns
    -------
    (..., 6k, 6k) array
        Symmetric to the bit; rows [angular; linear] of each frame in turn, world orientation, at the frame's
        origin, as those of :func:`kfdyn.jacobian`.

    Raises
    ------
    SingularError
        If a hinge has no inertia to move; names the hinge.

    Notes
    -----
    O(N + k²), by a tree of the bodies that have frames or where branches with frames meet. Sources: SKO 48–50, PART
    (20)–(22) for a chain, THEORY section 4.

    Examples
    --------
    The tip of a rod along x that turns about z. It gives way to a push across the rod, where 3 kg of rod feel like
    1 kg, and not to a push along the rod or along the axis:

    >>> import numpy as np, kfdyn as kf
    >>> rod = kf.models.uniform_chain(1, mass=3.0).bodies
    >>> system = kf.System(rod, frames={"tip": kf.Frame("rod_0", position=[1.0, 0.0, 0.0])})
    >>> operational_space_compliance(system, [0.0], "tip").diagonal()[3:].round(9)
    array([0., 1., 0.])
    """
    expect_system(system)
    names = [frames] if isinstance(frames, str) else list(frames) if isinstance(frames, Iterable) else [frames]
    if not all(isinstance(name, str) for name in names):
        raise ModelError(f"frames must be names of bodies or frames of system {system.name!r}, got {shown(frames)}")
    located = [system.locate(name) for name in names]
    bodies = np.array([body for body, _, _ in located], dtype=np.int64)
    positions = np.array([position for _, _, position in located]).reshape(-1, 3)

    def explain(states: States) -> dict[str, Array]:
        own = own_way(system, "compliance_of")
        found: dict[str, Array] = _by_engine(states, bodies, positions) if own is None else own(states, names)
        return found

    of = (
        ()
        if COMPLIANCE.serving(system) is None
        else _frames(model_of(system.pattern.open_tree), system, bodies, positions)
    )
    arguments = (6 * len(bodies), *(of or (0, bodies, positions, bodies)), q)
    answer: Array = COMPLIANCE.rows(system, arguments, out, explain)
    return answer


def _frames(
    model: Model, system: System, bodies: NDArray[np.int64], positions: Array
) -> tuple[int, NDArray[np.int64], Array, NDArray[np.int64]]:
    """Return the number of kept bodies, places of frames and their offsets, and kept bodies numbered from 1.

    Kept are bodies with frames, and bodies where branches with frames meet; the others are 0.
    """
    key = bodies.tobytes() + positions.tobytes()
    found = model.placed.get(key)
    if found is not None:
        return found
    place = model.place[bodies]
    parent = model.tables["index"][:, 0].tolist()
    rank, branches = np.zeros(system.n_bodies + 1, np.int64), [0] * (system.n_bodies + 1)
    rank[place] = 1
    for t in range(system.n_bodies, 0, -1):
        if branches[t] > 1:
            rank[t] = 1
        if rank[t] or branches[t]:
            branches[parent[t]] += 1
    kept = np.flatnonzero(rank[1:]) + 1
    rank[kept] = np.arange(1, len(kept) + 1)
    arms = np.einsum("kji,kj->ki", model.tables["frames"][place], positions)  # the tables have turned the frames
    if len(model.placed) > 100:  # frames that somebody moves about
        model.placed.clear()
    found = model.placed[key] = (len(kept), place, np.ascontiguousarray(arms), rank)
    return found


def through_inverse(states: States, frames: Sequence[str], inverse: Array) -> Array:
    """J inverse J* (size, 6k, 6k) of frames; O(nv³)."""
    J = np.concatenate([jacobian(states.system, states["q"], name) for name in frames], axis=-2)
    Omega = J @ inverse @ np.swapaxes(J, -1, -2)
    return np.asarray(0.5 * (Omega + np.swapaxes(Omega, -1, -2)))


def _by_engine(states: States, bodies: NDArray[np.int64], positions: Array) -> dict[str, Array]:
    """Ω(f, g) = φ*(f) cov(λ(f), λ(g)) φ(g), by the generic smoother on the assembled forest: (size, 6 k, 6 k)."""
    from kfdyn.estimation import Covariances

    n, k = states.system.n_bodies, len(bodies)
    out = np.zeros((states.size, k, 6, k, 6))

    def work(part: slice) -> None:
        costate = Covariances(states.forest(part).ss).costate
        rotation = states.link_terms(part).rotation[:, bodies]
        shift = rigid_transform(np.einsum("bfij,fj->bfi", rotation, positions))
        for b, phi in enumerate(shift):
            for f in range(k):
                for g in range(f + 1):
                    middle = costate.block(b * n + bodies[f], b * n + bodies[g])
                    out[part.start + b, f, :, g] = phi[f].T @ middle @ phi[g]

    states.in_parts(work)
    Omega = out.reshape(states.size, 6 * k, 6 * k)
    lower = np.tri(6 * k, dtype=bool)
    return {"the compliance": np.where(lower, Omega, Omega.swapaxes(1, 2))}


COMPLIANCE = Solver(
    "operational_space_compliance",
    "kfdyn.dynamics.recursions.compliance",
    "COMPLIANCE",
    coupled="kfdyn.dynamics.recursions.coupled.geared_control",
    most=DENSE,
)
