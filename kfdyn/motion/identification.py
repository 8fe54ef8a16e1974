"""Maximum likelihood of a robot's parameters from its log: smoothing and Newton steps in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.errors import KfdynError, ModelError
from kfdyn.estimation.inference.filter import kalman_filter
from kfdyn.estimation.inference.score import score
from kfdyn.estimation.nonlinear.smoother import iterated_kalman_smoother
from kfdyn.estimation.nonlinear.trajectory import Linearised, Trajectory
from kfdyn.motion.model import MotionModel
from kfdyn.motion.parameters import Parameters
from kfdyn.motion.result import MotionSmoothed
from kfdyn.multibody.kinds import expect_tree

_STEP = 1e-4  # of free numbers, for the model's linearisation: leaves 1e-9 of cubic terms and 1e-12 of rounding
_INFORMATION_STEP = 1e-3  # of free numbers, for differences of the gradient
_BLIND = 1e-14  # square of what the linearised model changes by, scaled to 1: below it a direction is not seen
_UNKNOWN = 1e-6  # eigenvalue of the information, scaled to unit diagonal, below which a direction is not known
_SADDLE = 1e-3  # eigenvalue of the information, scaled to unit diagonal, that differences do not leave
_LONGEST = 1.0  # step of a free number
_REFRESH = 6  # steps after which the information is seen anew
_SMALL = 1e-4  # promised gain below which slopes are trusted more than values: a hundredth of a standard error
_ROUNDING = 1e-6  # promised gain that may be left where steps no longer shrink: a thousandth of a standard error


class Held:
    """The likelihood of the model linearised about one motion that is held, as a function of the parameters.

    Parameters
    ----------
    parameters : Parameters
        Which.
    rows, inputs, prior
        Readings (batch, N, size), torques (batch, N, nv), and the prior, checked.
    x, w : (batch, N, nx), (batch, N−1 or N, p)
        The motion and its random forces.
    """

    def __init__(self, parameters: Parameters, rows: Array, inputs: Any, prior: Any, x: Array, w: Array) -> None:
        self.parameters, self.rows, self.inputs, self.prior, self.x, self.w = parameters, rows, inputs, prior, x, w

    def _linear(self, z: Array, point: Linearised | None = None) -> tuple[Any, Array, Linearised]:
        model = self.parameters.model(z)
        problem = Trajectory(model, self.rows, self.inputs, self.prior, None, "block")
        point = problem.linearise(self.x, self.w) if point is None else point
        ss, T = problem._state_space(point, None, None)
        return ss, T, point

    def llf(self, z: Array) -> float:
        """Log-likelihood."""
        ss, T, _ = self._linear(z)
        return float(np.squeeze(kalman_filter(ss, T).llf))

    def _blocks(self, z: Array, point: Linearised | None = None) -> list[Array]:
        ss, T, _ = self._linear(z, point)
        return [ss.phi.flat, ss.H.flat, ss.Q.flat, ss.R.flat, np.asarray(ss.xi), np.where(np.isnan(T), 0.0, T)]

    def changes(self, z: Array, point: Linearised) -> list[list[Array]]:
        """Derivatives of φ, H, Q, R, ξ and T in each free number, by central differences; one-sided at a bound."""
        out = []
        for i, kind in enumerate(self.parameters.kinds):
            known = point if kind == "noise" else None  # covariances do not move the linearisation
            e = _STEP * np.eye(z.size)[i]
            if z[i] - _STEP >= self.parameters.lower[i]:
                pairs = zip(self._blocks(z + e, known), self._blocks(z - e, known))
                out.append([(after - before) / (2.0 * _STEP) for after, before in pairs])
            else:
                three = (self._blocks(z + j * e, known) for j in range(3))
                out.append([(4.0 * one - 3.0 * here - two) / (2.0 * _STEP) for here, one, two in zip(*three)])
        return out

    def gradient(self, z: Array) -> Array:
        """Gradient in the free numbers: the engine's score on the changes of the linearised model."""
        return self.seen(z)[0]

    def seen(self, z: Array) -> tuple[Array, list[list[Array]]]:
        """Gradient, and the changes of the linearised model."""
        ss, T, point = self._linear(z)
        g = score(ss, T)
        slopes = [g.phi.flat, g.H.flat, g.Q.flat, g.R.flat, np.asarray(g.xi), -np.asarray(g.smooth.a)]
        ss._cache.clear()  # it refers back to the model
        changes = self.changes(z, point)
        return np.array([sum(float(s.ravel() @ d.ravel()) for s, d in zip(slopes, own)) for own in changes]), changes

    def information(self, z: Array) -> Array:
        """Observed information: minus the derivative of the gradient, by differences of it."""
        columns = []
        for i in range(z.size):
            e = _INFORMATION_STEP * np.eye(z.size)[i]
            if z[i] - _INFORMATION_STEP - 2.0 * _STEP >= self.parameters.lower[i]:
                columns.append((self.gradient(z - e) - self.gradient(z + e)) / (2.0 * _INFORMATION_STEP))
            else:
                here, one, two = (self.gradient(z + j * e) for j in range(3))
                columns.append((3.0 * here - 4.0 * one + two) / (2.0 * _INFORMATION_STEP))
        H = np.stack(columns, axis=1)
        return 0.5 * (H + H.T)


