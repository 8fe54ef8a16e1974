"""SRB's summary table of the four formulations: as stated, and as measured on a tumbling body."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.spatial._arrays import Array
from kfdyn.spatial.single_body.formulation import FORMULATIONS
from kfdyn.spatial.single_body.free_motion import free_motion


class SummaryRow(NamedTuple):
    """One formulation in SRB's table: β, b, and three statements about them.

    Attributes
    ----------
    key, title : str
        Short and long name.
    velocity, bias : str
        β and b as SRB writes them.
    conserves_momentum, bias_does_no_work, free_of_linear_velocity : bool
        What the table states of them.

    Examples
    --------
    >>> next(row.bias for row in summary_table() if row.key == "body")
    'V̄(z) h(z)'
    """

    key: str
    title: str
    velocity: str
    bias: str
    conserves_momentum: bool
    bias_does_no_work: bool
    free_of_linear_velocity: bool


class Measured(NamedTuple):
    """The three statements as numbers, zero where the statement holds.

    momentum_drift: largest |h(t) − h(0)| / |h(0)|. bias_work: largest |β*b| / (|β| |b|).
    linear_velocity_influence: largest |b(β + [0; v₁]) − b(β)| / |b(β)| for v₁ of the size of β.
    energy_drift: largest |K(t) − K(0)| / K(0), zero for all four.

    Examples
    --------
    >>> from kfdyn.spatial import spatial_inertia
    >>> M6 = spatial_inertia(2.0, [0.3, 0.1, 0], np.diag([1.0, 2.0, 2.5]))
    >>> found = measure_formulations(M6, np.eye(3), [1, 2, 3], [1, 2, 3, 0, 0, 1], np.linspace(0, 1, 9))
    >>> found["cm"].momentum_drift < 1e-9, found["point"].momentum_drift > 0.01
    (True, True)
    """

    momentum_drift: float
    bias_work: float
    linear_velocity_influence: float
    energy_drift: float


def summary_table() -> tuple[SummaryRow, ...]:
    """Summary table of the four formulations as data, a row each.

    Returns
    -------
    tuple of SummaryRow

    Notes
    -----
    Source: SRB, summary of equations of motion. :func:`measure_formulations` puts numbers to it.

    Examples
    --------
    >>> from kfdyn.spatial.single_body import summary_table
    >>> [row.key for row in summary_table() if row.conserves_momentum]
    ['cm', 'inertial']
    """
    return tuple(SummaryRow(*(getattr(one, name) for name in SummaryRow._fields)) for one in FORMULATIONS.values())


def measure_formulations(
    M6: ArrayLike,
    rotation: ArrayLike,
    position: ArrayLike,
    V: ArrayLike,
    time: ArrayLike,
    seed: int = 0,
) -> dict[str, Measured]:
    """Measure the summary table: let the body tumble in each formulation and watch momentum, work and b.

    Parameters
    ----------
    M6, rotation, position, V, time
        As in :func:`free_motion`. To tell the formulations apart the mass centre must be off the frame's
        origin, that origin off the inertial one, and the spin off the principal axes.
    seed : int
        Of the random linear velocities v₁.

    Returns
    -------
    dict
        Key of the formulation to :class:`Measured`.

    Notes
    -----
    Source: SRB, summary of equations of motion. Cost: four integrations.

    Examples
    --------
    >>> import numpy as np
    >>> from kfdyn.spatial import spatial_inertia
    >>> from kfdyn.spatial.single_body import measure_formulations
    >>> M6 = spatial_inertia(2.0, [0.3, 0.1, 0], np.diag([1.0, 2.0, 2.5]))
    >>> out = measure_formulations(M6, np.eye(3), [1, 2, 3], [1, 2, 3, 0, 0, 1], np.linspace(0, 1, 9))
    >>> [key for key, measured in out.items() if measured.bias_work > 1e-6]
    ['point']
    """
    return {key: _measure(key, M6, rotation, position, V, time, seed) for key in FORMULATIONS}


def _measure(
    key: str,
    M6: ArrayLike,
    rotation: ArrayLike,
    position: ArrayLike,
    V: ArrayLike,
    time: ArrayLike,
    seed: int,
) -> Measured:
    motion = free_motion(key, M6, rotation, position, V, time)
    beta, inertia, bias, h, _ = motion.equations
    other = beta.copy()
    shape = beta[..., 3:].shape
    other[..., 3:] += _size(beta)[..., None] * np.random.default_rng(seed).normal(size=shape)
    moved = FORMULATIONS[key].gyroscopic(inertia, other)
    return Measured(
        momentum_drift=float(_size(h - h[0]).max() / _size(h[0])),
        bias_work=float((np.abs((beta * bias).sum(-1)) / (_size(beta) * _size(bias))).max()),
        linear_velocity_influence=float((_size(moved - bias) / _size(bias)).max()),
        energy_drift=float(np.abs(motion.energy - motion.energy[0]).max() / motion.energy[0]),
    )


def _size(x: Array) -> Array:
    return np.asarray(np.linalg.norm(x, axis=-1))
