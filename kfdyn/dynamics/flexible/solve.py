"""Dynamics of a flexible system by compiled sweeps; where these have no answer, by the engine: nodes of 6 + modes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.dynamics.flexible.assembly import FlexibleForest, attached_forces, flexible_forest
from kfdyn.dynamics.inverse import expect_all_actuated
from kfdyn.dynamics.operational_space import through_inverse
from kfdyn.dynamics.solving.forest import States, expect_method, told_place
from kfdyn.errors import SingularError
from kfdyn.estimation import Operators, bryson_frazier, innovations_factor, kalman_filter
from kfdyn.multibody import FlexibleSystem
from kfdyn.multibody.calls.arguments import batch
from kfdyn.multibody.calls.kernel import FINE, Kernel
from kfdyn.multibody.calls.overflow import expect_finite
from kfdyn.multibody.flexible.packed_flexible import flexible_model_of
from kfdyn.multibody.kinds import expect_rigid


def _kernel(module: str, name: str) -> Kernel:
    return Kernel(f"kfdyn.dynamics.recursions.flexible.{module}", name, model=flexible_model_of)


FLEXIBLE_FORWARD = _kernel("flexible_filter", "FLEXIBLE_FORWARD")
FLEXIBLE_INVERSE = _kernel("flexible_inverse", "FLEXIBLE_INVERSE")
FLEXIBLE_HYBRID = _kernel("flexible_hybrid", "FLEXIBLE_HYBRID")


def forward_dynamics(
    system: FlexibleSystem,
    q: ArrayLike,
    v: ArrayLike | None,
    tau: ArrayLike,
    external_forces: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
    method: str = "filter",
) -> Array:
    """Accelerations (..., nv) of hinges and modes; elastic forces are the system's own and not part of tau.

    "filter" is the compiled sweep, "engine" the generic filter on the assembled model.
    """
    torque = system.checked(tau, system.nv, "tau")
    if method == "filter":
        a = _swept(system, q, v, torque, external_forces, gravity)
        if a is not None:
            return a
    forest = _forest(system, q, v, external_forces, gravity, torque)
    with _named(forest):
        filt = kalman_filter(forest.ss, forest.stack(torque))
    return forest.by_dof(bryson_frazier(forest.ss, filt, covariances=False).a)


def _swept(
    system: FlexibleSystem,
    q: ArrayLike,
    v: ArrayLike | None,
    tau: Array,
    external_forces: ArrayLike | None,
    gravity: ArrayLike | None,
) -> Array | None:
    """Accelerations by the compiled sweep; None where it has no answer, so that the engine finds the words."""
    answers = _run(FLEXIBLE_FORWARD, 1, system, (), q, v, external_forces, gravity, tau=tau)
    return None if answers is None else answers[0]


def _run(
    entry: Kernel,
    results: int,
    system: FlexibleSystem,
    parameters: tuple[NDArray[np.int64], ...],
    q: ArrayLike,
    v: ArrayLike | None,
    external_forces: ArrayLike | None,
    gravity: ArrayLike | None,
    **dofs: Array | None,
) -> tuple[Array, ...] | None:
    """Answers (..., nv) of a compiled sweep that is given q, v, these numbers of dofs, forces and gravity."""
    if system.noise is not None and _mixed(system, system.noise):
        return None
    given = {"q": (system.checked(q, system.nq, "q"), 1)}
    given["v"] = (np.zeros(system.nv) if v is None else system.checked(v, system.nv, "v"), 1)
    given |= {name: (x, 1) for name, x in dofs.items() if x is not None}
    g = system.gravity if gravity is None else np.asarray(gravity, dtype=float)
    if g.shape != (3,):
        given["gravity"] = (g, 1)
    if external_forces is not None:
        force = attached_forces(system, external_forces)
        rest = np.zeros((*force.shape[:-2], system.tree.n_bodies - force.shape[-2], 6))
        given["external_forces"] = (np.concatenate([force, rest], axis=-2), 2)
    lead, arrays = batch(system, **given)  # type: ignore[arg-type]
    by_name = dict(zip(given, arrays))
    rows = [by_name.get(name) for name in ("q", "v", *dofs, "external_forces")]
    size = math.prod(lead)
    out = tuple(np.empty((size, system.nv)) for _ in range(results))
    fine = entry(system, size, *parameters, *rows, by_name.get("gravity", g), *out)  # type: ignore[arg-type]
    return tuple(x.reshape(*lead, system.nv) for x in out) if fine == FINE else None


def _mixed(system: FlexibleSystem, noise: Array) -> bool:
    """Whether noise couples dofs of one hinge, or a hinge with modes, which the sweep does not take."""
    hinges = ~system.elastic
    off = noise - np.diag(np.diag(noise))
    return bool(off[hinges].any() or off[:, hinges].any())


def bias_forces(
    system: FlexibleSystem,
    q: ArrayLike,
    v: ArrayLike | None,
    a: None = None,
    external_forces: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
) -> Array:
    """c (..., nv) with 𝓜a + c = tau: Hφ(ξ + Qφ*η), elastic forces among them."""
    return _pushed(system, q, v, None, external_forces, gravity)


def inverse_dynamics(
    system: FlexibleSystem,
    q: ArrayLike,
    v: ArrayLike | None,
    a: ArrayLike | None,
    external_forces: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
) -> Array:
    """tau (..., nv) that gives the accelerations: α = φ*(H*a + η), x = φ(Qα + ξ), T = Hx + Ra (Newton and Euler)."""
    return _pushed(system, q, v, None if a is None else system.checked(a, system.nv, "a"), external_forces, gravity)


def _pushed(
    system: FlexibleSystem,
    q: ArrayLike,
    v: ArrayLike | None,
    a: Array | None,
    external_forces: ArrayLike | None,
    gravity: ArrayLike | None,
) -> Array:
    """Forces by the compiled sweep, else by the engine's operators; without ``a`` that of a = 0."""
    answers = _run(FLEXIBLE_INVERSE, 1, system, (), q, v, external_forces, gravity, a=a)
    return inverse_by_engine(system, q, v, a, external_forces, gravity) if answers is None else answers[0]


