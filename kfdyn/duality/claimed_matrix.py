"""Read a claimed matrix: full or a triangle, float64 or float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.duality.monte_carlo import DENSE_OUTPUTS
from kfdyn.duality.noise_operators import Given
from kfdyn.duality.quantities import QUANTITIES, Claim, component_names
from kfdyn.duality.tolerance.rounding import EPS, Units
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation import StateSpace


class Named(NamedTuple):
    """A claimed matrix and its name in messages, such as the file it was read from.

    Examples
    --------
    >>> import kfdyn as kf
    >>> arm = kf.models.double_pendulum()
    >>> kf.cross_check(arm, [0.3, 0.4], samples=100, claimed={"a": Named(np.eye(3), "mine.npy")})
    Traceback (most recent call last):
    kfdyn.errors.ShapeError: 𝓜⁻¹ of 'mine.npy' has shape (3, 3), but the model's is (2, 2)
    """

    matrix: ArrayLike
    name: str


class Theirs(NamedTuple):
    """A matrix as another program has it.

    Attributes
    ----------
    matrix : (d, d)
        In double precision; a triangle is mirrored.
    precision : float
        Rounding error of one of its numbers: that of float32 if they came as such.
    note : str
        What was done to it, in words; empty if nothing.
    dtype : str
        The numbers it came in, where they are shorter than ours; else "float64".

    Examples
    --------
    >>> theirs = read_matrix(np.array([[2.0, 1.0], [0.0, 3.0]], dtype=np.float32), "mine", 2, "𝓜⁻¹")
    >>> theirs.matrix, theirs.note
    (array([[2., 1.],
           [1., 3.]]), 'upper triangle, float32')
    """

    matrix: Array
    precision: float
    note: str
    dtype: str = "float64"


def read_matrix(value: ArrayLike, name: str, d: int, what: str) -> Theirs:
    """Read a symmetric matrix of d rows, whole or as a triangle.

    Parameters
    ----------
    value : (d, d) array_like
        Whole; or a triangle, all of whose other entries are 0, as Pinocchio's ``computeMinverse`` leaves it.
    name, what : str
        Whose it is and what it should be, for messages.
    d : int
        Number of rows.

    Returns
    -------
    Theirs
        ``matrix``, ``precision``, ``note``.

    Examples
    --------
    >>> read_matrix([[1.0, 0.0], [0.0, 1.0]], "mine", 2, "𝓜⁻¹").note
    ''
    """
    array = np.asarray(value)
    if array.shape != (d, d):
        raise ShapeError(f"{what} of {name!r} has shape {array.shape}, but the model's is ({d}, {d})")
    if array.dtype.kind not in "fiu":
        raise ModelError(f"{what} of {name!r} holds {array.dtype}, not real numbers")
    precision = max(float(np.finfo(array.dtype).eps), EPS) if array.dtype.kind == "f" else EPS
    matrix = np.asarray(array, float)
    if not np.isfinite(matrix).all():
        i, j = np.argwhere(~np.isfinite(matrix))[0]
        raise ModelError(f"{what} of {name!r} has {matrix[i, j]} at ({i}, {j}); give finite numbers")
    notes = []
    upper, lower = np.triu(matrix, 1), np.tril(matrix, -1)
    if upper.any() != lower.any():
        matrix = matrix + (upper.T if upper.any() else lower.T)
        notes.append("upper triangle" if upper.any() else "lower triangle")
    if precision > EPS:
        notes.append(str(array.dtype))
    return Theirs(matrix, precision, ", ".join(notes), str(array.dtype) if precision > EPS else "float64")


def take_claims(
    claimed: Mapping[str, Any],
    own: Mapping[str, Claim],
    ss: StateSpace,
    bound: float,
    samples: int = 0,
    names: Sequence[str] = (),
) -> tuple[dict[str, Claim], dict[str, str]]:
    """Convert claimed matrices to claims of this model, with notes on what was done to each array.

    Parameters
    ----------
    claimed : mapping of str to Claim, (d, d) array or Named
        By quantity.
    own : mapping of Claim
        What theory says: means, and units where a variance is 0.
    bound : float
        Rounding bound; an array that is symmetric up to it, in its own precision, is made symmetric.
    samples : int
        Number of samples to come; an array whose triangles they cannot tell apart is made symmetric, and the note says
        so. What differs more is left as it is, for the tests to name.
    """
    taken, notes = {}, {}
    for name, value in claimed.items():
        if name not in QUANTITIES:
            raise ModelError(f"claimed[{name!r}]: there is no such quantity; there are {', '.join(QUANTITIES)}")
        if isinstance(value, Claim):
            taken[name] = value
            continue
        mine, quantity = own[name], QUANTITIES[name]
        given = value if isinstance(value, Named) else Named(value, f"claimed[{name!r}]")
        theirs = read_matrix(given.matrix, given.name, len(mine.mean), quantity.covariance)
        matrix, variance = theirs.matrix, np.diag(theirs.matrix)
        scale = np.maximum(np.sqrt(variance.clip(0)), mine.scale)
        allowed = bound * theirs.precision / EPS
        said = [theirs.note] if theirs.note else []
        uneven = np.abs((matrix - matrix.T) / np.outer(scale, scale))
        if uneven.max(initial=0.0) <= allowed:
            matrix = 0.5 * (matrix + matrix.T)
        elif samples and noncentrality(matrix, scale, samples) < 1:
            i, j = divmod(int(np.argmax(uneven)), len(matrix))
            called = component_names(ss, quantity.on_states, names)
            matrix = 0.5 * (matrix + matrix.T)
            said.append(
                f"made symmetric: ({called[i]}, {called[j]}) and its mirror differ by {uneven[i, j]:.1g} of the "
                "two deviations, which samples cannot see"
            )
        other = {"a": "T", "T": "a"}.get(name, "")
        if (
            other
            and len(matrix) <= DENSE_OUTPUTS
            and gap(own[other].matrix, matrix, own[other].scale) <= allowed < gap(mine.matrix, matrix, mine.scale)
        ):
            said.append(f"it is {QUANTITIES[other].covariance}, not {quantity.covariance}")
        start = ss.arrays.state if quantity.on_states else ss.arrays.output
        in_units = Units(scale, scale, mine.units.means)
        taken[name] = replace(mine, covariance=Given(matrix, start, theirs.dtype), units=in_units)
        notes[name] = "; ".join(said)
    return taken, notes


def beside_exact(
    ours: Array, theirs: Array, scale: Array, allowed: float, ss: StateSpace, names: Sequence[str], symbol: str
) -> list[str]:
    """Compare a claim with the exact matrix: the largest gap, and the order of rows if it is permuted.

    Examples
    --------
    >>> import kfdyn as kf
    >>> ss, exact = kf.as_estimation(kf.models.double_pendulum(), [0.3, 0.4]), np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> beside_exact(exact, exact[::-1, ::-1], np.sqrt([2.0, 3.0]), 1e-12, ss, ["shoulder", "elbow"], "𝓜⁻¹")[1]
    'it is 𝓜⁻¹ with rows and columns in another order: elbow, shoulder'
    """
    apart = np.abs(ours - theirs) / np.outer(scale, scale)
    if not apart.size:
        return []
    i, j = divmod(int(np.argmax(apart)), len(apart))
    worst = float(apart[i, j])
    if worst <= allowed:
        return [f"the exact {symbol} differs from it by {worst:.1g} of the two deviations at most, which is rounding"]
    said = [f"the exact {symbol} differs from it by {worst:.2g} of the two deviations at ({names[i]}, {names[j]})"]
    for order, told in _orders(ours, theirs, ss, names):
        if gap(ours[np.ix_(order, order)], theirs, scale[order]) <= max(allowed, 1e-9):
            return [*said, f"it is {symbol} {told}"]
    return said


def _orders(ours: Array, theirs: Array, ss: StateSpace, names: Sequence[str]) -> list[tuple[NDArray[np.intp], str]]:
    """Return orders of rows that a matrix may be in: free hinges [linear; angular], or as its diagonal tells."""
    found, start, swapped = [], ss.arrays.output, np.arange(len(ours))
    if len(ours) == ss.n_outputs:
        for k in np.flatnonzero(np.diff(start) == 6):
            swapped[start[k] : start[k] + 6] = np.roll(swapped[start[k] : start[k] + 6], 3)
        if (swapped != np.arange(len(ours))).any():
            found.append((swapped, "with [linear; angular] where [angular; linear] is wanted"))
    by_size = [np.lexsort((np.abs(x).max(axis=1), np.abs(x).sum(axis=1), np.diag(x))) for x in (ours, theirs)]
    order = np.empty(len(ours), dtype=np.intp)
    order[by_size[1]] = by_size[0]
    listed = ", ".join(names[k] for k in order[:8]) + (", …" if len(order) > 8 else "")
    return [*found, (order, f"with rows and columns in another order: {listed}")]


def noncentrality(matrix: Array, scale: Array, samples: int) -> float:
    """Return the noncentrality of the test between the symmetric matrices of the two triangles.

    ::

        n/2 ‖Σ^-½ (U − L) Σ^-½‖²

    is the noncentrality of the likelihood ratio of one against the other; below 1 no test sees a difference. Infinite
    if their mean Σ is no regular covariance. O(d³).

    Examples
    --------
    >>> matrix = np.array([[1.0, 0.3], [0.3 + 1e-6, 1.0]])
    >>> noncentrality(matrix, np.ones(2), 1000) < 1e-8
    True
    """
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    unit = matrix / np.outer(scale, scale)
    above = np.triu(unit - unit.T, 1)
    try:
        apart = cho_solve(cho_factor(0.5 * (unit + unit.T), lower=True), above + above.T)
    except LinAlgError:
        return float("inf")
    return float(0.5 * samples * (apart * apart.T).sum())


def gap(ours: Array, theirs: Array, scale: Array) -> float:
    """Return the largest difference of two covariances in units of the standard deviations."""
    return float((np.abs(ours - theirs) / np.outer(scale, scale)).max(initial=0.0))
