"""The iterated Kalman smoother: Gauss–Newton on a whole trajectory, one filter and one smoother a step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.errors import ModelError, SingularError
from kfdyn.estimation.inference.smoothed import Smoothed
from kfdyn.estimation.model.blocks import FloatArray
from kfdyn.estimation.nonlinear import arguments
from kfdyn.estimation.nonlinear.losses import robust_loss
from kfdyn.estimation.nonlinear.model import NonlinearModel
from kfdyn.estimation.nonlinear.results import NonlinearSmoothed
from kfdyn.estimation.nonlinear.trajectory import Linearised, Step, Trajectory, Whitened, squares

_SUFFICIENT = 1e-4  # of the predicted decrease
_HALVINGS = 12
_ROUNDING = 1e-11  # of the cost: no decrease can be seen below it
_FIRST_DAMPING, _MORE, _LESS, _LEAST, _MOST = 1.0, 10.0, 0.1, 1e-4, 1e12
_KNOWN = 1e-6  # of the variance before a reading: the least that counts as the one after it
_STALLED = 1e-5  # standard deviations: a step that no longer shrinks is rounding if it is shorter than this


def iterated_kalman_smoother(
    model: NonlinearModel,
    y: Any,
    u: Any = None,
    *,
    prior: Any = None,
    start: Any = "extended",
    robust: Any = None,
    search: str | None = "line",
    iterations: int = 100,
    tolerance: float = 1e-9,
    covariances: bool = True,
    method: str = "block",
    **inputs: Any,
) -> NonlinearSmoothed:
    """Find the most probable trajectory given all readings, and its covariances.

    Gauss–Newton about (x̄, w̄), where each step is one Kalman filter and one Bryson–Frazier smoother::

        φ = F,  Q = B Q B*,  ξ(k+1) = f(x̄, w̄) ⊖ x̄(k+1) − B w̄,  T = y ⊖ h(x̄, w̄),  H = J(−T)⁻¹ ∂h
        ξ(0) = −r,  P0 ← J(r) P0 J(r)*,  r = x̄(0) ⊖ x0
        x̄ ← x̄ ⊕ x̂,   w̄ ← Q B* λ(k+1)

    Nothing is inverted but the innovation covariances, so Q and P0 may be singular and R may be 0.

    Parameters
    ----------
    model : NonlinearModel
        The model.
    y : array (N, m) or (batch, N, m)
        Readings; NaN is missing. The series of a batch are solved together.
    u : array (N, ·) or (N−1, ·), optional
        Known inputs: u[k] acts from step k to k+1, and readings of step k may see it.
    prior : (x0, P0), optional
        In place of the model's.
    start : "extended", "unscented", "prior", array (N, nx), or a pair of it and noise (N−1, p)
        Where to linearise first: the means of a filter, x0 carried along, or a trajectory. Where there are several
        modes, this decides which is found: compare ``cost`` of several starts.
    robust : Huber, StudentT, "huber" or "student", optional
        Loss of the readings, by iterated reweighting.
    search : {"line", "damped", None}
        What to do with a step that does not decrease the cost: halve it, solve again with every state held
        (Levenberg–Marquardt: one more reading of it), or take it all the same.
    iterations : int
        How many steps at most.
    tolerance : float
        Converged when a step is below this many standard deviations everywhere.
    covariances : bool
        Whether to compute covariances at the end.
    method : {"block", "univariate", "square_root"}
        The engine's, see :func:`kalman_filter`.
    **inputs
        Other names for known inputs: ``tau`` of a :class:`kfdyn.MotionModel`.

    Returns
    -------
    NonlinearSmoothed
        The mode, covariances, co-state, noise, log-likelihood; ``converged``, ``message`` and ``iterations``.

    Notes
    -----
    Steps are compared by the cost plus the defects, each weighted by twice its multiplier: an exact penalty, for which
    the step is a direction of descent. Covariances are those of the model linearised at the mode (Laplace, with
    Gauss–Newton's Hessian). THEORY section 18.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> model = kf.NonlinearModel(lambda x, k: np.sin(x), lambda x, k: x**2, 0.1, 0.1, 1.0, 1.0)
    >>> post = kf.iterated_kalman_smoother(model, [1.1, 0.9, np.nan, 0.5])
    >>> post.x.ravel().round(3), post.converged
    (array([1.054, 0.931, 0.798, 0.71 ]), True)
    """
    arguments.expect_model(model)
    rows, batched = model.check_readings(y)
    known = model.check_inputs(u, len(rows), rows.shape[1], **inputs)
    problem = Trajectory(model, rows, known, model.check_prior(prior), robust_loss(robust), method)
    return _Search(problem, search, iterations, tolerance).run(start, covariances, batched)


def smooth_window(
    model: NonlinearModel, y: FloatArray, u: FloatArray | None, prior: Any, first_step: int, start: FloatArray,
    options: dict[str, Any],
) -> NonlinearSmoothed:  # fmt: skip
    """Smooth the readings y (1, N, my) of steps from ``first_step`` on, under a prior of the first of them."""
    allowed = {"robust", "search", "iterations", "tolerance", "covariances", "method"}
    if not set(options) <= allowed:
        raise TypeError(f"unexpected options {sorted(set(options) - allowed)}; there are {sorted(allowed)}")
    loss, method = robust_loss(options.get("robust")), options.get("method", "block")
    problem = Trajectory(model, y, u, prior, loss, method, first_step)
    search = _Search(
        problem, options.get("search", "line"), options.get("iterations", 100), options.get("tolerance", 1e-9)
    )
    return search.run(start, options.get("covariances", True), False)


class _Trial(NamedTuple):
    """A trajectory that a step leads to; ``told`` is None where the model is not defined."""

    x: FloatArray
    w: FloatArray
    told: Whitened | None
    there: Linearised | None = None


class _Search:
    """A run of the iterations."""

    def __init__(self, problem: Trajectory, search: Any, iterations: Any, tolerance: Any) -> None:
        if search not in ("line", "damped", None):
            raise ModelError(f"search must be 'line', 'damped' or None, got {search!r}")
        if not isinstance(iterations, int | np.integer) or iterations < 0:
            raise ModelError(f"iterations must be a whole number, 0 or more, got {iterations!r}")
        if not tolerance > 0.0:
            raise ModelError(f"tolerance must be positive, got {tolerance!r}")
        self.problem, self.search, self.iterations, self.tolerance = problem, search, int(iterations), float(tolerance)
        self.damping, self.quick = np.zeros(problem.batch), True
        self.spread: FloatArray | None = None  # variances (batch, n), the unit of damping
        self.penalties: tuple[Any, ...] = (0.0, 0.0, 0.0)

    def run(self, start: Any, covariances: bool, batched: bool) -> NonlinearSmoothed:
        """Iterate, and read the result off the last linear model."""
        problem = self.problem
        noise = None
        if isinstance(start, tuple) and len(start) == 2:
            start, noise = start
        x = problem.start(start)
        w = np.zeros((problem.batch, problem.noises, problem.p))
        if noise is not None:
            w[:] = noise
        point = problem.linearise(x, w)
        told = problem.whitened(point.at, w)
        costs = [told.cost]
        before, taken, why = np.full(problem.batch, np.inf), 0, ""
        last: Step | None = None
        while True:
            weights = problem.weights(point.at)
            step = self._solve(point, weights)
            size, done = self._judged(point, step, before)
            if covariances and (done.all() or taken == self.iterations) and step.smooth is None:
                self.quick = False  # the engine has the last word
                step = last = problem.solve(point, weights, None, covariances)
                size, done = self._judged(point, step, before)
            if done.all() or taken == self.iterations:
                break
            before = size
            trial, why = self._advance(point, told, step, weights, done)
            taken += 1
            if trial is None:
                break
            point = trial.there or problem.linearise(trial.x, trial.w)
            told = trial.told or problem.whitened(point.at, trial.w)
            costs.append(told.cost)
        if step is not last and (covariances or self.damping.any()):
            step = problem.solve(point, weights, None, covariances)
        return self._result(point, step, weights, costs, done, taken, size, why, covariances, batched)

    # --- one step

    def _damping(self) -> FloatArray | None:
        if not self.damping.any():
            return None
        assert self.spread is not None
        return self.damping[:, None] / self.spread

    def _solve(self, point: Linearised, weights: FloatArray | None) -> Step:
        """Solve with every state held; undamped where holding them more exactly than rounding allows is asked for."""
        try:
            if self.quick and not self.damping.any():
                step = self.problem.quick_step(point, weights)
                if step is not None:
                    return step
            return self.problem.solve(point, weights, self._damping(), False)
        except SingularError:
            if not self.damping.any():
                raise
            self.damping[:] = 0.0
            return self.problem.solve(point, weights, None, False)

    def _judged(self, point: Linearised, step: Step, before: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
        """The size of a step, and which series it leaves as they are."""
        size = self._size(point, step)
        with np.errstate(invalid="ignore"):
            stalled = (size < _STALLED) & (size > 0.5 * before)
        return size, ((size <= self.tolerance) | stalled) & (self.damping == 0.0)

    def _size(self, point: Linearised, step: Step) -> FloatArray:
        """The longest component of a step, in the filter's standard deviations, (batch,)."""
        few = max(1, self.problem.N // 16)  # a typical variance needs no more than some steps
        after, before = (np.sort(some[:, ::few], axis=1) for some in (step.after, step.before))
        after, before = (some[:, some.shape[1] // 2] for some in (after, before))
        typical = after + _KNOWN * before  # what is read exactly has a variance of rounding
        # A component that is exact from the beginning has its own size as unit.
        longest = np.abs(step.d).max(axis=1, initial=0.0)
        own = np.maximum(longest + np.abs(point.at.prior), 1e-8)
        self.spread = np.where(typical > 0.0, typical, own**2)
        return np.asarray((longest / np.sqrt(self.spread)).max(axis=1, initial=0.0))

    def _ahead(self, point: Linearised, step: Step, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the trajectory after a part of the step."""
        problem = self.problem
        d = alpha[:, None, None] * step.d
        rows = problem.model.states.plus(point.x.reshape(-1, point.x.shape[2]), d.reshape(-1, problem.n))
        return np.asarray(rows).reshape(point.x.shape), point.w + alpha[:, None, None] * (step.w - point.w)

    def _trial(self, point: Linearised, step: Step, alpha: FloatArray) -> _Trial:
        problem, (x, w) = self.problem, self._ahead(point, step, alpha)
        try:
            if (alpha < 1.0).any() or self.damping.any():
                with np.errstate(all="ignore"):
                    return _Trial(x, w, problem.whitened(problem.residuals(x, w), w))
            with np.errstate(all="ignore"):  # most likely taken, so that its Jacobians are needed
                there = problem.linearise(x, w)
                return _Trial(x, w, problem.whitened(there.at, w), there)
        except ModelError:  # a whole step may lead to where no mechanics is
            return _Trial(x, w, None)

    def _advance(
        self, point: Linearised, told: Whitened, step: Step, weights: FloatArray | None, done: NDArray[np.bool_]
    ) -> tuple[_Trial | None, str]:
        """The next trajectory, or None and the reason."""
        alpha = np.ones(self.problem.batch)
        if self.search is None:
            return _Trial(*self._ahead(point, step, alpha), None), ""
        self._weigh_defects(point, step)
        here = self._merit(told)
        promised = self._promised(point, told, step, weights)
        slack = _ROUNDING * (1.0 + np.abs(here))
        for _ in range(_HALVINGS if self.search == "line" else 40):
            trial = self._trial(point, step, alpha)
            there = self._merit(trial.told)
            enough = here - there >= _SUFFICIENT * alpha * promised - slack
            good = enough | done
            if good.all():
                self.damping = np.where(self.damping > _LEAST, self.damping * _LESS, 0.0)
                return trial, ""
            if self.search == "line":
                alpha = np.where(good, alpha, 0.5 * alpha)
                continue
            more = np.where(self.damping > 0.0, self.damping * _MORE, _FIRST_DAMPING)
            self.damping = np.where(good, self.damping, more)
            if self.damping.max() > _MOST:
                break
            step = self._solve(point, weights)
            if not self.damping.any():
                break
            promised = self._promised(point, told, step, weights)
        return None, "no shorter step decreases the cost"

    def _weigh_defects(self, point: Linearised, step: Step) -> None:
        """Weights of what ought to vanish: twice its largest multiplier, by component."""
        problem = self.problem
        n, missed = problem.n, problem.whiteners(point.at)[2](step.a)[1]
        found = (
            np.abs(step.costate[:, 0, :n]),
            np.abs(step.costate[:, 1:, :n]).max(axis=1, initial=0.0),
            None if missed is None else np.abs(missed).max(axis=1),
        )
        self.penalties = tuple(
            None if new is None else np.maximum(2.0 * new, 0.5 * old) for new, old in zip(found, self.penalties)
        )

    def _merit(self, told: Whitened | None) -> FloatArray:
        """Cost and weighted defects, (batch,); infinite where the model is not finite."""
        if told is None:
            return np.full(self.problem.batch, np.inf)
        with np.errstate(all="ignore"):
            value = told.cost + self._violation(told)
        return np.where(np.isfinite(value), value, np.inf)

    def _violation(self, told: Whitened) -> FloatArray:
        total = np.zeros(self.problem.batch)
        for part, weight in zip(told.exact, self.penalties):
            if part is not None and weight is not None:
                total = total + np.einsum("bki,bi->b", np.abs(part).reshape(len(part), -1, part.shape[-1]), weight)
        return total

    def _promised(self, point: Linearised, told: Whitened, step: Step, weights: FloatArray | None) -> FloatArray:
        """Decrease of the merit that the linear model promises for the whole step, (batch,)."""
        problem, at = self.problem, point.at
        T = at.T - _applied(point.H, step.d)
        if point.H_w is not None:
            T -= _applied(point.H_w, step.w - point.w)
        started: Any = step.d[:, 0]
        if not problem.model.states.adds:
            started = np.linalg.solve(point.J0, started[..., None])[..., 0]
        decrease: Any = self._violation(told)
        ahead = zip(problem.whiteners(at), (at.prior + started, step.w, T))
        for i, ((whiten, v), old) in enumerate(zip(ahead, told.z)):
            new = whiten(v)[0]
            if i == 2 and weights is not None:  # the parabola above the loss
                root = np.sqrt(weights[..., problem._groups(new.shape[-1])[0]])
                new, old = root * new, root * old
            decrease = decrease + 0.5 * (squares(old) - squares(new))
        return np.asarray(np.maximum(decrease, 0.0))

    # --- the end

    def _result(
        self, point: Linearised, step: Step, weights: FloatArray | None, costs: list[FloatArray],
        done: NDArray[np.bool_], taken: int, size: FloatArray, why: str, covariances: bool, batched: bool,
    ) -> NonlinearSmoothed:  # fmt: skip
        problem, n = self.problem, self.problem.n
        batch, N, p = problem.batch, problem.N, problem.p
        x, w = self._ahead(point, step, np.where(done, 1.0, 0.0))
        h, T = problem.readings(x, w)
        cov = noise_cov = None
        if covariances:
            smooth = step.smooth
            assert smooth is not None
            nodes = (batch, N, problem.size, problem.size)
            S = smooth.S.flat.reshape(nodes)
            cov = S[..., :n, :n]
            if problem.carried:
                noise_cov = S[..., n:, n:]
            else:
                Lambda = smooth.Lambda.flat.reshape(nodes)[:, 1:]
                QB = problem.Q @ np.swapaxes(point.B.reshape(batch, N - 1, n, p), -1, -2)
                noise_cov = problem.Q - QB @ Lambda @ np.swapaxes(QB, -1, -2)
        readings = h.reshape(batch, N, -1)

        def pick(value: Any) -> Any:
            return value if batched or value is None else value[0]

        return problem.model.smoothed_type(
            problem.model, pick(x), pick(cov), pick(step.costate[..., :n]), pick(w), pick(noise_cov),
            pick(readings), pick(T), pick(weights), done if batched else bool(done[0]),
            self._message(done, taken, size, why), taken, pick(np.stack(costs, axis=1)), pick(point.x),
            LastModel(problem, point, weights, batched, step.smooth),
        )  # fmt: skip

    def _message(self, done: NDArray[np.bool_], taken: int, size: FloatArray, why: str) -> str:
        if done.all():
            return f"converged in {taken} step{'s' * (taken != 1)}"
        left = np.flatnonzero(~done)
        which = f" in {left.size} of {done.size} series" if done.size > 1 else ""
        worst = float(size[left].max())
        reason = why or f"stopped after {taken} step{'s' * (taken != 1)}"
        return (
            f"not converged{which}: {reason}; the next step would be {worst:.2g} standard deviations; raise "
            "iterations, begin nearer (start=), or try search='damped'"
        )


def _applied(H: FloatArray, d: FloatArray) -> FloatArray:
    """H d of all steps, (batch, N, ·); one H of all of them is as quick as one product."""
    if H.strides[0] == 0:
        return np.asarray(d @ H[0].T)
    return np.asarray((H @ d.reshape(len(H), -1, 1)).reshape(*d.shape[:2], H.shape[1]))


class LastModel:
    """The model linearised at the mode, which the engine solves when somebody asks for what it alone knows."""

    def __init__(
        self, problem: Trajectory, point: Linearised, weights: FloatArray | None, batched: bool, smooth: Smoothed | None
    ) -> None:
        self.problem, self.point, self.weights, self.batched, self._smooth = problem, point, weights, batched, smooth

    @property
    def smooth(self) -> Smoothed:
        """The engine's result, all states stacked."""
        if self._smooth is None:
            self._smooth = self.problem.solve(self.point, self.weights, None, False).smooth
            assert self._smooth is not None
        return self._smooth

    @property
    def llf(self) -> Any:
        """Log-likelihood, of each series of a batch, whose chains are one forest."""
        filt, problem = self.smooth.filt, self.problem
        if not self.batched:
            return float(np.squeeze(filt.llf))
        if problem.prior.flat.any():
            raise ModelError("a batch with flat priors has one likelihood for all; smooth the series one by one")
        shape, m = (problem.batch, -1), problem.R.shape[-1]
        observed = np.asarray(filt.observed).reshape(shape)
        L = filt.covariances.D_factor.flat.reshape(problem.batch, -1, m, m)
        logdet = 2.0 * np.log(np.diagonal(L, axis1=2, axis2=3)).sum(axis=(1, 2))
        square = (filt.eps * filt.nu).reshape(shape).sum(axis=1)
        return np.asarray(-0.5 * (observed.sum(axis=1) * np.log(2.0 * np.pi) + logdet + square))
