"""Ways of flexible systems: matrices by columns, and the words for what moves nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.dynamics.assembly import Forest
from kfdyn.dynamics.flexible.assembly import flexible_forest
from kfdyn.dynamics.forward import forward_dynamics
from kfdyn.dynamics.inverse import inverse_dynamics
from kfdyn.dynamics.operational_space import through_inverse
from kfdyn.dynamics.solving.forest import States, told_place
from kfdyn.errors import SingularError
from kfdyn.multibody import FlexibleSystem
from kfdyn.multibody.calls.arguments import expect_finite


def mass_matrix(system: FlexibleSystem, q: ArrayLike) -> Array:
    """𝓜 = HφQφ*H* + R, (..., nv, nv): what unit accelerations alone ask for."""
    return _by_columns(inverse_dynamics, system, q)


def mass_matrix_inverse(system: FlexibleSystem, q: ArrayLike) -> Array:
    """𝓜⁻¹, (..., nv, nv): what unit forces alone do."""
    return _by_columns(forward_dynamics, system, q)


def _by_columns(dynamics: Callable[..., Array], system: FlexibleSystem, q: ArrayLike) -> Array:
    """Return the responses to unit vectors, side by side."""
    here = np.repeat(system.checked(q, system.nq, "q")[..., None, :], system.nv, axis=-2)
    unit = np.broadcast_to(np.eye(system.nv), (*here.shape[:-1], system.nv))
    columns = dynamics(system.slack, here, None, unit, None, np.zeros(3))
    return 0.5 * (columns + np.swapaxes(columns, -1, -2))


def compliance_of(states: States, frames: Sequence[str]) -> dict[str, Array]:
    """J 𝓜⁻¹ J* (size, 6k, 6k) of frames."""
    inverse = mass_matrix_inverse(states.system, states["q"])  # type: ignore[arg-type]
    return {"the compliance": through_inverse(states, frames, inverse)}


def singular_node(system: FlexibleSystem, node: int, output: int, where: tuple[int, ...]) -> SingularError:
    """Name the hinge or mode that has nothing to move."""
    return SingularError(
        f"flexible system {system.name!r}{told_place(where)}: hinge {system.hinge_names[node]!r}, or a mode of the "
        "body that it carries, moves no mass; give a body a mass, or the hinge an armature",
        node,
        output,
    )


def output_names(system: FlexibleSystem) -> tuple[str, ...]:
    """The outputs of ``as_estimation``: dofs, by their names."""
    return system.dof_names


def forest(
    system: FlexibleSystem,
    q: ArrayLike,
    v: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
    external_forces: ArrayLike | None = None,
    named: bool = False,
) -> Forest:
    """The forest of states, refused where a force or an acceleration in it is more than a double."""
    with np.errstate(over="ignore", invalid="ignore"):
        made = flexible_forest(system, q, v, gravity, external_forces, named)
    for bias in (made.ss.xi, made.ss.eta):
        expect_finite(system, bias, "a force or an acceleration", q=q, v=v, external_forces=external_forces)
    return made
