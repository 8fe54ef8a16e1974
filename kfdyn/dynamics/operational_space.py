"""Operational space compliance: the covariance of the co-state, seen at task frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from kfdyn.dynamics.declined import answered
from kfdyn.dynamics.entries import (
    fused_operational_space_compliance,
    is_swept,
    quick_operational_space_compliance,
)
from kfdyn.dynamics.forest import States
from kfdyn.errors import ModelError, shown
from kfdyn.multibody import System
from kfdyn.multibody.arguments import expect_system
from kfdyn.multibody.results import filled
from kfdyn.spatial import rigid_transform

Array = NDArray[np.float64]


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
    if not is_swept(system):
        from kfdyn.dynamics.loops.constrained import constrained_compliance

        return filled(out, constrained_compliance(system, q, names))
    located = [system.locate(name) for name in names]
    bodies = np.array([body for body, _, _ in located], dtype=np.int64)
    positions = np.array([position for _, _, position in located]).reshape(-1, 3)
    quick = quick_operational_space_compliance(system, q, bodies, positions, out)
    if isinstance(quick, ndarray):
        return quick if out is None else out
    states = States.of(system, q)
    if quick is None:
        Omega, declined = fused_operational_space_compliance(states, bodies, positions)
    else:
        Omega, declined = quick.alone(states)

    def engine(few: States) -> dict[str, Array]:
        if system.is_tree:
            return _by_engine(few, bodies, positions)
        from kfdyn.dynamics.loops.constrained import coupled_compliance

        return {"the compliance": coupled_compliance(few, names)}

    return filled(out, answered(states, (Omega,), declined, engine)[0])


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
