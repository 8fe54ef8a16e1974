"""The door to inverse dynamics."""

from numba import njit, types

from kfdyn.dynamics._kernels.doors.arguments import BLOCK, IN, LANES, ROWS, VECTORS, finite, fit, flat, part, sound
from kfdyn.dynamics._kernels.doors.table import layout_at
from kfdyn.dynamics._kernels.fused.inverse import inverse_dynamics
from kfdyn.estimation._kernels.sizes import ORDERED_SWEEP

SIGNATURE = types.boolean(types.intp, IN, IN, IN, IN, IN, *ROWS, VECTORS)


@njit(**ORDERED_SWEEP)
def inverse(model, q, v, acceleration, forces, gravity, first, last, rows, tau):
    """tau (rows nv,); arguments as in forward dynamics, and ``acceleration`` may be empty, too."""
    layout = layout_at(model)
    n, nq, nv = layout.parent.size, layout.q_start[-1], layout.v_start[-1]
    if not (q.size == rows * nq and v.size == tau.size == rows * nv and fit(forces, gravity, 6 * n, rows)):
        return False
    if acceleration.size != 0 and acceleration.size != tau.size:
        return False
    q_all, v_all, a_all, f_all, g_all = flat(q), flat(v), flat(acceleration), flat(forces), flat(gravity)
    for at in range(first, last, BLOCK):
        end = min(at + BLOCK, last)
        own_q, own_v, own_a = part(q_all, nq, at, end), part(v_all, nv, at, end), part(a_all, nv, at, end)
        f, g = part(f_all, 6 * n, at, end), part(g_all, 3, at, end)
        if not (sound(layout, own_q) and finite(own_v) and finite(own_a) and finite(f) and finite(g)):
            return False
        inverse_dynamics(LANES, layout, own_q, own_v, own_a, f, g, 0, end - at, tau[at * nv : end * nv])
    return True
