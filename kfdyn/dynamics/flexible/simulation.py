"""Motion of flexible systems: Runge–Kutta, a step in which elasticity is measurement noise, adaptive solvers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.dynamics.adaptive import Solver
from kfdyn.dynamics.flexible.solve import forward_dynamics
from kfdyn.dynamics.trajectory import Trajectory
from kfdyn.errors import KfdynError, ModelError
from kfdyn.multibody import FlexibleSystem, integrate, kinetic_energy, momentum, potential_energy

Array = NDArray[np.float64]
Law = Callable[[float, Array, Array], ArrayLike]
ADAPTIVE: tuple[str, ...] = get_args(Solver)
METHODS = ("rk4", "implicit", *ADAPTIVE)


def elastic_matrices(system: FlexibleSystem) -> tuple[Array, Array]:
    """K and C of the whole system, (nv, nv): zero but for the modes."""
    K, C = np.zeros((2, system.nv, system.nv))
    for name, body in system.flexible.items():
        own = system.mode_slice(name, True)
        K[own, own], C[own, own] = body.stiffness, body.damping
    return K, C


def simulate_flexible(
    system: FlexibleSystem,
    q: ArrayLike,
    v: ArrayLike,
    times: Array,
    torque: Law | ArrayLike | None,
    method: str,
    substeps: int,
    external_forces: Any,
    gravity: ArrayLike | None,
    rtol: float,
    atol: float,
) -> Trajectory:
    """The motion of one flexible system, or of a batch of states (fixed-step methods); see :func:`kfdyn.simulate`."""
    if method not in METHODS:
        raise ModelError(
            f"there is no method {method!r} to simulate a flexible system with; take one of {', '.join(METHODS)}"
        )
    here, rate = system.checked(q, system.nq, "q"), system.checked(v, system.nv, "v")
    lead = np.broadcast_shapes(here.shape[:-1], rate.shape[:-1])
    here, rate = np.broadcast_to(here, (*lead, system.nq)), np.broadcast_to(rate, (*lead, system.nv))

    def given(law: Any, t: float, q: Array, v: Array, empty: Any) -> Any:
        return empty if law is None else law(t, q, v) if callable(law) else law

    def driving(t: float, q: Array, v: Array) -> Array:
        return np.broadcast_to(np.asarray(given(torque, t, q, v, 0.0), dtype=float), (*q.shape[:-1], system.nv))

    def acceleration(t: float, q: Array, v: Array, noise: Array | None = None, push: Array | float = 0.0) -> Array:
        force = given(external_forces, t, q, v, None)
        return forward_dynamics(system, q, v, driving(t, q, v) + push, force, gravity, noise)

    if method in ADAPTIVE:
        if lead:
            raise ModelError(f"{method} simulates one motion; take 'rk4' or 'implicit' for a batch")
        q_all, v_all, steps = _adaptively(system, here, rate, times, acceleration, method, rtol, atol)
    else:
        step = _implicit(system, acceleration) if method == "implicit" else _rk4(system, acceleration)
        q_all, v_all = np.empty((times.size, *here.shape)), np.empty((times.size, *rate.shape))
        q_all[0], v_all[0], steps = here, rate, (times.size - 1) * substeps
        for i in range(1, times.size):
            h = float(times[i] - times[i - 1]) / substeps
            for j in range(substeps):
                here, rate = step(float(times[i - 1]) + j * h, h, here, rate)
                if not np.abs(rate).max(initial=0.0) < 1e8:
                    raise KfdynError(
                        f"the motion of system {system.name!r} left the numbers at t = {times[i]:.6g} s: {method} is "
                        f"unstable with steps of {h:.3g} s; take more substeps, or method 'implicit', for which stiff "
                        "modes are no limit"
                    )
            q_all[i], v_all[i] = here, rate
    tau = np.array([driving(float(ti), qi, vi) for ti, qi, vi in zip(times, q_all, v_all)])
    power = np.sum(tau * v_all, axis=-1) - _lost(system, v_all)
    work = np.zeros(power.shape)
    work[1:] = np.cumsum(0.5 * (power[1:] + power[:-1]) * np.diff(times).reshape(-1, *[1] * len(lead)), axis=0)
    return Trajectory(
        cast(Any, system), times, q_all, v_all, tau, kinetic_energy(cast(Any, system), q_all, v_all),
        potential_energy(cast(Any, system), q_all, gravity), work, momentum(cast(Any, system), q_all, v_all), method,
        steps,
    )  # fmt: skip


def _rk4(system: FlexibleSystem, acceleration: Callable[..., Array]) -> Callable[..., tuple[Array, Array]]:
    def move(q: Array, dv: Array) -> Array:
        return integrate(cast(Any, system), q, dv)

    def step(t: float, h: float, q: Array, v: Array) -> tuple[Array, Array]:
        k1 = acceleration(t, q, v)
        v2 = v + h / 2 * k1
        k2 = acceleration(t + h / 2, move(q, h / 2 * v), v2)
        v3 = v + h / 2 * k2
        k3 = acceleration(t + h / 2, move(q, h / 2 * v2), v3)
        v4 = v + h * k3
        k4 = acceleration(t + h, move(q, h * v3), v4)
        return move(q, h / 6 * (v + 2 * v2 + 2 * v3 + v4)), v + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    return step


def _implicit(system: FlexibleSystem, acceleration: Callable[..., Array]) -> Callable[..., tuple[Array, Array]]:
    """Semi-implicit Euler with implicit elasticity: R = h²K + hC, T ← T − hKη̇ (ξ has Kη + Cη̇ already)."""
    K, C = elastic_matrices(system)

    def step(t: float, h: float, q: Array, v: Array) -> tuple[Array, Array]:
        a = acceleration(t, q, v, h * h * K + h * C, -h * v @ K)
        v = v + h * a
        return integrate(cast(Any, system), q, h * v), v

    return step


def _adaptively(
    system: FlexibleSystem,
    q: Array,
    v: Array,
    times: Array,
    acceleration: Callable[..., Array],
    method: str,
    rtol: float,
    atol: float,
) -> tuple[Array, Array, int]:
    """scipy's solver, for hinges whose q is a vector."""
    from scipy.integrate import solve_ivp

    if any(body.hinge.nq != body.hinge.nv for body in system.tree.bodies[: system.n_bodies]):
        raise ModelError(
            f"{method} takes hinges whose q is as long as v; system {system.name!r} has ball or free hinges: take "
            "'rk4' or 'implicit'"
        )

    def rate(t: float, y: Array) -> Array:
        return np.concatenate([y[system.nq :], acceleration(t, y[: system.nq], y[system.nq :])])

    start = np.concatenate([q, v])
    done = solve_ivp(rate, (times[0], times[-1]), start, cast(Any, method), times, rtol=rtol, atol=atol)
    if not done.success:
        raise KfdynError(f"the motion of system {system.name!r} stopped: {done.message}")
    return done.y[: system.nq].T, done.y[system.nq :].T, int(done.nfev)


def _lost(system: FlexibleSystem, v: Array) -> Array:
    """Power that modal damping takes."""
    _, C = elastic_matrices(system)
    return np.asarray(np.einsum("...i,ij,...j->...", v, C, v))