def visible(changes: list[list[Array]]) -> tuple[Array, Array]:
    """Bases of the directions of free numbers that move the linearised model, and of those that do not."""
    p = len(changes)
    gram = np.zeros((p, p))
    for parts in zip(*changes):
        rows = np.stack([part.ravel() for part in parts])
        size = np.abs(rows).max(initial=0.0)
        if size > 0.0:
            gram += (rows / size) @ (rows / size).T
    scale = np.sqrt(np.diagonal(gram))
    scale = np.where(scale > np.sqrt(_BLIND) * scale.max(initial=0.0), scale, np.inf)
    unit = gram / np.outer(scale, scale)
    values, vectors = np.linalg.eigh(unit)
    seen = values > _BLIND * p
    back = np.where(np.isfinite(scale), scale, 1.0)[:, None]
    if seen.all():
        return np.eye(p), np.zeros((p, 0))
    blind = np.linalg.qr(vectors[:, ~seen] / back)[0]
    whole = np.linalg.qr(np.concatenate([blind, np.eye(p)], axis=1))[0]
    return whole[:, blind.shape[1] : p], blind


@dataclass(frozen=True, eq=False)
class Identified:
    """The parameters that a log tells of a robot, and how well.

    Attributes
    ----------
    names : tuple of str
        Names of the numbers.
    params : ndarray, shape (p,)
        Their values in natural units: kg, N m s, variances; of an inertia m, m c and I about the body's origin.
    llf : float
        Log-likelihood of the model linearised about its own smoothed motion; ratios of it compare models.
    converged : bool
        Whether it is a maximum.
    message : str
        How the search ended.
    iterations : int
        Steps taken, one smoothing each, apart from shortened ones.
    at_bound : ndarray of bool, shape (p,)
        Dampers and rotors whose best value is 0; they have no standard error.
    model : MotionModel
        The model with these values.
    motion : MotionSmoothed
        The smoothed motion.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> cart = kf.System([kf.Body("cart", np.diag([0, 0, 0, 2.0, 2.0, 2.0]), kf.Hinge.prismatic([1, 0, 0]))])
    >>> tau = np.sin(np.arange(199) / 9)[:, None]
    >>> run = kf.MotionModel(cart, 0.1, [kf.sensors.JointPosition(1e-4)], force_noise=[1e-2])
    >>> q = 0.1**2 * np.cumsum(np.cumsum(np.concatenate([[[0.0]], tau / 3.0])))[:, None]  # a mass of 3
    >>> found = kf.identify(run, [q], tau, ["cart/mass"])
    >>> abs(found.params[0] - 3.0) < 0.01, found.names
    (np.True_, ('cart/mass',))
    """

    names: tuple[str, ...]
    params: Array
    llf: float
    converged: bool
    message: str
    iterations: int
    at_bound: NDArray[np.bool_]
    model: MotionModel = field(repr=False)
    motion: MotionSmoothed = field(repr=False)
    _z: Array = field(repr=False)
    _parameters: Parameters = field(repr=False)
    _information: Array = field(repr=False)
    _seen: tuple[Array, Array] = field(repr=False)

    @property
    def system(self) -> Any:
        """The robot with these values, which ``save_urdf`` and every other function takes."""
        return self.model.system

    @cached_property
    def _directions(self) -> tuple[Array, Array]:
        """Covariance in the free numbers of what is known, and a basis of what is not."""
        free = np.flatnonzero(~self.at_bound)
        V = np.linalg.qr(self._seen[0][free])[0] if self._seen[1].size else np.eye(self._z.size)[np.ix_(free, free)]
        H = V.T @ self._information[np.ix_(free, free)] @ V
        scale = np.sqrt(np.maximum(np.abs(np.diagonal(H)), 1e-12 * np.abs(np.diagonal(H)).max(initial=0.0)))
        scale = np.where(scale > 0.0, scale, 1.0)
        values, vectors = np.linalg.eigh(H / np.outer(scale, scale))
        known = values > _UNKNOWN
        columns = V @ (vectors / scale[:, None])
        cov, lost = np.zeros((self._z.size,) * 2), np.zeros((self._z.size, int((~known).sum())))
        cov[np.ix_(free, free)] = (columns[:, known] / values[known]) @ columns[:, known].T
        lost[free] = columns[:, ~known] / np.linalg.norm(columns[:, ~known], axis=0)
        return cov, np.concatenate([self._seen[1], lost], axis=1)

    @cached_property
    def cov_params(self) -> Array:
        """Covariance of the natural numbers, the inverse of the observed information, (p, p).

        NaN for those at a bound and for those of which a direction is not known.
        """
        cov, lost = self._directions
        J = self._parameters.slope(self._z)
        out = J @ cov @ J.T
        moved = np.abs(J @ lost) / (np.abs(J).max(axis=1, keepdims=True) + 1e-300)
        bad = self.at_bound | (moved.max(axis=1, initial=0.0) > 1e-4)
        out[bad] = np.nan
        out[:, bad] = np.nan
        return out

    @property
    def stderr(self) -> Array:
        """Standard errors, (p,); NaN where there is none."""
        return np.sqrt(np.diagonal(self.cov_params))

    @cached_property
    def unidentified(self) -> tuple[str, ...]:
        """Directions that the log does not tell, in natural units and in words; empty if there is none."""
        lost = self._parameters.slope(self._z) @ self._directions[1]
        return tuple(_words(column, self.names) for column in _sparse(lost).T)

    def summary(self, alpha: float = 0.05) -> str:
        """Table of the estimate."""
        from scipy.stats import norm

        if not 0.0 < alpha < 1.0:
            raise ModelError(f"alpha must lie between 0 and 1, such as 0.05; got {alpha!r}")
        reach, wide = norm.isf(alpha / 2.0), max(22, *(len(name) + 2 for name in self.names))
        low, high = f"[{alpha / 2:.3g}", f"{1 - alpha / 2:.3g}]"
        lines = [f"{self.model.system.name}: maximum likelihood of the motion, log-likelihood {self.llf:.3f}"]
        lines.append(f"{'':<{wide}}{'value':>12}{'std err':>12}{low:>12}{high:>12}")
        for name, value, error, bound in zip(self.names, self.params, self.stderr, self.at_bound):
            row = f"{name:<{wide}}{value:>12.5g}"
            if bound:
                row += f"{'at its bound':>14}"
            elif np.isfinite(error):
                row += f"{error:>12.3g}{value - reach * error:>12.5g}{value + reach * error:>12.5g}"
            else:
                row += f"{'not known':>12}"
            lines.append(row)
        lines.append(self.message)
        return "\n".join([*lines, *(f"not identified: {direction}" for direction in self.unidentified)])

    def __str__(self) -> str:
        return self.summary()


