"""How a system answers the forces of its loops: Ω = J𝓜⁻¹J* and 𝓜⁻¹J*, in lanes or by the dense inverse."""

from __future__ import annotations

import numpy as np

from kfdyn.arrays import Array
from kfdyn.dynamics.mass_matrix_inverse import mass_matrix_inverse
from kfdyn.multibody import System
from kfdyn.multibody.calls.kernel import FINE, Kernel
from kfdyn.multibody.loops.loop_tables import LoopReadings, loop_tables

LOOP_RESPONSES = Kernel("kfdyn.dynamics.recursions.cut_joint", "LOOP_RESPONSES")


def responses(system: System, q: Array, read: LoopReadings) -> tuple[Array, Array, Array]:
    """Ω (B, r, r) of all rows, what its diagonal (B, r) is made of before anything cancels, and J𝓜⁻¹ (B, r, nv).

    With couplings or bodies that bend, or where a hinge has so little inertia that the lanes do not decide, by 𝓜⁻¹,
    which finds the words.
    """
    tables = loop_tables(system)
    rows, base = tables.of[0], system.without_loops
    if base.kind in LOOP_RESPONSES.variants:
        out = np.empty((len(q), rows, rows)), np.empty((len(q), rows)), np.empty((len(q), rows, system.nv))
        if LOOP_RESPONSES(base, len(q), *tables.of, q, tables.ends, *out) == FINE:
            return out
    inverse = mass_matrix_inverse(base, q)
    response = read.J @ inverse
    Omega = response @ np.swapaxes(read.J, -1, -2)
    X = base.expansion(q)
    variance = ((X @ inverse) * X).sum(-1)
    made_of = (read.made_of @ variance[..., None])[..., 0]
    return 0.5 * (Omega + np.swapaxes(Omega, -1, -2)), made_of, response
