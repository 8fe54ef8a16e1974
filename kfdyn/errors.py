"""The package's exceptions: every one is a ``ValueError`` that names the culprit and the cure."""

from __future__ import annotations

import collections.abc as _abc
import typing as _typing

_T = _typing.TypeVar("_T")


def shown(value: object, most: int = 60) -> str:
    """Return what a value looks like in a message: one line, and only its start where it is long."""
    return " ".join(repr(value).split())[:most]


def as_list(value: _abc.Iterable[_T], what: str, cure: str) -> tuple[_T, ...]:
    """Return the entries of a list, or refuse what is none; ``cure`` says what to write."""
    try:
        return tuple(value)
    except TypeError:
        raise ModelError(f"{what} must be a list, got {shown(value)}; {cure}") from None


class KfdynError(ValueError):
    """Base class of all errors raised on bad input.

    Examples
    --------
    One clause catches whatever the package refuses:

    >>> import kfdyn as kf
    >>> try:
    ...     kf.forward_dynamics(kf.models.pendulum(), [0.0, 0.0], [0.0], [0.0])
    ... except KfdynError as error:
    ...     print(type(error).__name__)
    ShapeError
    """


class TreeError(KfdynError):
    """A parent list that is no forest: a loop, an index out of range, two parents.

    Examples
    --------
    >>> import kfdyn as kf
    >>> kf.Tree([1, 0])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    kfdyn.errors.TreeError: the nodes form a loop: node 0 -> node 1 -> node 0; cut one of these edges ...
    """


class ShapeError(KfdynError):
    """An array whose shape does not fit the model it is used with.

    Examples
    --------
    >>> import kfdyn as kf
    >>> kf.mass_matrix(kf.models.pendulum(), [0.0, 0.0])
    Traceback (most recent call last):
        ...
    kfdyn.errors.ShapeError: q must have shape (..., 1) for system 'pendulum', got (2,)
    """


class ModelError(KfdynError):
    """A model entry that is not what it must be: not finite, not symmetric, not positive semi-definite.

    Examples
    --------
    >>> import kfdyn as kf
    >>> kf.StateSpace([-1], [None], [[[1.0]]], [[[-1.0]]])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    kfdyn.errors.ModelError: Q of node 0 is not positive semi-definite (lowest eigenvalue -1); ...
    """


class SingularError(KfdynError):
    """An innovations covariance D(k) that is not positive definite.

    Attributes
    ----------
    node, output : int or None
        Where it happened, for callers that know a better name for the node.

    Examples
    --------
    A hinge with nothing to move, and no rotor:

    >>> import kfdyn as kf
    >>> kf.forward_dynamics(kf.models.pendulum(mass=0.0), [0.0], [0.0], [0.0])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    kfdyn.errors.SingularError: hinge 'pivot': nothing outboard of it has mass, so its innovation variance is 0; ...
    """

    def __init__(self, message: str, node: int | None = None, output: int | None = None) -> None:
        super().__init__(message)
        self.node = node
        self.output = output


class UnobservableError(KfdynError):
    """A set of sensors that leaves something undetermined, or whose exact readings say the same twice.

    Attributes
    ----------
    unseen, repeated : tuple of tuples of str
        The directions that no sensor sees, and the groups of exact readings that repeat each other, by their parts.

    Examples
    --------
    An arm of which only one hinge is read:

    >>> import kfdyn as kf
    >>> sensors = [kf.sensors.JointTorque(0.1, hinges="shoulder")]
    >>> arm = kf.models.double_pendulum()
    >>> kf.estimate_dynamics(arm, [0.0, 0.0], None, sensors, [[0.0]])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    kfdyn.errors.UnobservableError: the sensors leave undetermined: hinge 'elbow' with hinge 'shoulder'; ...
    """

    def __init__(
        self, message: str, unseen: tuple[tuple[str, ...], ...] = (), repeated: tuple[tuple[str, ...], ...] = ()
    ) -> None:
        super().__init__(message)
        self.unseen = unseen
        self.repeated = repeated


class LostDigitsWarning(UserWarning):
    """A filter whose covariances have fewer than five digits left: a vague prior, and measurements that resolve it.

    Examples
    --------
    A trend of which nothing is known but that its variances are 1e14, measured with an error of 0.01:

    >>> import warnings, numpy as np, kfdyn as kf
    >>> F, H = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    >>> ss = kf.StateSpace.chain(F, H, 1e-4 * np.eye(2), [[1e-4]], [0.0, 0.0], 1e14 * np.eye(2), steps=9)
    >>> script = {"__name__": "__main__", "kf": kf, "ss": ss, "T": np.arange(9.0)}  # the package does not warn itself
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     exec("kf.kalman_filter(ss, T)", script)
    >>> print(str(said[0].message)[:52])
    the filter loses about 16 of its 16 digits at node 1
    """
