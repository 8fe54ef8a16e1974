"""What is read off an outward sweep along a frame's path to the root: its pose, motion and Jacobian.

``layout.order`` is the path; ``rotation`` (3,3) and ``position`` (3,) are those of the frame in the last body of it.
"""

import numpy as np

from kfdyn._kernels.vectors import keep
from kfdyn.multibody._kernels.facts import facts_of, get3, get9, pointer, set3, set9
from kfdyn.multibody._kernels.outward import NONE, UNTURNED, outward_body
from kfdyn.multibody._kernels.vectors import add, apply, compose, cross, inner, jit, scale, sub


@jit
def frame_pose(layout, rotation, position, q, R_out, p_out):
    """Pose of the frame: R_out (batch,3,3), p_out (batch,3)."""
    facts, H = facts_of(layout), np.empty(6 * layout.armature.size)
    turned, at = get9(pointer(rotation, 0), 0), get3(pointer(position, 0), 0)
    for b in range(len(q)):
        row = pointer(q, b * facts.nq)
        R, x = UNTURNED, NONE
        for t in range(facts.steps):
            R, x, _, _, _, _ = outward_body(facts, facts.order[t], row, row, R, x, NONE, NONE, pointer(H, 0))
        set9(pointer(R_out, 9 * b), 0, compose(R, turned))
        set3(pointer(p_out, 3 * b), 0, add(x, apply(R, at)))
    keep(H)


@jit
def frame_motion(layout, position, q, v, a, V_out, A_out):
    """Velocity and classical acceleration (batch,6): alpha(k) = phi* alpha(p) + H* beta-dot + eta (R86 5.4-5.5)."""
    facts, H = facts_of(layout), np.empty(6 * layout.armature.size)
    at = get3(pointer(position, 0), 0)
    for b in range(len(q)):
        _move_frame(
            facts, at, pointer(q, b * facts.nq), pointer(v, b * facts.nv), pointer(a, b * facts.nv), pointer(H, 0),
            pointer(V_out, 6 * b), pointer(A_out, 6 * b),
        )  # fmt: skip
    keep(H)


@inner
def _move_frame(facts, at, q, v, a, H, V_out, A_out):
    R, x, omega, velocity, alpha, acc = UNTURNED, NONE, NONE, NONE, NONE, NONE
    for t in range(facts.steps):
        k, origin = facts.order[t], x
        R, x, omega, velocity, eta, eta_v = outward_body(facts, k, q, v, R, x, omega, velocity, H)
        acc = add(add(acc, eta_v), cross(alpha, sub(x, origin)))
        alpha = add(alpha, eta)
        for i in range(facts.v_start[k], facts.v_start[k + 1]):
            alpha = add(alpha, scale(a[i], get3(H, 6 * i)))
            acc = add(acc, scale(a[i], get3(H, 6 * i + 3)))
    r = apply(R, at)
    rate = cross(omega, r)
    set3(V_out, 0, omega)
    set3(V_out, 3, add(velocity, rate))
    set3(A_out, 0, alpha)
    set3(A_out, 3, add(add(acc, cross(alpha, r)), cross(omega, rate)))