def inverse_by_engine(
    system: FlexibleSystem,
    q: ArrayLike,
    v: ArrayLike | None,
    a: Array | None,
    external_forces: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
) -> Array:
    """The same on the assembled model: it finds the words where the sweep has no answer."""
    forest = _forest(system, q, v, external_forces, gravity, a)
    ss, op = forest.ss, Operators(forest.ss)
    given = forest.stack(np.zeros(system.nv) if a is None else a)
    alpha = op.phi.backward(ss.eta + op.H.backward(given))
    tau = op.H.forward(op.phi.forward(op.Q.forward(alpha) + ss.xi)) + op.R.forward(given)
    of = {"q": q, "v": v, "a": a, "external_forces": external_forces, "gravity": gravity}
    return expect_finite(system, forest.by_dof(np.asarray(tau)), "tau", **of)  # type: ignore[arg-type]


def mass_matrix(system: FlexibleSystem, q: ArrayLike) -> Array:
    """𝓜 = HφQφ*H* + R, (..., nv, nv): what unit accelerations alone ask for."""
    here = system.checked(q, system.nq, "q")
    columns = _pushed(system.slack, here[..., None, :], None, np.eye(system.nv), None, np.zeros(3))
    return 0.5 * (columns + np.swapaxes(columns, -1, -2))


def mass_matrix_inverse(system: FlexibleSystem, q: ArrayLike) -> Array:
    """𝓜⁻¹, (..., nv, nv): what unit forces alone do, by the sweep; else from the innovations factor."""
    here = system.checked(q, system.nq, "q")
    columns = _swept(system.slack, here[..., None, :], None, np.eye(system.nv), None, np.zeros(3))
    if columns is not None:
        return 0.5 * (columns + np.swapaxes(columns, -1, -2))
    forest = _forest(system, q, None, None, np.zeros(3))
    with _named(forest):
        factor = innovations_factor(forest.ss)
    return _square(forest, factor.solve(_units(forest)))


def forward_dynamics_by(
    system: FlexibleSystem,
    q: ArrayLike,
    v: ArrayLike | None,
    tau: ArrayLike,
    external_forces: ArrayLike | None,
    gravity: ArrayLike | None,
    method: str,
) -> Array:
    """Accelerations (..., nv) by the generic filter on the assembled model."""
    expect_method(method, ("filter", "engine"), "forward_dynamics of a flexible system")
    return forward_dynamics(system, q, v, tau, external_forces, gravity, method)


def inverse_dynamics_by(
    system: FlexibleSystem,
    q: ArrayLike,
    v: ArrayLike | None,
    a: ArrayLike | None,
    external_forces: ArrayLike | None,
    gravity: ArrayLike | None,
    method: str,
    actuated: ArrayLike | None,
) -> Array:
    """Generalised forces (..., nv): there is one way to them."""
    expect_all_actuated(actuated)
    return inverse_dynamics(system, q, v, a, external_forces, gravity)


def mass_matrix_by(system: FlexibleSystem, q: ArrayLike, method: str) -> Array:
    """𝓜 (..., nv, nv): there is one way to it."""
    return mass_matrix(system, q)


def mass_matrix_inverse_by(system: FlexibleSystem, q: ArrayLike, method: str) -> Array:
    """𝓜⁻¹ (..., nv, nv): there is one way to it."""
    return mass_matrix_inverse(system, q)


