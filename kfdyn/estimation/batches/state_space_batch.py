"""Many linear-Gaussian models of one tree and the same sizes: what differs has a leading axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import KfdynError, ModelError, ShapeError
from kfdyn.estimation.model.blocks import Blocks, FloatArray, real_array
from kfdyn.estimation.model.chain import told_of_edges
from kfdyn.estimation.model.state_space import StateSpace, expect_model
from kfdyn.estimation.model.validation import surely_covariances

_NAMES = ("phi", "H", "Q", "R")


class StateSpaceBatch:
    """B models side by side: one tree, the same sizes, numbers of their own. Ensembles, samplers, grids, many series.

    The filter, the smoother and the score take them, :math:`B` at once, a model in each lane of the processor and on
    all threads; a model gets the same bits in any batch.

    Parameters
    ----------
    like : StateSpace
        Tree, sizes, names, flat states, and all that the models have in common.
    phi, H, Q, R : array (B, N, rows, columns), or sequence of B, optional
        What differs, for each model as :meth:`StateSpace.replace` takes it. (B, 1, rows, columns) is the same at all
        nodes.
    xi : array, shape (B, Σn_k), optional
        Known means of w.

    Attributes
    ----------
    like : StateSpace
        As given.
    phi, H, Q, R : Blocks
        ``phi[k]`` is (B, rows, columns), or (1, rows, columns) where all models have the same; read-only.
    xi : ndarray, shape (B, Σn_k) or (1, Σn_k), or None
        Known means.

    Examples
    --------
    A random walk with three noise levels, filtered for one series:

    >>> import numpy as np, kfdyn as kf
    >>> one = np.ones((1, 1))
    >>> walk = kf.StateSpace.chain(one, one, one, one, x0=[0.0], P0=one, steps=4)
    >>> many = kf.StateSpaceBatch(walk, R=np.array([0.5, 1.0, 2.0]).reshape(3, 1, 1, 1))
    >>> len(many), kf.kalman_filter(many, [1.0, 0.5, 2.0, 2.5]).llf.round(4)
    (3, array([-5.9256, -6.3433, -6.9578]))
    """

    def __init__(
        self,
        like: StateSpace,
        *,
        phi: Any = None,
        H: Any = None,
        Q: Any = None,
        R: Any = None,
        xi: ArrayLike | None = None,
    ) -> None:
        expect_model(like, "like")
        if like.eta is not None:
            raise ModelError("models side by side have no eta; filter a model with a known input of the co-state alone")
        given = {name: value for name, value in zip(_NAMES, (phi, H, Q, R)) if value is not None}
        counts = {name: len(value) for name, value in {**given, **({} if xi is None else {"xi": xi})}.items()}
        if not counts:
            raise ShapeError("give what differs from model to model: phi, H, Q, R or xi, with a leading axis")
        B = max(counts.values())
        for name, count in counts.items():
            if count != B:
                raise ShapeError(f"{name} has {count} entries along its first axis, but there are {B} models")
        if not B:
            raise ShapeError("a batch has at least one model")
        blocks = {name: _packed(like, name, value) for name, value in given.items()}
        for name in _NAMES:
            if name not in blocks:
                own = getattr(like, name)
                blocks[name] = own.like(own.flat[None])
        means = None if like.xi is None else like.xi.reshape(-1, like.n_states)
        if xi is not None:
            means = np.array(like.check_states(xi, "xi"))
            if means.shape != (B, like.n_states):
                raise ShapeError(f"xi must have shape {(B, like.n_states)}, one row for each model; got {means.shape}")
        elif means is not None and len(means) != 1:
            raise ShapeError("the model's xi has batch axes of its own; give xi (B, Σn_k), one row for each model")
        self._set(like, B, blocks, means)

    def _set(self, like: StateSpace, B: int, blocks: dict[str, Blocks], xi: FloatArray | None) -> None:
        for array in (*(one.flat for one in blocks.values()), *(() if xi is None else (xi,))):
            array.flags.writeable = False
        if blocks["phi"].offsets is not like.phi.offsets:  # laid out in another way
            like = like._with({"phi": blocks["phi"].like(np.array(blocks["phi"].flat[0]))})
        self.__dict__.update(like=like, xi=xi, _count=B, **blocks)

    phi: Blocks
    H: Blocks
    Q: Blocks
    R: Blocks
    like: StateSpace
    xi: FloatArray | None
    _count: int

    @classmethod
    def of(cls, models: Sequence[StateSpace]) -> StateSpaceBatch:
        """Put models side by side that have been built one by one.

        Parameters
        ----------
        models : sequence of StateSpace
            Models of the same tree, sizes and flat states; at least one.
        """
        models = list(models)
        expect_alike(models)
        first = models[0]
        for b, model in enumerate(models):
            if model.eta is not None or (model.xi is not None and model.xi.ndim > 1):
                raise ModelError(f"model {b} has eta, or an xi with batch axes, which models side by side have not")
        blocks = {}
        for name in _NAMES:
            own = [getattr(model, name) for model in models]
            if all(one.flat is own[0].flat for one in own):
                blocks[name] = own[0].like(own[0].flat[None])
                continue
            starts = own[0].offsets
            if any(one.offsets is not starts and not np.array_equal(one.offsets, starts) for one in own):
                own = [one.packed() for one in own]
            blocks[name] = own[0].like(np.stack([one.flat for one in own]))
        xi = None
        if any(model.xi is not None for model in models):
            xi = np.stack([np.zeros(first.n_states) if model.xi is None else model.xi for model in models])
        batch = cls.__new__(cls)
        batch._set(first, len(models), blocks, xi)
        return batch

    @classmethod
    def chain(
        cls,
        F: ArrayLike | None,
        H: ArrayLike,
        Q: ArrayLike | None,
        R: ArrayLike,
        x0: ArrayLike | None = None,
        P0: ArrayLike | None = None,
        *,
        inputs: ArrayLike | None = None,
        steps: int | None = None,
    ) -> StateSpaceBatch:
        """Build time series side by side: :meth:`StateSpace.chain`, where what differs has a leading axis of B.

        Parameters
        ----------
        F, Q : array (B, N−1, n, n), or (B, 1, n, n) where time-invariant; or as for one series
            Transition and process covariance of each edge.
        H : array (B, N, m, n), or (B, 1, m, n); or as for one series
            Output maps.
        R : array (B, N, m, m), or (B, 1, m, m); or as for one series
            Measurement noise covariances.
        x0 : array (B, n) or (n,), optional
            Prior means of step 0.
        P0 : array (B, n, n) or (n, n), optional
            Prior covariances of step 0.
        inputs : array (B, N−1, n) or (N−1, n), optional
            Known inputs on the edges.
        steps : int, optional
            N; needed only where nothing else tells it.

        Examples
        --------
        >>> import numpy as np
        >>> one, q = np.ones((1, 1)), np.array([0.1, 1.0, 10.0]).reshape(3, 1, 1, 1)
        >>> StateSpaceBatch.chain(one, one, q, one, x0=[0.0], P0=one, steps=100)
        StateSpaceBatch(3 models like StateSpace(100 nodes, states 100 (1 each), outputs 100 (1 each), R > 0 somewhere))
        """
        axes = {"F": 4, "H": 4, "Q": 4, "R": 4, "x0": 2, "P0": 3, "inputs": 3}
        values = {"F": F, "H": H, "Q": Q, "R": R, "x0": x0, "P0": P0, "inputs": inputs}
        known = {name: real_array(value, name) for name, value in values.items() if value is not None}
        many = {name: value for name, value in known.items() if value.ndim == axes[name]}
        counts = {name: len(value) for name, value in many.items()}
        if len(set(counts.values())) != 1 or 0 in counts.values():
            told = ", ".join(f"{name} {count}" for name, count in counts.items()) or "none of them"
            raise ShapeError(f"what differs from series to series has a leading axis of one length; here: {told}")
        B = next(iter(counts.values()))
        one = {
            name: value if name not in many else value[0, 0] if axes[name] == 4 and value.shape[1] == 1 else value[0]
            for name, value in known.items()
        }
        given: Any = [one.get(name) for name in ("F", "H", "Q", "R", "x0", "P0")]
        like = StateSpace.chain(*given, inputs=one.get("inputs"), steps=steps)
        N, n = len(like), int(like.n[0])
        differing: dict[str, Any] = {name: many[name] for name in ("H", "R") if name in many}
        if "F" in many:
            phi = np.zeros((B, N, n, n))
            phi[:, :-1] = many["F"]
            differing["phi"] = phi if many["F"].shape[1] > 1 else many["F"]
        if "Q" in many or "P0" in many:
            noise = np.zeros((B, N, n, n))
            noise[:, 0] = known.get("P0", np.zeros((n, n)))
            noise[:, 1:] = known.get("Q", np.zeros((n, n)))
            differing["Q"] = noise
        if "x0" in many or "inputs" in many:
            xi = np.zeros((B, N, n))
            xi[:, 0] = known.get("x0", np.zeros(n))
            xi[:, 1:] = known.get("inputs", np.zeros(n))
            differing["xi"] = xi.reshape(B, N * n)
        with told_of_edges():
            return cls(like, **differing)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, b: int) -> StateSpace:
        """Model b alone."""
        if not -len(self) <= b < len(self):
            raise IndexError(f"there are {len(self)} models, but the index is {b}")
        blocks = {name: getattr(self, name) for name in _NAMES}
        new = {name: own.like(own.flat[b]) for name, own in blocks.items() if len(own.flat) > 1}
        xi = None if self.xi is None else self.xi[b if len(self.xi) > 1 else 0]
        return self.like._with(new, xi)

    def __iter__(self) -> Iterator[StateSpace]:
        return (self[b] for b in range(len(self)))

    def __repr__(self) -> str:
        return f"StateSpaceBatch({len(self)} models like {self.like!r})"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"StateSpaceBatch is immutable; build another to change '{name}'")


def expect_alike(models: Sequence[StateSpace]) -> None:
    """Refuse models that differ in tree, sizes or flat states."""
    if not models:
        raise ShapeError("a batch has at least one model")
    first = models[0]
    for b, model in enumerate(models):
        expect_model(model, f"model {b}")
        if model.tree != first.tree or not (np.array_equal(model.n, first.n) and np.array_equal(model.m, first.m)):
            raise ShapeError(f"the models must have the same tree and sizes, and model {b} differs from model 0")
        if not np.array_equal(_flat_of(model), _flat_of(first)):
            raise ModelError(f"the models must have flat priors at the same states, and model {b} differs from model 0")


def _flat_of(model: StateSpace) -> Any:
    return np.zeros(0, dtype=np.int64) if model.flat is None else model.flat


def _packed(like: StateSpace, name: str, given: Any) -> Blocks:
    """The blocks of all models, (B, …), as arrays where they are good, else model by model, which tells what is not."""
    own = getattr(like, name)
    array = given if isinstance(given, np.ndarray) and given.dtype != object else None
    if array is not None and array.ndim != 4:
        raise ShapeError(
            f"{name} as one array must have shape (B, N, rows, columns), or (B, 1, rows, columns); got {array.shape}"
        )
    if array is not None and array.shape[1] == 1 != len(like):
        array = np.broadcast_to(array, (len(array), len(like), *array.shape[2:]))
    n, m = like.common.n, like.common.m
    shape = {"phi": (n, n), "H": (m, n), "Q": (n, n), "R": (m, m)}[name]
    if array is not None and array.shape[1:] == (len(like), *shape):
        array = real_array(array, name)
        flat = np.array(array if name != "phi" else array[:, like.tree.parent >= 0]).reshape(len(array), -1)
        sure = name in ("phi", "H") or surely_covariances(flat.reshape(-1), np.tile(own.rows, len(array)))
        if sure and np.isfinite(flat).all():
            return own.packed().like(flat)
    found = []
    for b, one in enumerate(given if array is None else array):
        try:
            found.append(getattr(like.replace(**{name: one}), name).packed())
        except KfdynError as error:
            raise type(error)(f"model {b}: {error}") from None
    return found[0].like(np.stack([one.flat for one in found]))
