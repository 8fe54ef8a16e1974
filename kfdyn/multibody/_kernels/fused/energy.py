"""Kinetic energy and mass centre: one outward sweep and a sum, several configurations side by side."""

from numba import njit

from kfdyn._kernels.sizes import size
from kfdyn._kernels.vectors import align_stack, beyond, collect, item, spread, zero
from kfdyn.multibody._kernels.fused.memory import clear, get3, get9, lanes_at, put3, real3
from kfdyn.multibody._kernels.fused.numbers import INLINED
from kfdyn.multibody._kernels.fused.outward import BODY, OMEGA, ORIENTATION, SHIFT, place_world, sweep_outward
from kfdyn.multibody._kernels.fused.plan import FIRST, KIND, MASS, MOMENT, PARENT, REVOLUTE, V_END, V, at, of
from kfdyn.multibody._kernels.fused.spatial import (
    add,
    add_cross,
    apply,
    apply_transposed,
    cross,
    dot,
    scale,
    symmetric_apply,
)


@njit(**INLINED)
def energy_room(plan, lanes):
    """How many floats :func:`mass_moment` and :func:`kinetic_energy` work in."""
    return ((plan.n + 1) * (BODY + 3) + plan.nv * 6) * lanes


@njit(**INLINED)
def mass_moment(tag, plan, q, first, last, room, out):
    """Σ m c of rows first … last into ``out``, three numbers a row: the mass centre times the mass."""
    n, nq, nv, lanes = plan.n, plan.nq, plan.nv, size(tag, 1)
    work, H = room, beyond(room, (n + 1) * BODY * lanes)
    places = beyond(H, nv * 6 * lanes)
    align_stack()
    clear(tag, places, 3)
    place_world(tag, work)
    row = first
    while row < last:
        start, step, row = lanes_at(row, first, last, lanes)
        sweep_outward(tag, plan, q, start * nq, step * nq, q, 0, 0, False, work, H)
        total = (zero(tag), zero(tag), zero(tag))
        for t in range(1, n + 1):
            x = add(get3(tag, places, 3 * at(plan, t, PARENT)), get3(tag, work, t * BODY + SHIFT))
            put3(tag, places, 3 * t, x)
            R = get9(tag, work, t * BODY + ORIENTATION)
            total = add(total, add(scale(of(plan, t, MASS), x), apply(R, real3(plan, t, FIRST))))
        for i in range(3):
            spread(tag, out, 3 * start + i, 3 * step, total[i])


@njit(**INLINED)
def kinetic_energy(tag, plan, q, v, first, last, room, out):
    """½ Σ V* M V + ½ β* R β of rows first … last (R86 3.2)."""
    n, nq, nv, lanes = plan.n, plan.nq, plan.nv, size(tag, 1)
    work, H = room, beyond(room, (n + 1) * BODY * lanes)
    speeds = beyond(H, nv * 6 * lanes)
    align_stack()
    clear(tag, speeds, 3)
    place_world(tag, work)
    row = first
    while row < last:
        start, step, row = lanes_at(row, first, last, lanes)
        sweep_outward(tag, plan, q, start * nq, step * nq, v, start * nv, step * nv, True, work, H)
        twice = zero(tag)
        for t in range(1, n + 1):
            up = at(plan, t, PARENT)
            speed = add_cross(
                get3(tag, speeds, 3 * up), get3(tag, work, up * BODY + OMEGA), get3(tag, work, t * BODY + SHIFT)
            )
            for i in range(at(plan, t, V), at(plan, t, V_END)):
                rate = collect(tag, v, start * nv + i, step * nv)
                twice = twice + item(plan.armature, i) * rate * rate
                if at(plan, t, KIND) != REVOLUTE:
                    speed = add(speed, scale(rate, get3(tag, H, 6 * i + 3)))
            put3(tag, speeds, 3 * t, speed)
            # in the body's frame: ω*Jω + v*(m v + 2 ω × m p)
            R = get9(tag, work, t * BODY + ORIENTATION)
            w, u = apply_transposed(R, get3(tag, work, t * BODY + OMEGA)), apply_transposed(R, speed)
            a, b = real3(plan, t, MOMENT), real3(plan, t, MOMENT + 3)
            spin = symmetric_apply((a[0], a[1], a[2], b[0], b[1], b[2]), w)
            push = add(scale(of(plan, t, MASS), u), scale(2.0, cross(w, real3(plan, t, FIRST))))
            twice = twice + dot(w, spin) + dot(u, push)
        spread(tag, out, start, step, 0.5 * twice)