def mass_matrix_sparsity(system: FlexibleSystem) -> NoReturn:
    """Refuse it: modes are related to everything outboard."""
    expect_rigid(system, "mass_matrix_sparsity")
    raise AssertionError


def compliance_of(states: States, frames: Sequence[str]) -> dict[str, Array]:
    """J 𝓜⁻¹ J* (size, 6k, 6k) of frames."""
    inverse = mass_matrix_inverse(states.system, states["q"])  # type: ignore[arg-type]
    return {"the compliance": through_inverse(states, frames, inverse)}


def singular_node(system: FlexibleSystem, node: int, output: int, where: tuple[int, ...]) -> SingularError:
    """Which hinge or mode has nothing to move."""
    return SingularError(
        f"flexible system {system.name!r}{told_place(where)}: hinge {system.hinge_names[node]!r}, or a mode of the "
        "body that it carries, moves no mass; give a body a mass, or the hinge an armature",
        node,
        output,
    )


def hybrid_dynamics(
    system: FlexibleSystem,
    q: ArrayLike,
    v: ArrayLike | None,
    tau: ArrayLike,
    a: ArrayLike,
    prescribed: NDArray[np.bool_],
    external_forces: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """All of tau and of a where some of each are given: hinges prescribed and modes free is the usual manipulation."""
    mask = np.asarray(prescribed, dtype=bool)
    torque = system.checked(np.where(mask, 0.0, tau), system.nv, "tau")
    rate = system.checked(np.where(mask, a, 0.0), system.nv, "a")
    answers = _run(
        FLEXIBLE_HYBRID, 2, system, (mask.astype(np.int64),), q, v, external_forces, gravity, tau=torque, a=rate
    )
    if answers is not None:
        return answers[0], answers[1]
    return hybrid_by_engine(system, q, v, torque, rate, mask, external_forces, gravity)


def hybrid_by_engine(
    system: FlexibleSystem,
    q: ArrayLike,
    v: ArrayLike | None,
    torque: Array,
    rate: Array,
    mask: NDArray[np.bool_],
    external_forces: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """The same on the assembled model, given zeros where nothing is known."""
    forest = _forest(system, q, v, external_forces, gravity, torque + rate)
    op, given = Operators(forest.ss), forest.stack(rate)
    T = forest.stack(np.where(mask, np.nan, torque)) - op.R.forward(given)  # R_fp a_p, where noise couples them
    with _named(forest):
        filt = kalman_filter(forest.ss, T, eta=forest.ss.eta + op.H.backward(given))
    smooth = bryson_frazier(forest.ss, filt, covariances=False)
    every = given + smooth.a
    force = forest.by_dof(op.H.forward(smooth.x.flat) + op.R.forward(every))
    return np.where(mask, force, torque), forest.by_dof(every)


def _forest(
    system: FlexibleSystem,
    q: ArrayLike,
    v: ArrayLike | None,
    external_forces: ArrayLike | None,
    gravity: ArrayLike | None,
    other: Array | None = None,
) -> FlexibleForest:
    """The forest of states, q broadcast to the leading axes of what else is given."""
    here = system.checked(q, system.nq, "q")
    if other is not None:
        here = np.broadcast_to(here, (*np.broadcast_shapes(here.shape[:-1], other.shape[:-1]), system.nq))
    return finite_forest(system, here, v, gravity, external_forces)


def finite_forest(
    system: FlexibleSystem,
    q: ArrayLike,
    v: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
    external_forces: ArrayLike | None = None,
    named: bool = False,
) -> FlexibleForest:
    """The forest of states, refused where a force or an acceleration in it is more than a double."""
    with np.errstate(over="ignore", invalid="ignore"):
        forest = flexible_forest(system, q, v, gravity, external_forces, named)
    for bias in (forest.ss.xi, forest.ss.eta):
        expect_finite(system, bias, "a force or an acceleration", q=q, v=v, external_forces=external_forces)  # type: ignore[arg-type]
    return forest


def _units(forest: FlexibleForest) -> Array:
    """Unit vector i in every state at once, (nv, B nv)."""
    copies = len(forest.ss) // forest.system.n_bodies
    return np.tile(np.eye(forest.system.nv), (1, copies))


def _square(forest: FlexibleForest, columns: Array) -> Array:
    nv = forest.system.nv
    A = np.moveaxis(np.asarray(columns).reshape(nv, math.prod(forest.lead), nv), 1, 0)
    return (0.5 * (A + np.swapaxes(A, 1, 2))).reshape(*forest.lead, nv, nv)


class _named:
    """Say which hinge or mode has nothing to move, where the engine knows only a node."""

    def __init__(self, forest: FlexibleForest) -> None:
        self.system = forest.system

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, SingularError):
            raise SingularError(
                f"flexible system {self.system.name!r}: a hinge or mode moves no mass ({error}); give a body a mass, "
                "or the hinge an armature"
            ) from None