def _sparse(columns: Array) -> Array:
    """Reduce a basis to columns with few entries, by elimination with full pivoting."""
    A = columns.copy()
    for j in range(A.shape[1]):
        i, k = np.unravel_index(np.abs(A[:, j:]).argmax(), A[:, j:].shape)
        A[:, [j, j + int(k)]] = A[:, [j + int(k), j]]
        A[:, j] /= A[i, j]
        others = np.arange(A.shape[1]) != j
        A[:, others] -= np.outer(A[:, j], A[i, others])
    return A


def _words(column: Array, names: Sequence[str]) -> str:
    column = column / np.abs(column).max(initial=1e-300)
    return " ".join(f"{x:+.3g} {name}" for x, name in zip(column, names) if abs(x) > 1e-4)


def identify(
    model: MotionModel,
    readings: Any,
    tau: ArrayLike | None,
    parameters: Sequence[str],
    *,
    prior: Any = None,
    max_iterations: int = 100,
    tolerance: float = 1e-9,
) -> Identified:
    """Find the parameters under which a log is most likely.

    For fixed parameters the motion is smoothed; the model linearised there has a log-likelihood, whose gradient, the
    motion held, is the engine's score on what the linearised model changes by::

        dℓ = Σ ⟨∂ℓ/∂φ, dF⟩ + ⟨∂ℓ/∂Q, dQ⟩ + ⟨∂ℓ/∂R, dR⟩ + ⟨∂ℓ/∂H, dH⟩ + λ·dξ − a·dT

    Smoothing and quasi-Newton steps alternate until the gradient vanishes.

    Parameters
    ----------
    model : MotionModel
        The robot, its sensors and noise; its values are where the search begins. A tree without couplings.
    readings : sequence of arrays (N, size)
        One a sensor, as the smoother takes them: NaN is missing, None a silent sensor. Several logs of one length:
        (logs, N, size), under one prior that is not flat.
    tau : (N−1, nv), or (N, nv) where sensors feel accelerations
        Torques that were ordered.
    parameters : sequence of str
        ``"<body>/inertia"`` (ten numbers, always those of some positive mass), ``"<body>/mass"`` (the body's density
        scales), ``"<hinge>/damping"``, ``"<hinge>/armature"``, ``"gravity"``, ``"force_noise"``, ``"<sensor>/cov"``,
        ``"<sensor>/bias"``; ``"*/damping"`` names all. What is not named stays.
    prior : (q0, v0, P0), optional
        In place of the model's.
    max_iterations : int
        Limit of steps.
    tolerance : float
        Converged when a step promises less than this: half the square of its length in standard errors.

    Returns
    -------
    Identified
        ``params``, ``stderr``, ``llf``, ``converged``, ``message``, ``summary()``, ``system``, ``model``, ``motion``,
        and ``unidentified``, what the log does not tell.

    Raises
    ------
    ModelError
        If a name is unknown, or a body's inertia is one that no positive mass has.

    Notes
    -----
    The score is exact. What the linearised model (F, B, ξ, H, T) changes by is found by central differences of *the
    linearisation*, two a number: no rollouts, no differences of the likelihood; their error is about 1e-9. Covariances
    need no second linearisation. Information is minus the derivative of that gradient, by differences of it.
    The maximum is where the gradient with the motion held vanishes at the motion that is smoothed with it. Directions
    that do not move the linearised model keep their first values, and are never inverted. THEORY section 20.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> cart = kf.System([kf.Body("cart", np.diag([0, 0, 0, 2.0, 2.0, 2.0]), kf.Hinge.prismatic([1, 0, 0]))])
    >>> tau = np.sin(np.arange(199) / 9)[:, None]
    >>> run = kf.MotionModel(cart, 0.1, [kf.sensors.JointPosition(1e-4)], force_noise=[1e-2])
    >>> q = 0.1**2 * np.cumsum(np.cumsum(np.concatenate([[[0.0]], tau / 3.0])))[:, None]  # a mass of 3
    >>> kf.identify(run, [q], tau, ["cart/mass"]).converged
    True
    """
    if not isinstance(model, MotionModel):
        raise ModelError(f"identify takes a kf.MotionModel, not {type(model).__name__}")
    expect_tree(model.system, "identify", "parameters of couplings and loops are not identified")
    if not isinstance(max_iterations, int | np.integer) or max_iterations < 1:
        raise ModelError(f"max_iterations must be a whole number, 1 or more, got {max_iterations!r}")
    if not tolerance > 0.0:
        raise ModelError(f"tolerance must be positive, got {tolerance!r}")
    return _Search(Parameters(model, parameters), readings, tau, prior, int(max_iterations), float(tolerance)).run()


