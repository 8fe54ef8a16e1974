"""A body tumbling freely, integrated in the variables of each formulation; what each conserves, measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kfdyn.errors import KfdynError, ModelError
from kfdyn.textbook.algebra import Array, tilde
from kfdyn.textbook.srb.formulations import (
    FORMULATIONS,
    BodyEquations,
    _frame,
    _inverse,
    _mass_centre,
    body_acceleration,
    body_equations,
    gyroscopic_about_body,
    gyroscopic_about_point,
)

_COLUMNS = 12  # of the extrapolation, before a step is halved


class FreeMotion(NamedTuple):
    """A force-free motion at n times.

    time (n,), rotation (n, 3, 3), position (n, 3): pose of the body frame. V (n, 6): its spatial velocity at the
    frame's origin in inertial axes. energy (n,). equations: :class:`BodyEquations`, stacked.

    Examples
    --------
    A body thrown without spin goes straight on:

    >>> import numpy as np
    >>> ball = np.diag([1.0, 1, 1, 2, 2, 2])
    >>> thrown = free_motion("point", ball, np.eye(3), np.zeros(3), [0, 0, 0, 1.0, 0, 2.0], [0.0, 1.0, 2.0])
    >>> thrown.position.round(9)[-1], thrown.energy.round(9)
    (array([2., 0., 4.]), array([5., 5., 5.]))
    """

    time: Array
    rotation: Array
    position: Array
    V: Array
    energy: Array
    equations: BodyEquations


class Measured(NamedTuple):
    """The three statements of the summary table as numbers, zero where the statement holds.

    momentum_drift: largest |h(t) − h(0)| / |h(0)|. bias_work: largest |β*b| / (|β| |b|). linear_velocity_influence:
    largest |b(β + [0; v₁]) − b(β)| / |b(β)| for v₁ of the size of β. energy_drift: largest |K(t) − K(0)| / K(0).

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> M6 = kf.spatial.spatial_inertia(2.0, [0.3, 0.1, 0], np.diag([1.0, 2.0, 2.5]))
    >>> found = measure_formulations(M6, np.eye(3), [1, 2, 3], [1, 2, 3, 0, 0, 1], np.linspace(0, 1, 9))
    >>> found["cm"].momentum_drift < 1e-9, found["point"].momentum_drift > 0.01
    (True, True)
    """

    momentum_drift: float
    bias_work: float
    linear_velocity_influence: float
    energy_drift: float


def free_motion(
    formulation: str, M6: Array, rotation: Array, position: Array, V: Array, time: Array, rtol: float = 1e-12
) -> FreeMotion:
    """Integrate the motion of a body without forces: M dβ/dt + b = 0, with β itself as the state.

    Parameters
    ----------
    time : (n,)
        Increasing.
    rtol : float
        Error of a step, relative to the state.

    Returns
    -------
    FreeMotion

    Notes
    -----
    The state is (R, z, β): the angular velocity in β is a quasi-velocity, so the attitude has an equation of its own,
    dR/dt = ω~R. Source: SRB, multibody state and state derivatives.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> M6 = kf.spatial.spatial_inertia(2.0, [0.3, 0, 0], np.diag([1.0, 2.0, 2.5]))
    >>> m = free_motion("body", M6, np.eye(3), np.zeros(3), [1, 2, 3, 0, 0, 1], np.linspace(0, 1, 5))
    >>> bool(np.ptp(m.energy) < 1e-10 * m.energy[0])
    True
    """
    time = np.asarray(time, float)
    if time.ndim != 1 or len(time) < 2 or (np.diff(time) <= 0).any():
        raise ModelError("time must be a list of at least two increasing numbers")
    start = body_equations(formulation, M6, rotation, position, V)
    body_acceleration(start.inertia, np.zeros(6), start.bias)  # refuses a body without mass
    M6 = np.asarray(M6, float)
    com = _mass_centre(M6)

    def state(y: Array) -> tuple[Array, Array, Array]:
        R, z = y[:9].reshape(3, 3), y[9:12]
        return R, z, _inverse(_frame(formulation, R, z, com)).T @ y[12:]

    def rate(y: Array) -> Array:
        R, z, V = state(y)
        u, _, v = np.linalg.svd(R)  # rounding leaves R not quite a rotation
        eom = body_equations(formulation, M6, u @ v, z, V)
        return np.concatenate([(tilde(V[:3]) @ R).ravel(), V[3:], np.linalg.solve(eom.inertia, -eom.bias)])

    y = [np.concatenate([np.ravel(rotation), position, start.velocity]).astype(float)]
    for step in np.diff(time).tolist():
        y.append(_advance(rate, y[-1], step, rtol))
    poses = [state(one) for one in y]
    eom = [body_equations(formulation, M6, *pose) for pose in poses]
    stacked = BodyEquations(*(np.array(values) for values in zip(*eom)))
    energy = 0.5 * np.einsum("ti,ti->t", stacked.velocity, stacked.momentum)
    R, z, V = (np.array(values) for values in zip(*poses))
    return FreeMotion(time, R, z, V, energy, stacked)


def measure_formulations(
    M6: Array, rotation: Array, position: Array, V: Array, time: Array, seed: int = 0
) -> dict[str, Measured]:
    """Measure the summary table: let the body tumble in each formulation and watch momentum, work and b.

    The arguments are those of :func:`free_motion`; ``seed`` is that of the random v₁. To tell the formulations apart
    the mass centre must be off the frame's origin, that origin off the inertial one, and the spin off the principal
    axes.

    Parameters
    ----------
    seed : int
        Of the random linear velocities v₁.

    Returns
    -------
    dict
        Key of the formulation to :class:`Measured`.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> M6 = kf.spatial.spatial_inertia(2.0, [0.3, 0.1, 0], np.diag([1.0, 2.0, 2.5]))
    >>> out = measure_formulations(M6, np.eye(3), [1, 2, 3], [1, 2, 3, 0, 0, 1], np.linspace(0, 1, 9))
    >>> [key for key, measured in out.items() if measured.bias_work > 1e-6]
    ['point']
    """
    found = {}
    for key in FORMULATIONS:
        motion = free_motion(key, M6, rotation, position, V, time)
        beta, inertia, bias, h, _ = motion.equations
        other = beta.copy()
        other[:, 3:] += _size(beta)[:, None] * np.random.default_rng(seed).normal(size=(len(beta), 3))
        gyroscopic = gyroscopic_about_point if key in ("cm", "point") else gyroscopic_about_body
        moved = np.array([gyroscopic(M, b) for M, b in zip(inertia, other)])
        found[key] = Measured(
            float(_size(h - h[0]).max() / _size(h[0])),
            float((np.abs((beta * bias).sum(-1)) / (_size(beta) * _size(bias))).max()),
            float((_size(moved - bias) / _size(bias)).max()),
            float(np.abs(motion.energy - motion.energy[0]).max() / motion.energy[0]),
        )
    return found


def _advance(rate: Callable[[Array], Array], y: Array, step: float, rtol: float, halvings: int = 30) -> Array:
    """Advance one step by midpoint rules of 2, 4, 6, … parts, extrapolated (Gragg, Bulirsch and Stoer)."""
    row: list[Array] = []
    first = rate(y)
    for j in range(1, _COLUMNS + 1):
        h = step / (2 * j)
        before, now = y, y + h * first
        for _ in range(2 * j - 1):
            before, now = now, before + 2 * h * rate(now)
        new = [0.5 * (before + now + h * rate(now))]
        for k, old in enumerate(row, 1):
            new.append(new[-1] + (new[-1] - old) / ((j / (j - k)) ** 2 - 1))
        if j > 2 and np.abs(new[-1] - row[-1]).max() <= rtol * max(1.0, np.abs(y).max()):
            return new[-1]
        row = new
    if not halvings:
        raise KfdynError("the motion cannot be integrated to so small a tolerance; give a larger rtol")
    half = _advance(rate, y, 0.5 * step, rtol, halvings - 1)
    return _advance(rate, half, 0.5 * step, rtol, halvings - 1)


def _size(x: Array) -> Array:
    return np.linalg.norm(x, axis=-1)
