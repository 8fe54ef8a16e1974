"""A whole trajectory: what the model says along it, and the linear model about it that the engine solves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kfdyn.errors import ModelError, SingularError
from kfdyn.estimation.inference.filter import kalman_filter
from kfdyn.estimation.inference.smoothed import Smoothed
from kfdyn.estimation.inference.smoother import bryson_frazier
from kfdyn.estimation.model.blocks import FloatArray
from kfdyn.estimation.model.state_space import StateSpace
from kfdyn.estimation.model.tree import Tree
from kfdyn.estimation.nonlinear import arguments
from kfdyn.estimation.nonlinear.arguments import Prior
from kfdyn.estimation.nonlinear.functions import expect_finite_rows
from kfdyn.estimation.nonlinear.losses import Huber, StudentT, Whitener
from kfdyn.estimation.nonlinear.model import NonlinearModel
from kfdyn.estimation.nonlinear.quick_step import QuickSteps

_FAR = 1e4  # times what the prior has: no place to begin


class Residuals(NamedTuple):
    """The residuals of a trajectory: x̄(0) ⊖ x0, f(x̄, w̄) ⊖ x̄(k+1), y ⊖ h; and the predicted readings h."""

    prior: FloatArray
    defects: FloatArray
    T: FloatArray
    h: FloatArray


class Whitened(NamedTuple):
    """Residuals of prior, noise and readings in units of their deviations, what of prior, steps and readings ought to
    be 0 (None where nothing), and the cost (batch,).
    """

    z: tuple[FloatArray, FloatArray, FloatArray]
    exact: tuple[FloatArray | None, FloatArray, FloatArray | None]
    cost: FloatArray


class Linearised(NamedTuple):
    """The model along a trajectory (x̄, w̄): residuals, and Jacobians in tangents, those of readings at y."""

    x: FloatArray
    w: FloatArray
    at: Residuals
    F: FloatArray
    B: FloatArray
    H: FloatArray
    H_w: FloatArray | None
    J0: FloatArray
    G: FloatArray  # G w is the noise of the state, G Q G* its covariance; as B, of the steps that there are


class Step(NamedTuple):
    """A Gauss–Newton step: tangents d of all states, the noise it ends at, multipliers, variances.

    ``before`` and ``after`` (batch, N, n) are variances around each reading. ``smooth`` is the engine's result, None
    where the step was found without it.
    """

    d: FloatArray
    w: FloatArray
    costate: FloatArray
    a: FloatArray
    before: FloatArray
    after: FloatArray
    smooth: Smoothed | None


class Trajectory:
    """The problem of finding the most probable trajectory of each series of a batch.

    The chains of a batch are one forest to the engine, so that all are solved in one call.
    """

    def __init__(
        self, model: NonlinearModel, y: FloatArray, u: FloatArray | None, prior: Prior,
        robust: Huber | StudentT | None, method: str, first_step: int = 0,
    ) -> None:  # fmt: skip
        self.model, self.y, self.u, self.prior, self.method = model, y, u, prior, method
        self.batch, self.N = y.shape[:2]
        self.carried = model.carries_noise
        self.n, self.p = model.n, model.p
        self.size = self.n + (self.p if self.carried else 0)  # of a node's state
        self.noises = self.N if self.carried else self.N - 1
        self.k = np.tile(first_step + np.arange(self.N), self.batch)
        self.k_edges = np.tile(first_step + np.arange(self.N - 1), self.batch)
        self.noise = model.process_noise(first_step + np.arange(self.noises))
        self.Q = np.broadcast_to(self.noise, (self.noises, *self.noise.shape[-2:]))
        self.R = model.reading_noise(first_step + np.arange(self.N))
        self.robust = robust
        self.tree = _forest(self.batch, self.N)
        self._whiteners: tuple[Whitener, Whitener, Whitener] | None = None
        self._quick = QuickSteps(self)

    # --- the model along a trajectory

    def start(self, start: Any) -> FloatArray:
        """First trajectory (batch, N, nx): as given, or a filter's, or the prior's mean carried along."""
        shape = (self.batch, self.N, self.prior.x0.size)
        if not isinstance(start, str):
            x = np.asarray(start, np.float64)
            x = np.broadcast_to(x, shape) if x.ndim < 3 and x.shape[-2:] == shape[-2:] else x
            if x.shape != shape or not np.isfinite(x).all():
                raise ModelError(f"start must be finite states of shape {shape[1:]}, got shape {np.shape(start)}")
            return x.copy()
        if start not in ("extended", "unscented", "prior"):
            raise ModelError(f"start must be 'extended', 'unscented', 'prior' or states {shape[1:]}, got {start!r}")
        if start != "prior" and not self.prior.flat.any():
            found = self._filtered(start)
            if found is not None:
                return found
        return self._carried_along()

    def _filtered(self, kind: str) -> FloatArray | None:
        """Means of a filter; None where it diverges."""
        from kfdyn.estimation.nonlinear.extended import first

        belief = first(self.model, self.prior, self.batch)
        out = np.empty((self.batch, self.N, self.prior.x0.size))
        method = self.model.filter_halves(kind)
        with np.errstate(all="ignore"):
            for k in range(self.N):
                u = None if self.u is None else self.u[:, k]
                try:
                    now = method.correct(self.model, belief, self.y[:, k], u, k)
                    out[:, k] = now.belief.x
                    if k + 1 < self.N:
                        belief = method.predict(self.model, now, u, k)
                except (ModelError, SingularError):
                    return None
        return out if np.isfinite(out).all() else None

    def _carried_along(self) -> FloatArray:
        """The prior mean carried along without noise, held from where that leads far off."""
        x = np.tile(self.prior.x0, (self.batch, self.N, 1))
        w, bound = np.zeros((self.batch, self.p)), _FAR * (1.0 + np.abs(self.prior.x0).max(initial=0.0))
        for k in range(self.N - 1):
            u = None if self.u is None else self.u[:, k]
            x[:, k + 1] = x[:, k]
            try:
                with np.errstate(all="ignore"):
                    after = self.model.advance(x[:, k], w, u, np.full(self.batch, k))
            except ModelError:  # where no mechanics is
                continue
            near = (np.abs(after) < bound).all(axis=1)  # not where it is NaN, either
            x[near, k + 1] = after[near]
        return x

    def _flat(self, x: FloatArray, w: FloatArray) -> tuple[Any, Any]:
        """Arguments (x, w, u, k) of all steps, and of all readings, as rows."""
        edges, steps = x[:, :-1].reshape(-1, x.shape[2]), x.reshape(-1, x.shape[2])
        w_edges = w[:, : self.N - 1].reshape(-1, self.p)
        w_steps = w.reshape(-1, self.p) if self.carried else np.zeros((len(steps), self.p))
        u_edges = None if self.u is None else self.u[:, :-1].reshape(-1, self.u.shape[2])
        u_steps = None if self.u is None else self.u.reshape(-1, self.u.shape[2])
        return (edges, w_edges, u_edges, self.k_edges), (steps, w_steps, u_steps, self.k)

    def residuals(self, x: FloatArray, w: FloatArray) -> Residuals:
        """Return the residuals; they are not finite where the model is not."""
        edges, steps = self._flat(x, w)
        with np.errstate(all="ignore"):
            f = self.model.advance(*edges) if self.N > 1 else edges[0]
            h = self.model.read(*steps)
            return self._residuals(x, f, h)

    def _residuals(self, x: FloatArray, f: FloatArray, h: FloatArray) -> Residuals:
        minus = self.model.states.minus
        start = np.asarray(minus(x[:, 0], np.broadcast_to(self.prior.x0, x[:, 0].shape)))
        defects = np.asarray(minus(f, x[:, 1:].reshape(-1, x.shape[2]))).reshape(self.batch, self.N - 1, self.n)
        return Residuals(start, defects, self._unread(h), h)

    def readings(self, x: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predicted readings h of all steps, and y ⊖ h (batch, N, m)."""
        h = self.model.read(*self._flat(x, w)[1])
        return h, self._unread(h)

    def _unread(self, h: FloatArray) -> FloatArray:
        return self.model.residual(self.y.reshape(-1, self.y.shape[2]), h, self.k).reshape(self.batch, self.N, -1)

    def linearise(self, x: FloatArray, w: FloatArray) -> Linearised:
        """All Jacobians, one call for all steps and one for all readings."""
        edges, steps = self._flat(x, w)
        if self.N > 1:
            f, F, B = self.model.linear_step(*edges)
        else:  # functions need not know what to do with no rows
            f, F, B = edges[0], np.zeros((0, self.n, self.n)), np.zeros((0, self.n, self.p))
        expect_finite_rows(f, "step", edges[0], self.k_edges)
        h, H, H_w = self.model.linear_read(*steps)
        y = self.y.reshape(-1, self.y.shape[2])
        H = self.model.readings.turn(y, h, H)
        if H_w is not None:
            H_w = self.model.readings.turn(y, h, H_w)
        at = self._residuals(x, f, h)
        J0 = self.model.states.plus_jacobian(np.broadcast_to(self.prior.x0, x[:, 0].shape), at.prior)
        return Linearised(x, w, at, F, B, H, H_w, J0, B)

    # --- the linear model about it

    def solve(
        self, point: Linearised, weights: FloatArray | None, damping: FloatArray | None, covariances: bool
    ) -> Step:
        """Filter and smooth the linearised model; ``damping`` (batch, n) is the information of one more reading."""
        ss, T = self._state_space(point, weights, damping)
        try:
            smooth = bryson_frazier(kalman_filter(ss, T, method=self.method), covariances=covariances)  # type: ignore[call-overload]
            return self.step_of(point, smooth)
        except SingularError as error:
            raise self._named(error) from None
        finally:
            ss._cache.clear()  # it refers back to the model, so that each iteration's covariances would stay for long

    def step_of(self, point: Linearised, smooth: Smoothed) -> Step:
        """Read a step off the engine's result."""
        d = smooth.x.flat.reshape(self.batch, self.N, self.size)
        costate = smooth.costate.flat.reshape(d.shape)
        if self.carried:
            w = d[..., self.n :]
        else:
            pulled = np.swapaxes(point.B, 1, 2) @ costate[:, 1:].reshape(-1, self.n, 1)
            w = (self.Q @ pulled.reshape(self.batch, self.N - 1, self.p, 1))[..., 0]
        m = point.at.T.shape[2]
        a = smooth.a.reshape(self.batch, self.N, -1)[..., :m]
        nodes = (self.batch, self.N, self.size, self.size)
        filt = getattr(smooth.filt, "finite", smooth.filt)  # a flat prior matters at the first steps alone
        before, after = (
            np.diagonal(P.flat.reshape(nodes), axis1=2, axis2=3)[..., : self.n] for P in (filt.P, filt.P_plus)
        )
        return Step(d[..., : self.n], w, costate, a, before, after, smooth)

    def quick_step(self, point: Linearised, weights: FloatArray | None) -> Step | None:
        """An undamped step without the engine, None where its care is needed."""
        found = self._quick.step(point, weights)
        return None if found is None else Step(found.d, found.w, *found[1:2], *found[3:], None)

    def _state_space(
        self, point: Linearised, weights: FloatArray | None, damping: FloatArray | None
    ) -> tuple[StateSpace, FloatArray]:
        B, N, n, size = self.batch, self.N, self.n, self.size
        m = point.at.T.shape[2]
        rows = m + (n if damping is not None else 0)
        phi = np.zeros((B, N - 1, size, size))
        Q = np.zeros((B, N, size, size))
        H = np.zeros((B, N, rows, size))
        R = np.zeros((B, N, rows, rows))
        T = np.full((B, N, rows), np.nan)
        xi = np.zeros((B, N, size))
        F, G = point.F.reshape(B, N - 1, n, n), point.B.reshape(B, N - 1, n, self.p)
        phi[..., :n, :n] = F
        Q[:, 0, :n, :n] = point.J0 @ self.prior.P0 @ np.swapaxes(point.J0, 1, 2)
        xi[:, 0, :n] = -(point.J0 @ point.at.prior[..., None])[..., 0]
        xi[:, 1:, :n] = point.at.defects
        H[..., :m, :n] = point.H.reshape(B, N, m, n)
        R[..., :m, :m] = self.R if weights is None else self.reweighted(weights)
        T[..., :m] = point.at.T
        if self.carried:
            phi[..., :n, n:] = G
            Q[..., n:, n:] = self.Q
            assert point.H_w is not None
            H_w = point.H_w.reshape(B, N, m, self.p)
            H[..., :m, n:] = H_w
            T[..., :m] += (H_w @ point.w[..., None])[..., 0]
        else:
            Q[:, 1:] = G @ self.Q @ np.swapaxes(G, -1, -2)
        if N > 1:
            xi[:, 1:, :n] -= (G @ point.w[:, : N - 1, :, None])[..., 0]
        Q = 0.5 * (Q + np.swapaxes(Q, -1, -2))
        if damping is not None:
            H[..., m:, :n] = np.eye(n)
            on = damping > 0.0
            R[..., range(m, rows), range(m, rows)] = np.where(on, 1.0 / np.where(on, damping, 1.0), 1.0)[:, None]
            T[..., m:] = np.where(on, 0.0, np.nan)[:, None]
        nodes = B * N
        ss = StateSpace.trusted(
            self.tree, np.full(nodes, size), np.full(nodes, rows), phi.ravel(), H.ravel(), Q.ravel(), R.ravel(),
            xi.ravel(), None, self._flat_places(point),
        )  # fmt: skip
        return ss, T.ravel()

    def _flat_places(self, point: Linearised) -> Any:
        flat = self.prior.flat
        if not flat.any():
            return None
        if point.J0[:, ~flat][:, :, flat].any():
            names = ", ".join(name for name, one in zip(self.model.state_names, flat) if one)
            raise ModelError(
                f"the prior is flat in {names} alone, but the manifold turns them into components that are known; "
                "make the prior of the whole rotation flat, or none of it"
            )
        starts = np.arange(self.batch)[:, None] * self.N * self.size
        return (starts + np.flatnonzero(flat)).ravel()

    def _named(self, error: SingularError) -> Exception:
        """An error of the engine in the names of the model: directions of node 0 are components of x(0)."""
        import re

        from kfdyn.errors import UnobservableError

        found = re.search(r"direction \[([^\]]*)\] of node (\d+)", str(error))
        if found:
            parts = np.array([float(v) for v in found[1].replace(" ", "").split(",")])[: self.n]
            names = [
                name if abs(abs(c) - 1.0) < 1e-3 else f"{c:+.3g} {name}"
                for c, name in zip(parts, self.model.state_names)
                if abs(c) > 1e-3
            ]
            what = " ".join(names)
            unseen = tuple(n for c, n in zip(parts, self.model.state_names) if abs(c) > 1e-3)
            return UnobservableError(
                f"the readings never tell {what} of x(0), whose prior is flat; {self.model.cure_for(unseen)}, or give "
                "it a finite variance in P0",
                (unseen,),
            )
        if error.node is not None:
            step = int(error.node) % self.N
            text = re.sub(r"\bnode \d+", f"step {step}", str(error))
            hint = ""
            if self.prior.flat.any():
                hint = ". The prior is flat: what readings hardly tell needs a finite variance in P0"
            return SingularError(f"the model linearised along the trajectory: {text}{hint}", step, error.output)
        return error

    # --- its cost

    def whiteners(self, at: Residuals) -> tuple[Whitener, Whitener, Whitener]:
        """Those of the prior, the noise and the readings."""
        if self._whiteners is None:
            known = None if not self.prior.flat.any() else np.broadcast_to(~self.prior.flat, at.prior.shape)
            self._whiteners = (
                Whitener(self.prior.P0, known),
                Whitener(self.noise),
                Whitener(self.R, ~np.isnan(at.T)),
            )
        return self._whiteners

    def whitened(self, at: Residuals, w: FloatArray) -> Whitened:
        """Residuals and noise in units of their deviations, and the cost ½|P0^-½ r|² + ½Σ|Q^-½ w|² + Σρ(R^-½ T)."""
        of_prior, of_noise, of_reading = self.whiteners(at)
        (prior, started), (noise, _), (reading, missed) = of_prior(at.prior), of_noise(w), of_reading(at.T)
        cost = 0.5 * (squares(prior) + squares(noise))
        if self.robust is None:
            cost = cost + 0.5 * squares(reading)
        else:
            _, member = self._groups(reading.shape[2])
            seen = (~np.isnan(at.T)) @ member
            cost = cost + self.robust.loss((reading**2) @ member, seen).sum(axis=(1, 2))
        return Whitened((prior, noise, reading), (started, at.defects, missed), cost)

    def _groups(self, m: int) -> Any:
        labels = arguments.robust_groups(self.model.reading_groups, m)
        return labels, np.eye(labels.max(initial=0) + 1)[labels]

    def weights(self, at: Residuals) -> FloatArray | None:
        """Weights of robust readings, (batch, N, groups); 1 where nothing was read."""
        if self.robust is None:
            return None
        z, _ = self.whiteners(at)[2](at.T)
        _, member = self._groups(z.shape[2])
        seen = (~np.isnan(at.T)) @ member
        return np.where(seen > 0, self.robust.weight((z * z) @ member, seen), 1.0)

    def reweighted(self, weights: FloatArray) -> FloatArray:
        """R of readings that are believed in part."""
        labels, member = self._groups(self.R.shape[-1])
        if (self.R * (1.0 - member @ member.T)).any():
            raise ModelError(
                "R correlates readings of different groups, and a robust loss treats groups separately; give "
                "reading_groups that keep correlated outputs together"
            )
        scale = 1.0 / np.sqrt(weights[..., labels])
        return np.asarray(scale[..., :, None] * self.R * scale[..., None, :])


def squares(z: FloatArray) -> FloatArray:
    """Σz² of each series, (batch,)."""
    rows = z.reshape(len(z), -1)
    return np.asarray(np.einsum("bi,bi->b", rows, rows))


def _forest(batch: int, N: int) -> Tree:
    if batch == 1:
        return Tree.chain(N)
    parent = np.arange(1, batch * N + 1)
    parent[N - 1 :: N] = -1
    return Tree(parent)
