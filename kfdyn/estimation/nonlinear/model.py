"""A nonlinear model in time: step, observe, their noise, and everything that estimators ask of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.model.blocks import FloatArray, IntArray, real_array
from kfdyn.estimation.nonlinear import arguments
from kfdyn.estimation.nonlinear.arguments import Prior
from kfdyn.estimation.nonlinear.functions import RowFunction, expect_finite_rows, finite
from kfdyn.estimation.nonlinear.jacobians import GIVEN, Differentiator
from kfdyn.estimation.nonlinear.manifold import Manifold
from kfdyn.estimation.nonlinear.results import NonlinearFiltered, NonlinearSmoothed


class NonlinearModel:
    """A nonlinear state-space model with Gaussian noise; filters, smoothers and online estimators take it.

    ::

        x(k+1) = step(x(k), k) ⊕ B w(k)        w(k) ~ N(0, Q)       or  step(x, w, k)
        y(k)   = observe(x(k), k) ⊕ r(k)       r(k) ~ N(0, R)       or  observe(x, w, k)
        x(0)   = x0 ⊕ e                        e ~ N(0, P0)

    ``step`` and ``observe`` work on independent rows: x is (rows, n), k (rows,). A smoother hands over all times at
    once, a filter one row, sigma points a few (THEORY section 18).

    Parameters
    ----------
    step : callable
        step(x, k) -> (rows, n): from time k to k+1. The names of its arguments say what it takes: step(x, w, k) has
        the noise inside, step(x, u, k) takes a known input, step(x, w, u, k) both.
    observe : callable
        observe(x, k) -> (rows, m); likewise with w, u. A robot's accelerometer sees the w(k) that acts from time k on.
    Q : number, (p,), (p, p) or (N−1, p, p)
        Covariance of w; a vector holds variances, a number is that of each; of the only one where step takes w. It
        may be singular.
    R : number, (m,), (m, m) or (N, m, m)
        Covariance of r, likewise; a number where there is one output. 0 is an exact reading.
    x0 : array (nx,)
        Prior mean. Where the prior is flat: where to linearise first.
    P0 : number, (n,), (n, n) or None
        Prior covariance in the tangent at x0. An infinite variance is a flat prior, which smoothers take and filters
        refuse; None: all of it.
    noise_input : array (n, p) or (N−1, n, p), optional
        B; the identity if not given. Not with a step that takes w.
    step_jacobian, observe_jacobian : callable, optional
        Same arguments as step and observe; (rows, n, n) and (rows, m, n). For a function that takes w, a pair: the
        Jacobian in x and the one in w. In tangents where there is a manifold. If not given: see ``jacobians``.
    plus, minus, plus_jacobian : callable, optional
        ⊕, ⊖ and J(d) of the state, see :class:`Manifold`; then x may have another length than its tangent.
    reading_plus, reading_minus, reading_jacobian : callable, optional
        The same for readings. For an angle, reading_minus, which wraps, is enough.
    jacobians : {"auto", "complex step", "central differences"}
        How to differentiate what is not given. "auto" takes complex steps if they agree with differences.
    reading_groups : sequence of length m, optional
        Labels: outputs with one label are one reading to a robust loss; all of them if not given.
    state_names : sequence of str, optional
        Names of the n tangent components for error messages.

    Attributes
    ----------
    n, p : int
        Sizes of the tangent of x and of w.

    Notes
    -----
    A subclass may replace the methods ``advance``, ``read``, ``linear_step`` and ``linear_read`` (each one call for
    all rows), the two manifolds, and ``check_readings``, ``check_inputs``, ``check_prior``, which say what y, u and
    prior may look like. Nothing else is asked of a model.

    Examples
    --------
    A pendulum seen through the sine of its angle:

    >>> import numpy as np, kfdyn as kf
    >>> def step(x, k, dt=0.05):
    ...     v = x[:, 1] - dt * 9.81 * np.sin(x[:, 0])
    ...     return np.stack([x[:, 0] + dt * v, v], axis=1)
    >>> model = kf.NonlinearModel(step, lambda x, k: np.sin(x[:, :1]), [1e-8, 1e-4], 0.01, [0.0, 0.0], np.eye(2))
    >>> model
    NonlinearModel(state 2, noise 2, additive; Jacobians: step auto, observe auto)
    """

    #: What filters and smoothers return; a subclass may have results with more words.
    filtered_type: type[NonlinearFiltered] = NonlinearFiltered
    smoothed_type: type[NonlinearSmoothed] = NonlinearSmoothed
    #: What errors call the known input.
    input_name = "u"

    def __init__(
        self,
        step: Callable[..., Any],
        observe: Callable[..., Any],
        Q: ArrayLike,
        R: ArrayLike,
        x0: ArrayLike,
        P0: ArrayLike | None = None,
        *,
        noise_input: ArrayLike | None = None,
        step_jacobian: Callable[..., Any] | None = None,
        observe_jacobian: Callable[..., Any] | None = None,
        plus: Callable[..., Any] | None = None,
        minus: Callable[..., Any] | None = None,
        plus_jacobian: Callable[..., Any] | None = None,
        reading_plus: Callable[..., Any] | None = None,
        reading_minus: Callable[..., Any] | None = None,
        reading_jacobian: Callable[..., Any] | None = None,
        jacobians: str = "auto",
        reading_groups: Sequence[Any] | None = None,
        state_names: Sequence[str] | None = None,
    ) -> None:
        self._step, self._observe = RowFunction(step, "step"), RowFunction(observe, "observe")
        self.states = Manifold(plus, minus, plus_jacobian, "x")
        self.readings = Manifold(reading_plus, reading_minus, reading_jacobian, "y")
        start = np.atleast_1d(real_array(x0, "x0"))
        if start.ndim != 1:
            raise ShapeError(f"x0 must be one state (nx,), got shape {start.shape}")
        self.n = int(self.states.minus(start[None], start[None]).shape[1])
        self.states.expect_inverse(start[None])
        if np.ndim(Q) == 0 and not self._step.takes_w:  # where step takes w, only it knows how many there are
            Q = np.full(self.n if noise_input is None else np.shape(noise_input)[-1:], Q)
        self.Q, self.R = arguments.covariance(Q, "Q"), arguments.covariance(R, "R")
        self.p = self.Q.shape[-1]
        self.B = self._checked_input(noise_input)
        self.prior = self.check_prior((start, P0))
        self._jacobian_of = {
            name: None if given is None else RowFunction(given, name + "_jacobian")
            for name, given in (("step", step_jacobian), ("observe", observe_jacobian))
        }
        self._differentiators = {
            (name, of): Differentiator(jacobians) for name in ("step", "observe") for of in ("x", "w")
        }
        self.reading_groups = reading_groups
        self.state_names = tuple(state_names or (f"x[{i}]" for i in range(self.n)))
        if len(self.state_names) != self.n:
            raise ShapeError(f"state_names has {len(self.state_names)} names for {self.n} components")

    def _checked_input(self, given: ArrayLike | None) -> FloatArray | None:
        """B, checked; None is the identity, or a step that takes w."""
        if given is None:
            if not self._step.takes_w and self.p != self.n:
                raise ShapeError(
                    f"Q is of size {self.p}, but the tangent of x has size {self.n}; give noise_input, a matrix "
                    f"{(self.n, self.p)}, or a function step(x, w, k)"
                )
            return None
        if self._step.takes_w:
            raise ModelError("noise_input is given, but step takes w itself; leave one of them out")
        B = real_array(given, "noise_input")
        if B.ndim not in (2, 3) or B.shape[-2:] != (self.n, self.p) or not np.isfinite(B).all():
            raise ShapeError(f"noise_input must be finite, of shape {(self.n, self.p)}, as x and Q say; got {B.shape}")
        return B

    @property
    def jacobians(self) -> dict[str, str]:
        """The way in which Jacobians of step and observe are found; "auto" until the first is needed."""
        told = {}
        for name, function in self._jacobian_of.items():
            told[name] = GIVEN if function is not None else self._differentiators[name, "x"].kind
        return told

    def __repr__(self) -> str:
        noise = "inside step" if self._step.takes_w else ("additive" if self.B is None else "through noise_input")
        seen = ", seen by observe" if self.carries_noise else ""
        ways = ", ".join(f"{name} {how}" for name, how in self.jacobians.items())
        return f"{type(self).__name__}(state {self.n}, noise {self.p}, {noise}{seen}; Jacobians: {ways})"

    # --- what estimators ask of a model; x (rows, nx), w (rows, p), u (rows, ·) or None, k (rows,)

    @property
    def takes_inputs(self) -> bool:
        """True if step or observe takes a known input u."""
        return self._step.takes_u or self._observe.takes_u

    @property
    def reading_size(self) -> int | None:
        """Numbers of a reading; None where that is known only when one is there."""
        known: int | None = self.__dict__.get("_my")
        return known if known is not None or not self.readings.is_vector_space else int(self.R.shape[-1])

    @property
    def noise_is_inside(self) -> bool:
        """True if step takes w itself, so that sigma points must spread over it."""
        return self._step.takes_w

    @property
    def carries_noise(self) -> bool:
        """True if readings see w(k), so that an estimator must carry it beside x(k)."""
        return self._observe.takes_w

    def advance(self, x: FloatArray, w: FloatArray, u: FloatArray | None, k: IntArray) -> FloatArray:
        """x(k+1), (rows, nx), noise included."""
        return self._noisy(self._step(x, w, u, k, x.shape[1]), w, k)

    def read(self, x: FloatArray, w: FloatArray, u: FloatArray | None, k: IntArray) -> FloatArray:
        """Predicted readings, (rows, my)."""
        return self._observe(x, w, u, k, self._reading_size(x, w, u, k))

    def linear_step(
        self, x: FloatArray, w: FloatArray, u: FloatArray | None, k: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """x(k+1) with its Jacobians in x and w: (rows, nx), F (rows, n, n), B (rows, n, p), in tangents."""
        s = self._step(x, w, u, k, x.shape[1])
        expect_finite_rows(s, "step", x, k)
        if self._step.takes_w:
            F, B = self._pair("step", self._step, s, self.states, self.n, x, w, u, k)
            return s, F, B
        F = self._in_x("step", self._step, s, self.states, self.n, x, w, u, k)
        B = np.broadcast_to(self.noise_input(k), (len(x), self.n, self.p))
        f = self._noisy(s, w, k)
        if not self.states.adds and w.any():
            d = self._moved_by(w, k)
            J = self.states.plus_jacobian(s, d)
            F, B = J @ self.states.minus_jacobian(f, s) @ F, J @ B
        return f, F, B

    def linear_read(
        self, x: FloatArray, w: FloatArray, u: FloatArray | None, k: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """Predicted readings with their Jacobians: (rows, my), (rows, m, n), and (rows, m, p) if they see w."""
        h = self.read(x, w, u, k)
        expect_finite_rows(h, "observe", x, k)
        m = self.readings.minus(h, h).shape[1]
        if self._observe.takes_w:
            return h, *self._pair("observe", self._observe, h, self.readings, m, x, w, u, k)
        return h, self._in_x("observe", self._observe, h, self.readings, m, x, w, u, k), None

    def process_noise(self, k: IntArray) -> FloatArray:
        """Q of the steps from k on, (rows, p, p) or (p, p)."""
        return self.Q if self.Q.ndim == 2 else _taken(self.Q, k, "Q")

    def reading_noise(self, k: IntArray) -> FloatArray:
        """R of the readings at k, (rows, m, m) or (m, m)."""
        return self.R if self.R.ndim == 2 else _taken(self.R, k, "R")

    def check_prior(self, prior: Any) -> Prior:
        """The prior of step 0 from (x0, P0); None is the model's own."""
        if prior is None:
            return self.prior
        if not isinstance(prior, tuple | list) or len(prior) != 2:
            raise ModelError("prior must be a pair (x0, P0): mean, and covariance or None")
        found = arguments.prior(prior[0], prior[1], self.n)
        own = getattr(self, "prior", None)
        if own is not None and found.x0.shape != own.x0.shape:
            raise ShapeError(f"x0 of the prior has shape {found.x0.shape}, but the model's x has {own.x0.shape}")
        return found

    def check_readings(self, y: Any) -> tuple[FloatArray, bool]:
        """Readings as (batch, N, my), and whether the caller gave a batch."""
        array = arguments.readings(y)
        N = array.shape[1]
        arguments.expect_steps(self.Q, "Q", (N,) if self.carries_noise else (N - 1, N))
        arguments.expect_steps(self.R, "R", (N,))
        if self.B is not None and self.B.ndim == 3 and len(self.B) < N - 1:
            raise ShapeError(f"noise_input has {len(self.B)} matrices, but y needs {N - 1}")
        return array, np.ndim(y) == 3

    def check_inputs(self, u: Any, batch: int, steps: int, **named: Any) -> FloatArray | None:
        """Known inputs as (batch, N, ·), or None."""
        if named:
            raise TypeError(f"unexpected arguments: {', '.join(named)}; known inputs are given as u=")
        return arguments.inputs(u, batch, steps, self._observe.takes_u, self.takes_inputs)

    def reading_row(self, y: Any, k: int) -> FloatArray:
        """Return the reading (1, my) of step k from what an online filter is given; None is missing as a whole."""
        size = self.reading_size
        if y is None:
            if size is None:
                raise ModelError(
                    "the first reading is missing as a whole, so its size is unknown; give NaN of its size"
                )
            return np.full((1, size), np.nan)
        row = np.array(real_array(y, f"the reading of step {k}"), ndmin=1)  # a copy: a caller may use its memory again
        if row.ndim != 1 or (size is not None and row.size != size):
            raise ShapeError(f"a reading must have shape ({size if size is not None else 'm'},), got {np.shape(y)}")
        if not finite(row) and np.isinf(row).any():
            raise ModelError(f"the reading of step {k} is infinite; mark a missing one by NaN")
        return row[None]

    def input_row(self, u: Any, k: int) -> FloatArray | None:
        """The known input (1, ·) of step k, as online filters are given it."""
        if u is None:
            if self.takes_inputs:
                raise ModelError(f"the model takes known inputs; give u for step {k}: step(y, u)")
            return None
        if not self.takes_inputs:
            raise ModelError("u is given, but neither step nor observe takes an argument u: step(x, u, k)")
        row = np.array(real_array(u, f"{self.input_name} of step {k}"), ndmin=1)
        if row.ndim != 1:
            raise ShapeError(f"{self.input_name} of step {k} must be a row, got shape {np.shape(u)}")
        if not finite(row):
            raise ShapeError(f"{self.input_name} of step {k} must be a finite row; it has NaN or infinite entries")
        return row[None]

    def residual(self, y: FloatArray, h: FloatArray, k: IntArray) -> FloatArray:
        """T = y ⊖ h, (rows, m), NaN where missing."""
        if self.readings.is_vector_space and y.shape != h.shape:
            raise ShapeError(f"y has {y.shape[1]} columns, but observe returns {h.shape[1]} at step {int(k[0])}")
        T = self.readings.minus(y, h)
        if T.shape[1] != self.R.shape[-1]:
            raise ShapeError(
                f"a reading has {T.shape[1]} outputs, but R is of size {self.R.shape[-1]}; R must be "
                f"{(T.shape[1], T.shape[1])}, or a vector of {T.shape[1]} variances"
            )
        return T

    def cure_for(self, names: Sequence[str]) -> str:
        """Return the advice for states that no reading determines."""
        return "add a reading that depends on it"

    def filter_halves(self, kind: str, points: Any = None) -> Any:
        """Return the correction and the prediction of filters; a subclass may compile both."""
        if kind == "extended":
            from kfdyn.estimation.nonlinear.extended import Extended

            return Extended()
        from kfdyn.estimation.nonlinear.unscented import SigmaPoints, Unscented

        return Unscented(points or SigmaPoints())

    # --- how the model's own functions are differentiated

    def _reading_size(self, x: FloatArray, w: FloatArray, u: FloatArray | None, k: IntArray) -> int:
        """Columns that observe returns; the same each time, so it is asked once."""
        size: int | None = self.__dict__.get("_my")
        if size is None:
            value = np.asarray(self._observe.raw(x, w, u, k))
            size = value.shape[1] if value.ndim == 2 else self.R.shape[-1]
            self.__dict__["_my"] = size
        return size

    def noise_input(self, k: IntArray) -> FloatArray:
        """B of the steps from k on, (rows, n, p) or (n, p); not where the noise is inside step."""
        if self.B is None:
            return np.eye(self.n)
        return self.B if self.B.ndim == 2 else _taken(self.B, k, "noise_input")

    def _moved_by(self, w: FloatArray, k: IntArray) -> FloatArray:
        return w if self.B is None else (self.noise_input(k) @ w[:, :, None])[:, :, 0]

    def _noisy(self, s: FloatArray, w: FloatArray, k: IntArray) -> FloatArray:
        if self._step.takes_w or not w.any():
            return s
        return self.states.plus(s, self._moved_by(w, k))

    def _scale(self, x: FloatArray) -> FloatArray | None:
        return x if x.shape[1] == self.n else None

    def _in_x(
        self, name: str, function: RowFunction, value: FloatArray, out: Manifold, size: int,
        x: FloatArray, w: FloatArray, u: FloatArray | None, k: IntArray,
    ) -> FloatArray:  # fmt: skip
        given = self._jacobian_of[name]
        if given is not None:
            return _checked(given.raw(x, w, u, k), name, (len(x), size, self.n))

        def perturbed(d: Any, i: NDArray[np.intp]) -> Any:
            moved = function(self.states.plus(x[i], d), w[i], _rows(u, i), k[i], value.shape[1])
            return out.minus(moved, value[i])

        return self._differentiators[name, "x"](perturbed, self.n, len(x), self._scale(x))

    def _pair(
        self, name: str, function: RowFunction, value: FloatArray, out: Manifold, size: int,
        x: FloatArray, w: FloatArray, u: FloatArray | None, k: IntArray,
    ) -> tuple[FloatArray, FloatArray]:  # fmt: skip
        """Jacobians in x and in w of a function that takes w."""
        given = self._jacobian_of[name]
        if given is not None:
            both = given.raw(x, w, u, k)
            if not isinstance(both, tuple | list) or len(both) != 2:
                raise ShapeError(f"{name} takes w, so {name}_jacobian must return a pair: Jacobians in x and in w")
            in_x, in_w = both
            rows = len(x)
            return _checked(in_x, name, (rows, size, self.n)), _checked(in_w, name, (rows, size, self.p))
        in_x = self._in_x(name, function, value, out, size, x, w, u, k)

        def perturbed(d: Any, i: NDArray[np.intp]) -> Any:
            moved = function(x[i], w[i] + d, _rows(u, i), k[i], value.shape[1])
            return out.minus(moved, value[i])

        return in_x, self._differentiators[name, "w"](perturbed, self.p, len(x), w)


def _rows(u: FloatArray | None, i: NDArray[np.intp]) -> FloatArray | None:
    return None if u is None else u[i]


def _taken(stack: FloatArray, k: IntArray, name: str) -> FloatArray:
    """The matrices of steps k."""
    if len(k) and int(k.max()) >= len(stack):
        raise ShapeError(f"{name} is given for {len(stack)} steps, and step {int(k.max())} is beyond them")
    return stack[k]


def _checked(value: Any, name: str, shape: tuple[int, ...]) -> FloatArray:
    J = np.asarray(value, np.float64)
    if J.shape != shape:
        if J.shape == shape[1:]:  # one matrix for all rows
            return np.broadcast_to(J, shape)
        raise ShapeError(f"{name}_jacobian returned shape {J.shape}; it must return {shape}, one matrix a row")
    if not np.isfinite(J).all():
        raise ModelError(f"{name}_jacobian returned entries that are not finite")
    return J
