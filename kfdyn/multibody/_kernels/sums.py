"""The momentum of all bodies in one outward sweep."""

import numpy as np

from kfdyn._kernels.vectors import keep
from kfdyn.multibody._kernels.facts import facts_of, get3, get9, pointer, set3, set9
from kfdyn.multibody._kernels.outward import NONE, UNTURNED, outward_body
from kfdyn.multibody._kernels.vectors import add, apply, apply_transposed, cross, inner, jit, scale, sub

#: Numbers kept for each body: orientation 9, position 3, velocity 6. Row 0 is the world, body k is in row k + 1.
_POSITION, _VELOCITY, _BODY = 9, 12, 18


@inner
def place_world(work):
    set9(work, 0, UNTURNED)
    for i in range(_POSITION, _BODY):
        work[i] = 0.0


@inner
def sweep_body(facts, k, q, v, work, H):
    """Orientation, position and velocity of body k, kept for its children."""
    up, here = _BODY * (facts.parent[k] + 1), _BODY * (k + 1)
    R, x, omega, velocity, _, _ = outward_body(
        facts, k, q, v, get9(work, up), get3(work, up + _POSITION), get3(work, up + _VELOCITY),
        get3(work, up + _VELOCITY + 3), H,
    )  # fmt: skip
    set9(work, here, R)
    set3(work, here + _POSITION, x)
    set3(work, here + _VELOCITY, omega)
    set3(work, here + _VELOCITY + 3, velocity)
    return R, x, omega, velocity


@inner
def momentum_of(facts, k, R, omega, velocity):
    """[angular; linear] momentum M(k) V(k) of a body at its origin (R86 3.2)."""
    m, r = facts.mass[k], apply(R, get3(facts.com, 3 * k))
    spin = apply(R, apply(get9(facts.J, 9 * k), apply_transposed(R, omega)))
    return add(spin, scale(m, cross(r, velocity))), scale(m, add(velocity, cross(omega, r)))


@jit
def momentum(layout, q, v, com, h):
    """Momentum (batch,6) about the mass centre ``com`` (batch,3): phi from each body's origin to it."""
    facts, work, H = facts_of(layout), np.empty(_BODY * (layout.parent.size + 1)), np.empty(6 * layout.armature.size)
    place_world(pointer(work, 0))
    for b in range(len(q)):
        angular, linear = _momentum_about(
            facts, get3(pointer(com, 3 * b), 0), pointer(q, b * facts.nq), pointer(v, b * facts.nv), pointer(work, 0),
            pointer(H, 0),
        )  # fmt: skip
        set3(pointer(h, 6 * b), 0, angular)
        set3(pointer(h, 6 * b), 3, linear)
    keep((work, H))


@inner
def _momentum_about(facts, c, q, v, work, H):
    angular, linear = NONE, NONE
    for t in range(facts.n):
        k = facts.order[t]
        R, x, omega, velocity = sweep_body(facts, k, q, v, work, H)
        h_omega, h_v = momentum_of(facts, k, R, omega, velocity)
        linear = add(linear, h_v)
        angular = add(angular, add(h_omega, cross(sub(x, c), h_v)))
    return angular, linear
