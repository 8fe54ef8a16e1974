"""A filter that takes one reading at a time, with a smoother over the last few."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.model.blocks import FloatArray
from kfdyn.estimation.nonlinear import arguments
from kfdyn.estimation.nonlinear.extended import Belief, Corrected, first
from kfdyn.estimation.nonlinear.model import NonlinearModel
from kfdyn.estimation.nonlinear.results import NonlinearSmoothed


class _Moment:
    """A step of the window: its prediction, reading and input."""

    __slots__ = ("llf_before", "now", "predicted", "u", "y")

    def __init__(
        self, predicted: Belief, now: Corrected, y: FloatArray, u: FloatArray | None, llf_before: float
    ) -> None:
        self.predicted, self.now, self.y, self.u, self.llf_before = predicted, now, y, u, llf_before


class OnlineFilter:
    """Filter a model's readings one at a time; smooth the last ``lag`` + 1 steps when asked.

    The window never grows: the prior of its oldest step is what the filter predicted there, and the reading of that
    step stays inside (THEORY section 18). With lag = 0 nothing is kept but the last belief.

    Parameters
    ----------
    model : NonlinearModel
        The model.
    prior : (x0, P0), optional
        In place of the model's.
    lag : int
        How many steps back readings may arrive late, and :meth:`smooth` looks.
    kind : {"extended", "unscented"}
        The filter.
    points : SigmaPoints, optional
        Weights of an unscented filter.

    Attributes
    ----------
    k : int
        The step of the newest reading; −1 before the first.
    x, cov : ndarray, shapes (nx,) and (n, n)
        Mean and covariance given all readings so far; before the first, the prior.
    llf : float
        Log-likelihood of all readings so far.
    nis : float
        ε*D⁻¹ε of the newest reading, χ² with as many degrees as were read: a jump is an event.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> model = kf.NonlinearModel(lambda x, k: np.sin(x), lambda x, k: x**2, 0.1, 0.1, 1.0, 1.0)
    >>> live = kf.OnlineFilter(model, lag=2)
    >>> for y in ([1.1], [0.9], None, [0.5]):
    ...     _ = live.step(y)
    >>> live.k, live.x.round(3), live.smooth().x.ravel().round(3)
    (3, array([0.71]), array([0.931, 0.798, 0.71 ]))
    """

    def __init__(
        self, model: NonlinearModel, prior: Any = None, lag: int = 0, *, kind: str = "extended", points: Any = None
    ) -> None:
        if not isinstance(lag, int | np.integer) or lag < 0:
            raise ModelError(f"lag must be a whole number, 0 or more, got {lag!r}")
        if kind not in ("extended", "unscented"):
            raise ModelError(f"kind must be 'extended' or 'unscented', got {kind!r}")
        arguments.expect_model(model)
        arguments.expect_points(points)
        self.model, self.lag, self.kind = model, int(lag), kind
        self._halves = model.filter_halves(kind, points)
        self._next = first(model, model.check_prior(prior), 1)
        self._window: deque[_Moment] = deque(maxlen=self.lag + 1)
        self._llf = 0.0
        self.k = -1

    # --- readings

    def step(self, y: Any, u: Any = None) -> FloatArray:
        """Take the reading of the next step, and return the mean.

        Parameters
        ----------
        y : array (m,) or None
            The reading; None or NaN is missing.
        u : array, optional
            Known input u[k] of this step: it acts from this step to the next, and this reading may see it. This is
            row k of what the filters of whole series take.
        """
        k, model = self.k + 1, self.model
        row, known = model.reading_row(y, k), model.input_row(u, k)
        if self._window:
            self._predict()
        return self._take(row, known).x[0]

    def act(self, u: Any) -> None:
        """Say what input acts from the newest step on, where a controller decides it after the reading.

        Parameters
        ----------
        u : array
            In place of the ``u`` of the last :meth:`step`; not for models whose readings see it.
        """
        if not self._window:
            raise ModelError("no reading has been taken yet; the first input acts from the first step on")
        if self.model.carries_noise:
            raise ModelError("the readings of this model see the input, which must be given with them: step(y, u)")
        self._window[-1].u = self.model.input_row(u, self.k)

    def late(self, y: Any, k: int) -> FloatArray:
        """Take a reading of an earlier step k that arrives only now, and return the newest mean.

        What is not NaN in y replaces what was known of that step, and the filter runs again from there.
        """
        oldest = self.oldest
        if not isinstance(k, int | np.integer):
            raise ModelError(f"a late reading is of a step, a whole number, got {k!r}")
        if not oldest <= k <= self.k:
            cure = f"a larger lag (now {self.lag})" if 0 <= k < oldest else "step() for new readings"
            raise ModelError(f"a late reading of step {k!r}: the window holds steps {oldest} to {self.k}; use {cure}")
        row, moment = self.model.reading_row(y, int(k)), self._window[k - oldest]
        merged = np.where(np.isnan(row), moment.y, row)
        kept = [merged if j == k - oldest else one.y for j, one in enumerate(self._window)]
        inputs = [one.u for one in self._window]
        self._replay(self._window[0].predicted, self._window[0].llf_before, oldest, kept, inputs)
        return self.x

    # --- what is known

    @property
    def x(self) -> FloatArray:
        """Mean given all readings so far, (nx,)."""
        return self._belief.x[0]

    @property
    def cov(self) -> FloatArray:
        """Covariance given all readings so far, (n, n)."""
        return self._belief.P[0]

    @property
    def std(self) -> FloatArray:
        """Standard deviations, (n,)."""
        return np.sqrt(np.clip(np.diag(self.cov), 0.0, None))

    @property
    def llf(self) -> float:
        """Log-likelihood of all readings so far, each innovation taken as normal."""
        return self._llf

    @property
    def nis(self) -> float:
        """ε*D⁻¹ε of the newest reading."""
        if not self._window:
            raise ModelError("there is no reading yet; call step(y)")
        return float(self._window[-1].now.step.nis[0])

    @property
    def oldest(self) -> int:
        """The first step of the window."""
        return self.k + 1 - len(self._window)

    def smooth(self, **options: Any) -> NonlinearSmoothed:
        """Smooth the window: its first row is step ``oldest``, its last step ``k``.

        ``options`` are those of :func:`iterated_kalman_smoother`: robust, search, iterations, tolerance, covariances.
        """
        from kfdyn.estimation.nonlinear.smoother import smooth_window

        if not self._window:
            raise ModelError("there is nothing to smooth yet; call step(y)")
        start = np.stack([one.now.belief.x[0] for one in self._window])
        inputs = None
        if self._window[0].u is not None:
            inputs = np.stack([np.asarray(one.u)[0] for one in self._window])[None]
        prior = self._window[0].predicted
        known = arguments.Prior(prior.x[0], prior.P[0], np.zeros(self.model.n, bool))
        y = np.stack([one.y[0] for one in self._window])[None]
        return smooth_window(self.model, y, inputs, known, self.oldest, start, options)

    # --- saving

    def save(self) -> dict[str, Any]:
        """All that :meth:`restore` needs, as a dict of arrays and numbers."""
        belief = self._window[0].predicted if self._window else self._next
        y = [one.y[0] for one in self._window]
        u = [one.u[0] for one in self._window if one.u is not None]
        return {
            "x": belief.x[0].copy(),
            "P": belief.P[0].copy(),
            "y": np.array(y),
            "u": np.array(u),
            "llf": self._window[0].llf_before if self._window else self._llf,
            "k": self.k,
            "lag": self.lag,
            "kind": self.kind,
        }

    @classmethod
    def restore(cls, model: NonlinearModel, saved: dict[str, Any], *, points: Any = None) -> OnlineFilter:
        """Continue where :meth:`save` was called."""
        if not isinstance(saved, Mapping):
            raise ModelError(f"saved must be the dict that save() returned, got {type(saved).__name__}")
        missing = [name for name in ("x", "P", "y", "u", "llf", "k", "lag", "kind") if name not in saved]
        if missing:
            raise ModelError(
                f"what save() returned has {missing[0]!r}, and this has not; restore(model, saved) takes it"
            )
        arguments.expect_model(model)
        if np.shape(saved["x"]) != model.prior.x0.shape:
            raise ShapeError(
                f"a filter of another model was saved: its x has shape {np.shape(saved['x'])}, and this model's has "
                f"{model.prior.x0.shape}"
            )
        live = cls(model, (saved["x"], saved["P"]), int(saved["lag"]), kind=str(saved["kind"]), points=points)
        y, u = np.asarray(saved["y"]), np.asarray(saved["u"])
        size, oldest = model.reading_size, int(saved["k"]) + 1 - len(y)
        if len(y) and size is not None and y.shape[1:] != (size,):
            raise ShapeError(
                f"a filter of another model was saved: its readings have shape {y.shape[1:]}, and this model's have "
                f"{(size,)}; restore it into a model with the same sensors"
            )
        inputs = [model.input_row(u[i] if len(u) else None, oldest + i) for i in range(len(y))]
        belief = Belief(np.array(saved["x"], np.float64)[None], np.array(saved["P"], np.float64)[None])
        live._next = belief
        live._replay(belief, float(saved["llf"]), oldest, [row[None] for row in y], inputs)
        return live

    def __repr__(self) -> str:
        return f"OnlineFilter({self.kind}, lag {self.lag}, {self.k + 1} readings; {self.model!r})"

    # --- inside

    @property
    def _belief(self) -> Belief:
        return self._window[-1].now.belief if self._window else self._next

    def _predict(self) -> None:
        last = self._window[-1]
        self._next = self._halves.predict(self.model, last.now, last.u, self.k)

    def _replay(self, belief: Belief, llf: float, k: int, y: list[FloatArray], u: list[Any]) -> None:
        """Filter the readings of a window again, from what was predicted for its first step."""
        self._window.clear()
        self._next, self._llf, self.k = belief, llf, k - 1
        for row, known in zip(y, u):
            if self._window:
                self._predict()
            self._take(row, known)

    def _take(self, row: FloatArray, known: FloatArray | None) -> Belief:
        """Correct what is predicted by a reading (1, my)."""
        predicted, k = self._next, self.k + 1
        now = self._halves.correct(self.model, predicted, row, known, k)
        self._window.append(_Moment(predicted, now, row, known, self._llf))
        self.k = k
        self._llf += float(now.step.llf[0])
        return now.belief
