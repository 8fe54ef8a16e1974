"""The base of all sensors: a covariance, a bias, the places where it reads, and the rows it reads there."""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.nonlinear.arguments import covariance
from kfdyn.multibody import LinkTerms, System
from kfdyn.multibody.parts.body import as_floats

Index = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Site(NamedTuple):
    """Node ``k`` where a sensor reads, and the entries ``rows`` of its reading that belong there.

    At a hinge it reads dofs from ``first`` on among those of the node: its hinge's, then its modes.
    """

    k: int
    rows: slice
    first: int = 0


class Rows(NamedTuple):
    """Rows read at a node: y = S f(k) + K α(k) + e q̈(k) + offset + r.

    f(k) is the force that the parent exerts on body k, α(k) the acceleration of body k less that of gravity, both in
    world orientation at the body's origin. B states: S, K (B, r, 6), e (1, r, m), offset (B, r); None is zero. Where
    bodies bend f and α have modes behind the six, and S and K as many columns more.
    """

    S: Array | None = None
    K: Array | None = None
    e: Array | None = None
    offset: Array | None = None


class Sensor:
    """Base of all kinds. Two sensors of the same kind, place, covariance and bias are equal, and hash alike.

    Parameters
    ----------
    cov : float, (size,) or (size, size)
        Covariance of the reading: a variance for all entries, one each, or the matrix. 0 is an exact reading.
    bias : float or (size,)
        What the sensor adds to the truth; it is taken off the readings.
    name : str, optional
        For messages; the kind and the place otherwise.
    """

    prior: ClassVar[bool] = False  # whether its reading is a prior mean, which may be None for zero
    may_be_flat: ClassVar[bool] = False  # whether a variance may be infinite
    at_hinges: ClassVar[bool] = False  # whether it reads dofs, of couplings their coordinates
    is_force: ClassVar[bool] = False  # whether it is what is known of an external force

    def __init__(self, cov: ArrayLike, bias: ArrayLike = 0.0, name: str | None = None, where: str = "") -> None:
        self.cov, self.bias = frozen(cov, "cov"), frozen(bias, "bias")
        self.name = name or f"{type(self).__name__}({where})"
        if np.isnan(self.cov).any() or not np.isfinite(self.bias).all():
            raise ModelError(f"{self.name}: covariance and bias must be numbers")

    def __setattr__(self, key: str, value: object) -> None:
        if key in self.__dict__:
            raise AttributeError(f"a sensor is immutable; build a new one to change {key!r}")
        super().__setattr__(key, value)

    def __repr__(self) -> str:
        return self.name

    def _key(self) -> tuple[object, ...]:
        def plain(value: object) -> object:
            return (value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value

        return (type(self), *((key, plain(value)) for key, value in sorted(self.__dict__.items()) if key != "_hash"))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Sensor) and self._key() == other._key())

    def __hash__(self) -> int:
        known = self.__dict__.get("_hash")
        if known is None:
            known = self.__dict__["_hash"] = hash(self._key())
        return int(known)

    def replace(self, cov: ArrayLike | None = None, bias: ArrayLike | None = None) -> Self:
        """The same sensor with another covariance or bias, as a fit wants them."""
        out = object.__new__(type(self))
        changes = {"cov": cov, "bias": bias}
        out.__dict__.update(self.__dict__ | {k: frozen(x, k) for k, x in changes.items() if x is not None})
        out.__dict__.pop("_hash", None)
        return out

    def sites(self, system: System) -> list[Site]:
        """Return the sites where it reads; the slices cover the reading."""
        raise NotImplementedError

    def rows(self, system: System, site: Site, terms: LinkTerms) -> Rows:
        """Return the rows that it reads at one of its sites, entry by entry, for the B states of ``terms``."""
        raise NotImplementedError

    def size(self, system: System) -> int:
        """Entries of its reading."""
        return _size(self, system)

    def variances(self, size: int) -> Array:
        """The diagonal of the covariance of a reading of so many entries, checked."""
        cov = self.cov
        if cov.shape not in ((), (size,), (size, size)):
            raise ShapeError(
                f"{self.name} reads {size} numbers; its cov must be a number, ({size},) or ({size}, {size})"
            )
        out = np.broadcast_to(cov.diagonal() if cov.ndim == 2 else cov, (size,))
        if not (np.isfinite(out).all() or self.may_be_flat):
            raise ModelError(f"{self.name}: an infinite variance is no reading; give NaN as the reading instead")
        if (out < 0).any():
            raise ModelError(f"{self.name}: its covariance is not positive semi-definite (variance {out.min():.3g})")
        return out

    def matrix(self, size: int) -> Array:
        """The same covariance as a matrix, checked, and symmetric to the last digit."""
        out = np.diag(self.variances(size))
        if self.cov.ndim == 2:
            inner = np.flatnonzero(np.isfinite(out.diagonal()))
            own, apart = np.ix_(inner, inner), np.array(self.cov)
            apart[own] = apart[range(size), range(size)] = 0.0
            if apart.any() or not np.isfinite(self.cov[own]).all():
                raise ModelError(f"{self.name}: infinite variances stand alone on the diagonal of a covariance")
            out[own] = covariance(self.cov[own], f"{self.name}: its covariance", stack=False)
        return out

    def blocks(self, system: System) -> list[Array]:
        """The covariance of each site; readings at different nodes are independent."""
        sites, size = self.sites(system), self.size(system)
        if self.cov.ndim < 2:
            variances = self.variances(size)
            return [np.diag(variances[site.rows]) for site in sites]
        matrix, apart = self.matrix(size), self.cov != 0
        for site in sites:
            apart[site.rows, site.rows] = False
        if apart.any():
            raise ModelError(
                f"{self.name}: its covariance couples different hinges, but readings of different nodes must be "
                "independent; drop these entries, or model the common cause as a bias"
            )
        return [matrix[site.rows, site.rows] for site in sites]

    def covariance(self, system: System) -> Array:
        """All blocks as one matrix (size, size)."""
        self.blocks(system)
        return self.matrix(self.size(system))

    def biases(self, system: System) -> Array:
        """The bias as a vector (size,)."""
        size = self.size(system)
        if self.bias.shape not in ((), (size,)):
            raise ShapeError(f"{self.name} reads {size} numbers; its bias must be a number or ({size},)")
        return np.broadcast_to(self.bias, (size,))


@lru_cache(maxsize=256)
def _size(sensor: Sensor, system: System) -> int:
    return max((site.rows.stop for site in sensor.sites(system)), default=0)


def frozen(value: ArrayLike, what: str) -> Array:
    """A number, vector or matrix that nobody can change any more."""
    array = np.array(as_floats(value, what))
    if array.ndim > 2 or (what != "cov" and array.ndim > 1):
        raise ShapeError(f"{what} must be a number, a vector" + (" or a matrix" if what == "cov" else ""))
    array.flags.writeable = False
    return array
