"""Count the operations of a textbook algorithm by running it on numbers that count."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from kfdyn.textbook.r86.links import transition_3_5
from kfdyn.textbook.sko.sko_model import Model


class Operations(NamedTuple):
    """Operations done; a multiplication by 0 or ±1 and an addition of 0 cost nothing unless all are counted.

    Attributes
    ----------
    multiplications, additions, divisions : int
        How many of each.

    Examples
    --------
    >>> from kfdyn.textbook.counting import Operations
    >>> Operations(3, 2, 1).total
    6
    """

    multiplications: int
    additions: int
    divisions: int

    @property
    def total(self) -> int:
        """All together."""
        return sum(self)


class Number:
    """A float that counts what is done to it; ``all`` counts what a dense block costs, zeros and ones included."""

    done: ClassVar[list[int]] = [0, 0, 0]
    all: ClassVar[bool] = False
    __slots__ = ("value",)

    def __init__(self, value: float) -> None:
        self.value = value

    def __add__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        b = other.value if isinstance(other, Number) else other
        if Number.all or (self.value != 0 and b != 0):
            Number.done[1] += 1
        return Number(self.value + b)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        b = other.value if isinstance(other, Number) else other
        if Number.all or (abs(self.value) not in (0, 1) and abs(b) not in (0, 1)):
            Number.done[0] += 1
        return Number(self.value * b)

    __rmul__ = __mul__

    def __rtruediv__(self, other: Any) -> Number:
        Number.done[2] += 1
        return Number(other / self.value)

    def __neg__(self) -> Number:
        return Number(-self.value)

    def __eq__(self, other: object) -> bool:
        return bool(self.value == (other.value if isinstance(other, Number) else other))

    __hash__ = None  # type: ignore[assignment]


def counting(array: Any) -> Any:
    """Turn an array of floats into an array of numbers that count."""
    if array is None:
        return None
    floats = np.asarray(array, float)
    out = np.empty(floats.shape, dtype=object)
    for at in np.ndindex(floats.shape):
        out[at] = Number(float(floats[at]))
    return out


def count(function: Callable[..., Any], model: Model, *arguments: Any, every: bool = False) -> Operations:
    """Count the operations that ``function(model, *arguments)`` does.

    Parameters
    ----------
    function : callable
        One of :mod:`kfdyn.textbook.sko`.
    model : Model
        Of floats; it is handed over in numbers that count.
    *arguments : (Σm_k,)
        Further vectors, likewise.
    every : bool
        Count multiplications by 0 and 1 too: the price of full blocks. Without it, that of an implementation which
        knows the zeros and ones of this model.

    Returns
    -------
    Operations
        Multiplications, additions, divisions.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> from kfdyn.textbook.counting import count
    >>> sko = kf.textbook.sko
    >>> model = sko.model_of(kf.as_estimation(kf.models.uniform_chain(4), np.full(4, 0.3), np.ones(4)))
    >>> few, all = (count(sko.newton_euler, model, np.ones(4), every=e).total for e in (False, True))
    >>> few < all
    True
    """
    blocks = [[counting(x) for x in part] for part in model[1:]]
    vectors = [counting(x) for x in arguments]
    Number.done, Number.all = [0, 0, 0], every
    function(Model(model.parent, *blocks), *vectors)
    return Operations(*Number.done)


def modal_chain(N: int, modes: int, seed: int = 0) -> tuple[Model, Model]:
    """Make a chain of N flexible bodies on pins, whole and with PART's mass-less body between modes and hinge.

    ::

        whole:  H = blkdiag(1, h*),  A(p,k) = [[0, Π*], [0, φ]]          6 + modes states, modes + 1 dofs
        split:  H(k″) = [1, 0],  A(k′,k) = [0, 1],  H(k′) = h*,  A(p,k′) = [Π*; φ]

    Parameters
    ----------
    N, modes : int
        Bodies, and modes of each.
    seed : int
        For the random inertias, mode shapes and places.

    Returns
    -------
    whole, split : Model
        The same system twice; outputs are stacked alike.

    Notes
    -----
    Source: PART sections 1 and 2: "beneficial when the size of the generalized velocities is large such as for flexible
    bodies".

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> from kfdyn.textbook.counting import modal_chain
    >>> whole, split = modal_chain(3, 4)
    >>> bool(np.allclose(*(kf.textbook.sko.mass_matrix(model) for model in (whole, split))))
    True
    """
    rng = np.random.default_rng(seed)
    n = 6 + modes
    parent: list[int] = []
    whole, split = ([[] for _ in range(6)] for _ in range(2))  # type: tuple[list[list[Any]], list[list[Any]]]
    for k in range(N):
        last = k == N - 1
        # In 64ths, whose products are exact: counts that depend on zeros must not depend on a processor's rounding.
        root, axis = np.round(64 * rng.normal(size=(n, n))) / 64, rng.normal(size=3)
        M, length = root @ root.T, math.sqrt(sum(float(x) ** 2 for x in axis))
        H = np.zeros((modes + 1, n))
        H[:modes, :modes], H[modes, modes : modes + 3] = np.eye(modes), axis / length
        inner = np.vstack([rng.normal(size=(modes, 6)), transition_3_5(rng.normal(size=3))])
        reduce = np.hstack([np.zeros((6, modes)), np.eye(6)])
        zero, a, b = np.zeros((modes + 1, modes + 1)), rng.normal(size=n), rng.normal(size=n)
        a[:modes] = 0
        for own, value in zip(whole, (None if last else inner @ reduce, H, M, zero, a, b)):
            own.append(value)
        for own, value in zip(split, (reduce, H[:modes], M, zero[:modes, :modes], 0 * a, b)):
            own.append(value)
        six = np.zeros(6)
        pin = (None if last else inner, H[modes:, modes:], np.zeros((6, 6)), np.zeros((1, 1)), a[modes:], six)
        for own, value in zip(split, pin):
            own.append(value)
        parent.append(-1 if last else k + 1)
    twice = [*range(1, 2 * N), -1]
    return Model(parent, *whole), Model(twice, *split)