class _Search:
    """One run of the steps."""

    def __init__(
        self, parameters: Parameters, readings: Any, tau: Any, prior: Any, most: int, tolerance: float
    ) -> None:
        self.parameters, self.readings, self.tau, self.prior = parameters, readings, tau, prior
        self.most, self.tolerance = most, tolerance
        model = parameters.base
        self.rows, self.batched = model.check_readings(readings)
        self.inputs = model.check_inputs(None, len(self.rows), self.rows.shape[1], tau=tau)
        self.checked = model.check_prior(prior)
        if self.batched and self.checked.flat.any():
            raise ModelError(
                "several logs need a prior that is not flat; give prior=(q0, v0, P0) with finite variances"
            )

    def smooth(self, z: Array, start: Any) -> tuple[MotionSmoothed, float]:
        """Smoothed motion and its log-likelihood, the sum over logs."""
        model = self.parameters.model(z)
        post = iterated_kalman_smoother(
            model, self.readings, tau=self.tau, prior=self.prior, start=start, covariances=False
        )
        return post, float(np.sum(post.llf))  # type: ignore[return-value]

    def held(self, post: MotionSmoothed) -> Held:
        """The likelihood about a motion."""
        x, w = (a if self.batched else a[None] for a in (post.x, post.noise))
        return Held(self.parameters, self.rows, self.inputs, self.checked, x, w)

    def step(self, z: Array, g: Array, H: Array, V: Array) -> tuple[Array, float, NDArray[np.bool_], float]:
        """Newton step within the bounds along what is seen, what it promises, what is free, and the least curvature."""
        free = ~((z <= self.parameters.lower) & (g <= 0.0))
        own = V[free] if V.shape[1] < z.size else np.eye(z.size)[np.ix_(free, free)]
        A, b = own.T @ H[np.ix_(free, free)] @ own, own.T @ g[free]
        scale = np.sqrt(np.maximum(np.abs(np.diagonal(A)), 1e-12 * np.abs(np.diagonal(A)).max(initial=0.0)))
        scale = np.where(scale > 0.0, scale, 1.0)
        values, vectors = np.linalg.eigh(A / np.outer(scale, scale))
        size = np.abs(values)
        inverse = np.where(size > _UNKNOWN, 1.0 / np.maximum(size, _UNKNOWN), 0.0)
        d = np.zeros(z.size)
        d[free] = own @ ((vectors @ (inverse * (vectors.T @ (b / scale)))) / scale)
        return d, 0.5 * float(g @ d), free, float(values.min(initial=0.0))

    def run(self) -> Identified:
        """Iterate, and read the result off."""
        parameters = self.parameters
        z, lower = parameters.start.copy(), parameters.lower
        post, llf = self.smooth(z, "extended")
        held = self.held(post)
        g, changes = held.seen(z)
        H, fresh, taken, age, before, message = held.information(z), True, 0, 0, np.inf, ""
        while True:
            V, blind = visible(changes)
            d, gain, free, least = self.step(z, g, H, V)
            small = gain <= self.tolerance or (gain <= _ROUNDING and gain > 0.25 * before)
            if small and fresh:
                message = "the gradient vanishes, but at a saddle; begin elsewhere" if least < -_SADDLE else ""
                break
            if small or age == _REFRESH:  # the information of this place, not that of places before
                H, fresh, age = held.information(z), True, 0
                continue
            if taken == self.most:
                message = f"no convergence in {self.most} steps; the last promised {gain:.2g}"
                break
            moved = self._advance(z, d, gain, llf, post)
            if moved is None:
                if not fresh:
                    H, fresh, age = held.information(z), True, 0
                    continue
                message = "no shorter step raises the likelihood"
                break
            before, taken, age = gain, taken + 1, age + 1
            z_new, post, llf = moved
            held = self.held(post)
            g_new, changes = held.seen(z_new)
            H, fresh = _updated(_positive(H) if fresh else H, z_new - z, g - g_new), False
            z, g = z_new, g_new
        at_bound = (z <= lower) & ~free
        converged = not message and bool(np.all(post.converged))
        if not message:
            message = "the gradient vanishes" if converged else f"the smoother ended otherwise: {post.message}"
        return Identified(
            parameters.names, parameters.natural(z), llf, converged, message, taken, at_bound, parameters.model(z),
            post, z, parameters, H, (V, blind),
        )  # fmt: skip

    def _advance(
        self, z: Array, d: Array, gain: float, llf: float, post: MotionSmoothed
    ) -> tuple[Array, MotionSmoothed, float] | None:
        """The longest step, halved at most ten times, that raises the likelihood of the smoothed motion."""
        alpha = min(1.0, _LONGEST / max(np.abs(d).max(), 1e-300))
        for _ in range(10):
            there = np.maximum(z + alpha * d, self.parameters.lower)
            try:
                found, value = self.smooth(there, post.x)
            except KfdynError:  # no model, or no likelihood there
                alpha *= 0.5
                continue
            if np.isfinite(value) and (value >= llf + 0.1 * alpha * gain or gain < _SMALL):
                return there, found, value
            alpha *= 0.5
        return None


def _positive(H: Array) -> Array:
    """The information with all curvatures taken as those of a maximum."""
    scale = np.sqrt(np.maximum(np.abs(np.diagonal(H)), 1e-12 * np.abs(np.diagonal(H)).max(initial=0.0)))
    scale = np.where(scale > 0.0, scale, 1.0)
    values, vectors = np.linalg.eigh(H / np.outer(scale, scale))
    return np.asarray((vectors * np.abs(values)) @ vectors.T * np.outer(scale, scale))


def _updated(H: Array, s: Array, y: Array) -> Array:
    """BFGS: the information that explains the last change y of minus the gradient along s."""
    if s @ y <= 1e-10 * np.linalg.norm(s) * np.linalg.norm(y):
        return H
    Hs = H @ s
    if s @ Hs <= 0.0:
        return H
    return np.asarray(H + np.outer(y, y) / (s @ y) - np.outer(Hs, Hs) / (s @ Hs))
