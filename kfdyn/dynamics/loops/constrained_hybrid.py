"""Hybrid dynamics with couplings or loops: what is prescribed is one more constraint."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.dynamics.bias import bias_forces
from kfdyn.dynamics.mass_matrix import mass_matrix
from kfdyn.dynamics.solving.forest import States, hinges_without_inertia, moved_by
from kfdyn.errors import ModelError, SingularError
from kfdyn.multibody.calls.arguments import expect_finite
from kfdyn.multibody.loops.closure import CONSISTENT, Ranked, column_units, row_units
from kfdyn.multibody.loops.loop_tables import loop_readings

Mask = NDArray[np.bool_]


def hybrid_of(states: States, mask: Mask) -> dict[str, Array]:
    """With couplings or loops, dense and state by state, (size, nv) each: what is prescribed is one more constraint."""
    system, base = states.system, states.system.without_loops
    here, rate, force, g = states.part(slice(None))
    M, c = mass_matrix(base, here), bias_forces(base, here, rate, force, g)
    tau_out, a_out, free = np.array(states["tau"]), np.array(states["a"]), ~mask
    read = loop_readings(system, here, rate)
    J, drift, row, column = read.J, read.drift, row_units(system), column_units(system, here, read)
    for b in range(states.size):
        wanted = -drift[b] - J[b][:, mask] @ a_out[b, mask]
        rows = Ranked.of(J[b : b + 1, :, free], row, column[b : b + 1, free])
        a_free, N = rows.solve(wanted[None])[0], rows.free()[0]
        left = J[b][:, free] @ a_free - wanted
        if np.abs(left / row).max(initial=0.0) > CONSISTENT * (1 + np.abs(wanted / row).max(initial=0.0)):
            raise ModelError(
                f"system {system.name!r}: the loops do not allow what is prescribed, by {np.abs(left).max():.3g} "
                "(m/s², rad/s²); prescribe fewer dofs, or accelerations that the loops have"
            )
        rest = states["tau"][b, free] - c[b, free] - M[b][np.ix_(free, mask)] @ a_out[b, mask]
        inside = N.T @ M[b][np.ix_(free, free)] @ N
        unit = np.sqrt(np.diag(inside))
        if N.shape[1] and not (unit.all() and np.linalg.cond(inside / np.outer(unit, unit)) < 1e15):
            raise _without_inertia(states, free, b, unit)
        a_free = a_free + N @ np.linalg.solve(inside, N.T @ (rest - M[b][np.ix_(free, free)] @ a_free))
        a_out[b, free] = a_free
        balance = expect_finite(system, M[b] @ a_out[b] + c[b], "tau", **states.arrays)
        f = rows.forces((balance[free] - states["tau"][b, free])[None])[0]
        tau_out[b, mask] = balance[mask] - (J[b].T @ f)[mask]
    return {"tau": tau_out, "the acceleration": a_out}


def _without_inertia(states: States, free: Mask, b: int, unit: Array) -> SingularError:
    """State b has free coordinates that move nothing, in words; without loops ``unit`` is 0 where they carry none."""
    states.expect_invertible(free)  # it may know which hinges do it
    own = np.flatnonzero(free)
    idle = own[unit == 0] if (unit == 0).any() else own
    return hinges_without_inertia(states.system, moved_by(states.system, idle), states.place(b))
