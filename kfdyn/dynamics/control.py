"""Controllers that use the recursions: computed torque, and operational space control without a mass matrix.

R86 section 12 names control design as the use of forward dynamics to be explored. Here the operational
space controller is one: its mass matrix, bias forces and null space all come out of a filter and a smoother.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.dynamics.forward import forward_dynamics
from kfdyn.dynamics.inverse import inverse_dynamics
from kfdyn.dynamics.operational_space import operational_space_compliance
from kfdyn.dynamics.simulation.feedback import gain_of
from kfdyn.dynamics.solving.forest import DENSE, States
from kfdyn.dynamics.solving.solver import Solver
from kfdyn.errors import ModelError, SingularError
from kfdyn.multibody import (
    Pose,
    System,
    difference,
    frame_bias_acceleration,
    frame_pose,
    frame_velocity,
    jacobian,
)
from kfdyn.multibody.calls.arguments import checked, expect_system
from kfdyn.multibody.calls.packed_model import frame_of, model_of
from kfdyn.multibody.coordinates.configuration import REACH_TOLERANCE
from kfdyn.spatial import matrix_to_rotation_vector
from kfdyn.spatial._arrays import check_rotation

_AXES = "axes must be different numbers from 0 to 5 (angular 0-2, linear 3-5)"

STILL = (0.0,) * 6
_STILL, _REACH = np.zeros(6), np.array([REACH_TOLERANCE])

# A compliance whose smallest eigenvalue is this part of its largest has lost half of all digits.
SINGULAR = 1e-8


def computed_torque(
    system: System,
    q: ArrayLike,
    v: ArrayLike,
    q_d: ArrayLike,
    v_d: ArrayLike,
    a_d: ArrayLike,
    kp: ArrayLike,
    kd: ArrayLike,
    external_forces: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
) -> Array:
    """Torque that makes the tracking error a linear oscillator: inverse dynamics of a corrected acceleration.

    ::

        τ = 𝓜 (a_d + Kd (v_d − v) + Kp (q_d ⊖ q)) + c     hence     ë + Kd ė + Kp e = 0,   e = q_d − q

    Parameters
    ----------
    system : System
        The robot.
    q, v : (..., nq), (..., nv)
        State.
    q_d, v_d, a_d : (..., nq), (..., nv), (..., nv)
        Wanted motion.
    kp, kd : scalar, (nv,) or (nv, nv)
        Gains; critical damping is kd = 2 √kp.
    external_forces, gravity
        As for :func:`kfdyn.dynamics.inverse_dynamics`.

    Returns
    -------
    (..., nv) array

    Notes
    -----
    O(N). The error is exactly linear for hinges with coordinates. At ball and free hinges q_d ⊖ q is the
    rotation vector to the wanted attitude, and v_d is taken in the body's own axes: linear for small errors.
    Source: R86 section 12 (control); the exact linearisation of R86's references 13 and 14.

    Examples
    --------
    >>> from kfdyn.multibody.models import pendulum
    >>> computed_torque(pendulum(), [0.0], [0.0], [0.1], [0.0], [0.0], kp=100.0, kd=20.0)
    array([10.])
    """
    expect_system(system)
    of: tuple[Any, ...] = (0, None, None, None)
    if COMPUTED_TORQUE.serving(system) is not None:
        of = (*_gains(kp, kd, system.nv), model_of(system.coordinates).left_inverse, _REACH)
    explain = partial(_torque_by_parts, kp=kp, kd=kd)
    answer: Array = COMPUTED_TORQUE.rows(system, (*of, q, v, q_d, v_d, a_d, external_forces, gravity), None, explain)
    return answer


def _torque_by_parts(states: States, kp: ArrayLike, kd: ArrayLike) -> dict[str, Array]:
    """The same function by function, (size, nv): for what no recursion knows, and for the words where none is."""
    system, nv = states.system, states.system.nv
    q, v, (_, _, force, gravity) = states["q"], states["v"], states.part(slice(None))
    error, rate = difference(system, q, states["q_d"]), states["v_d"] - v
    correction = _apply(kd, rate, nv, "kd") + _apply(kp, error, nv, "kp")
    return {"tau": inverse_dynamics(system, q, v, states["a_d"] + correction, force, gravity)}


def operational_space_control(
    system: System,
    q: ArrayLike,
    v: ArrayLike,
    frame: str,
    target: Pose,
    kp: ArrayLike,
    kd: ArrayLike,
    velocity: ArrayLike = STILL,
    acceleration: ArrayLike = STILL,
    posture: ArrayLike | None = None,
    axes: Sequence[int] = (0, 1, 2, 3, 4, 5),
    external_forces: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
) -> Array:
    """Torque that moves a frame as a unit mass on a spring and damper, whatever the posture does.

    ::

        α* = α_d + Kd (V_d − V) + Kp e                wanted acceleration of the frame
        a₀ = forward dynamics under the posture torque τ₀ alone
        f  = Ω^-1 (α* − J a₀ − J̇ v),   Ω = J 𝓜^-1 J*  wrench that makes up the difference
        τ  = τ₀ + J* f

    Neither 𝓜 nor c is formed: a₀ is a smoother's output and Ω its co-state covariance (THEORY section 4). Since f
    is found after τ₀ has acted, τ₀ cannot disturb the task: the dynamically consistent null space is implied.

    Parameters
    ----------
    system : System
        The robot.
    q, v : (..., nq), (..., nv)
        State.
    frame : str
        Body or frame to be moved.
    target : Pose
        Wanted rotation (..., 3, 3) and position (..., 3). The error e is [rotation vector; p_d − p].
    kp, kd : scalar, (m,) or (m, m)
        Gains on the m controlled axes.
    velocity, acceleration : (..., 6)
        Wanted velocity and classical acceleration of the frame, [angular; linear], world orientation.
    posture : (..., nv), optional
        Torque τ₀ for what the task leaves free; zero if not given.
    axes : sequence of int
        Controlled rows of [angular; linear]: ``(3, 4, 5)`` leaves the attitude free.
    external_forces, gravity
        As for :func:`kfdyn.dynamics.forward_dynamics`.

    Returns
    -------
    (..., nv) array

    Raises
    ------
    SingularError
        If the hinges cannot accelerate the frame along all of ``axes``.

    Notes
    -----
    O(N) and a 6 × 6 solve. The position error is exactly linear, ë + Kd ė + Kp e = 0; the attitude error is so
    about a fixed axis. Sources: R86 section 12 (control); PART, operational space; Khatib, IEEE J. Robotics
    and Automation 3 (1987).

    Examples
    --------
    >>> from kfdyn.multibody.models import puma560
    >>> arm, q = puma560(), np.array([0.1, -0.4, 0.3, 0.2, 0.5, 0.1])
    >>> here = frame_pose(arm, q, "link_6")
    >>> tau = operational_space_control(arm, q, np.zeros(6), "link_6", here, kp=100.0, kd=20.0)
    >>> bool(np.abs(forward_dynamics(arm, q, np.zeros(6), tau)).max() < 1e-9)
    True
    """
    expect_system(system)
    rows = _rows(axes)
    of: tuple[Any, ...] = (0, None, 0, None, 0, None, None, 0, None)
    if OPERATIONAL_SPACE_CONTROL.serving(system) is not None:
        length, path, arm, turn = frame_of(system, frame)
        of = (*_gains(kp, kd, rows.size), rows.size, rows, int(path[-1]), arm, turn, length, path)
    motion = (_STILL if x is STILL else x for x in (velocity, acceleration))
    explain = partial(_control_by_parts, frame=frame, rows=rows, kp=kp, kd=kd)
    answer: Array = OPERATIONAL_SPACE_CONTROL.rows(
        system, (*of, q, v, *target, *motion, posture, external_forces, gravity), None, explain
    )
    return answer


def _control_by_parts(
    states: States, frame: str, rows: NDArray[np.int64], kp: ArrayLike, kd: ArrayLike
) -> dict[str, Array]:
    """The same function by function, (size, nv): for what no recursion knows, and for the words where none is.

    And for frames that can hardly be moved along some axis, about which the compiled call is careful.
    """
    system, m = states.system, rows.size
    q, v, (_, _, force, gravity) = states["q"], states["v"], states.part(slice(None))
    states.expect_invertible()  # it knows where the states are among the caller's
    now = frame_pose(system, q, frame)
    turn = matrix_to_rotation_vector(states["target.rotation"] @ np.swapaxes(now.rotation, -1, -2))
    error = np.concatenate([turn, states["target.position"] - now.position], axis=-1)[..., rows]
    rate = (states["velocity"] - frame_velocity(system, q, v, frame))[..., rows]
    wanted = states["acceleration"][..., rows] + _apply(kd, rate, m, "kd") + _apply(kp, error, m, "kp")

    tau_0 = states.arrays.get("posture", np.zeros((states.size, system.nv)))
    a_0 = forward_dynamics(system, q, v, tau_0, force, gravity)
    J = jacobian(system, q, frame)[..., rows, :]
    Omega = operational_space_compliance(system, q, [frame])[..., rows, :][..., :, rows]
    free = (J @ a_0[..., None])[..., 0] + frame_bias_acceleration(system, q, v, frame)[..., rows]
    f = _solve(Omega, wanted - free, system, frame)
    return {"tau": tau_0 + (np.swapaxes(J, -1, -2) @ f[..., None])[..., 0]}


def _solve(Omega: Array, right: Array, system: System, frame: str) -> Array:
    spectrum = np.linalg.eigvalsh(Omega)
    if (spectrum[..., 0] <= SINGULAR * spectrum[..., -1]).any():
        raise SingularError(
            f"frame {frame!r} of system {system.name!r} cannot be accelerated along all of the controlled axes: its "
            "compliance is singular (a singular configuration, or too few hinges); control fewer axes"
        )
    return np.asarray(np.linalg.solve(Omega, right[..., None])[..., 0], dtype=np.float64)


def _gains(kp: Any, kd: Any, size: int) -> tuple[int, Array]:
    """Tell whether gains are matrices; return Kp and Kd too, (2, size) or (2, size, size)."""
    if type(kp) is float and type(kd) is float and math.isfinite(kp) and math.isfinite(kd):
        gains = np.empty((2, size))
        gains[0], gains[1] = kp, kd
        return 0, gains
    both = gain_of(kp, size, "kp"), gain_of(kd, size, "kd")
    if max(K.ndim for K in both) == 1:
        return 0, np.stack(both)
    return 1, np.stack([np.diag(K) if K.ndim == 1 else K for K in both])


def _apply(gain: ArrayLike, error: Array, size: int, what: str) -> Array:
    """Gain times error, for a scalar, diagonal or full gain."""
    K = gain_of(gain, size, what)
    return (K @ error[..., None])[..., 0] if K.ndim == 2 else K * error


def _rows(axes: Sequence[int]) -> NDArray[np.int64]:
    """Controlled rows of [angular; linear]."""
    try:
        return _checked_rows(tuple(axes))
    except (TypeError, ValueError):  # no numbers, or no sequence
        raise ModelError(f"{_AXES}, got {axes!r:.80}") from None


@lru_cache(maxsize=100)
def _checked_rows(axes: tuple[int, ...]) -> NDArray[np.int64]:
    rows = [int(i) for i in axes]
    if not rows or rows != list(axes) or len(set(rows)) < len(rows) or not all(0 <= i < 6 for i in rows):
        raise ModelError(f"{_AXES}, got {axes}")
    return np.array(rows, dtype=np.int64)


class _OnTarget(Solver):
    """A frame's target has a rotation, which is looked at."""

    called = MappingProxyType({"rotation": "target.rotation", "position": "target.position"})

    def bound(self, system: System, arguments: tuple[Any, ...]) -> Any:
        """Arguments checked by name."""
        at = len(self.entry.parameters) + 2
        rotation = check_rotation(checked(system, arguments[at], (3, 3), "target.rotation"), "target.rotation")
        return super().bound(system, (*arguments[:at], rotation, *arguments[at + 1 :]))


_ROOM, _COUPLED = "kfdyn.dynamics.recursions.control", "kfdyn.dynamics.recursions.coupled.geared_control"

COMPUTED_TORQUE = Solver(
    "computed_torque", _ROOM, "COMPUTED_TORQUE", coupled=_COUPLED, rest=False, most=DENSE, inverts=False
)
OPERATIONAL_SPACE_CONTROL = _OnTarget(
    "operational_space_control", _ROOM, "OPERATIONAL_SPACE_CONTROL", coupled=_COUPLED, rest=False, most=DENSE
)
