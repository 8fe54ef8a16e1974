"""The gradient of a linearised motion, pulled back to what a robot's numbers change: chain rules, no differences.

The engine's score is the gradient in φ, H, Q, R, ξ and T. All of them are functions of a, a_q, a_v and 𝓜⁻¹ along the
motion (THEORY 18), and these move with a number θ whose effect on inverse dynamics is r (THEORY 20)::

    da = −𝓜⁻¹ r                               d𝓜⁻¹ = −𝓜⁻¹ d𝓜 𝓜⁻¹
    da_q = −𝓜⁻¹ [d𝓜 a_q + ∂_q r + ∂_q(𝓜 da)]    da_v = −𝓜⁻¹ [d𝓜 a_v + ∂_v r]

so that dℓ = ⟨r̄, r⟩ + ⟨r̄_q, ∂_q r⟩ + ⟨r̄_v, ∂_v r⟩ + ⟨r̄_a, d𝓜⟩ with four arrays that no number changes.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from kfdyn.arrays import Array
from kfdyn.dynamics import inverse_dynamics_derivatives
from kfdyn.motion.identification.effects import Effect
from kfdyn.motion.identification.linear import Linear
from kfdyn.motion.readings import FEELS
from kfdyn.multibody import jacobian

_ANGLE = 1e-3  # of differences of the Jacobians of Exp, whose fifth derivative is below 1: 1e-14 of error


class Adjoint(NamedTuple):
    """Gradient of the log-likelihood in the effect of a number: r (rows, nv) and its derivatives (rows, nv, nv)."""

    r: Array
    of_q: Array
    of_v: Array
    of_a: Array

    def along(self, effect: Effect) -> float:
        """Derivative of the log-likelihood along an effect."""
        pairs = zip(self, effect)
        return sum(inner(own, given) for own, given in pairs if given is not None)


def inner(a: Array, b: Array) -> float:
    """Sum of products of all entries: on this thread, as BLAS wakes others for what they do not shorten."""
    return float(np.einsum("i,i->", a.ravel(), b.ravel()))


class Slopes(NamedTuple):
    """Gradient of the log-likelihood of one log in all that parameters move.

    Attributes
    ----------
    robot : Adjoint
        In effects on inverse dynamics.
    gravity : (3,)
        In gravity as accelerometers read it, beside its effect.
    reading : (my,)
        In what is added to the readings, summed over steps.
    scale : (m,)
        In the logarithm of a factor of each reading, where readings add.
    W, R : (nv, nv), (m, m)
        In the covariances, symmetric, summed over steps.
    W_factor : float
        In the logarithm of a factor of all W.
    """

    robot: Any
    gravity: Array
    reading: Array
    scale: Array
    W: Array
    R: Array
    W_factor: float


def slopes_of(line: Linear, robot: bool = True) -> Slopes:
    """Pull the engine's score back along one log; through its dynamics or to covariances alone."""
    return _Pull(line).slopes(robot)


class _Pull:
    def __init__(self, line: Linear) -> None:
        self.line = line
        problem, model, score = line.problem, line.model, line.score
        self.nv, self.n, self.p = model.system.nv, problem.n, problem.p
        self.lead = (problem.batch, problem.N)
        self.rows = problem.batch * problem.N
        size, m = problem.size, line.point.at.T.shape[2]
        self.size, self.m = size, m
        self.Q = score.Q.flat.reshape(*self.lead, size, size)
        self.xi = np.asarray(score.xi).reshape(*self.lead, size)
        self.T = -np.asarray(score.smooth.a).reshape(*self.lead, m)
        self.R = score.R.flat.reshape(-1, m, m).sum(axis=0)
        self.a, self.a_q, self.a_v, self.a_tau, self.a_f = line.acceleration
        full = (self.rows, self.nv, self.nv)
        self.of_a = np.zeros((self.rows, self.nv))
        self.of_aq, self.of_av, self.of_atau = np.zeros(full), np.zeros(full), np.zeros(full)

    @cached_property
    def phi(self) -> Array:
        """In φ, of all edges."""
        problem = self.line.problem
        return self.line.score.phi.flat.reshape(problem.batch, problem.N - 1, self.size, self.size)

    @cached_property
    def H(self) -> Array:
        """In H, of all steps."""
        return self.line.score.H.flat.reshape(*self.lead, self.m, self.size)

    def slopes(self, robot: bool) -> Slopes:
        """All of them; without the robot, those in W and R are right and the others are not."""
        problem, nv = self.line.problem, self.nv
        w = self.line.w
        gravity, of_W = np.zeros(3), np.zeros((problem.batch, problem.noises, self.p, self.p))
        T = self.T
        if problem.carried:
            of_W = self.Q[..., self.n :, self.n :]
        if problem.carried and robot:
            of_Hw = self.H[..., self.n :] + T[..., :, None] * w[..., None, :]
            gravity = self._readings(self.H[..., : self.n], of_Hw)
        if problem.N > 1:
            B = self.line.point.B.reshape(problem.batch, problem.N - 1, self.n, self.p)
            if not problem.carried:
                of_W = np.swapaxes(B, 2, 3) @ self.Q[:, 1:] @ B
            if robot:
                xi = self.xi[:, 1:, : self.n]
                of_B = self.phi[..., : self.n, self.n :] if problem.carried else 2.0 * self.Q[:, 1:] @ B @ problem.Q
                of_B = of_B - xi[..., :, None] * w[:, : problem.N - 1, None, :]
                self._steps(self.phi[..., : self.n, : self.n], of_B, xi)
        scale = self._scale(self.H[..., : self.n], T) if robot else np.zeros(T.shape[2])
        reading = np.zeros(self.line.model.seen.points.size)
        plain = self.line.plain
        reading[plain.points] = -T.sum(axis=(0, 1))[plain.tangents]
        own = of_W[..., :nv, :nv]
        factor = float(np.einsum("bkij,kij->", own, problem.Q[:, :nv, :nv]))
        return Slopes(self._robot() if robot else None, gravity, reading, scale, own.sum(axis=(0, 1)), self.R, factor)

    def _steps(self, of_F: Array, of_B: Array, of_xi: Array) -> None:
        """Through F = [[A + J F_v], [.. h a_q, 1 + h a_v]], B = [[J B_v], [h inputs]] and the defects."""
        line, nv, h = self.line, self.nv, self.line.model.dt
        own = line.edge_rows
        model = line.model
        forces = slice(self.n - 6 * len(model.wrench_places), self.n)
        of_F, of_B, of_xi = (x.reshape(-1, *x.shape[2:]) for x in (of_F, of_B, of_xi))
        of_inputs = np.concatenate([of_B[:, : 2 * nv, :nv], of_F[:, : 2 * nv, forces]], axis=2)
        of_F = of_F[:, : 2 * nv, : 2 * nv]
        of_xi = of_xi[:, : 2 * nv]
        points = model.stepper.points
        if points.blocks:
            d = h * (line.v[own] + h * self.a[own])
            J = h * points.right_jacobian(d)
            turn = np.swapaxes(np.linalg.inv(points.right_jacobian(line.defects[:, :nv])), 1, 2)
            of_xi = np.concatenate([(turn @ of_xi[:, :nv, None])[..., 0], of_xi[:, nv:]], axis=1)
            F, B = line.point.F[:, nv : 2 * nv, : 2 * nv], self._inputs()[own] * h
            of_J = of_F[:, :nv] @ F.swapaxes(1, 2) + of_inputs[:, :nv] @ B.swapaxes(1, 2)
            self.of_a[own] += h**2 * _along_turns(points, d, h * of_J, of_F[:, :nv, :nv])
            back = J.swapaxes(1, 2)
            of_F = of_F[:, nv:] + back @ of_F[:, :nv]
            of_inputs = of_inputs[:, nv:] + back @ of_inputs[:, :nv]
            of_a = of_xi[:, nv:] + (back @ of_xi[:, :nv, None])[..., 0]
        else:
            of_F = of_F[:, nv:] + h * of_F[:, :nv]
            of_inputs = of_inputs[:, nv:] + h * of_inputs[:, :nv]
            of_a = of_xi[:, nv:] + h * of_xi[:, :nv]
        self.of_a[own] += h * of_a
        self.of_aq[own] += h * of_F[..., :nv]
        self.of_av[own] += h * of_F[..., nv:]
        self._pull_inputs(own, h * of_inputs)

    def _inputs(self) -> Array:
        return self.a_tau if self.a_f is None else np.concatenate([self.a_tau, self.a_f], axis=2)

    def _pull_inputs(self, own: Any, of_inputs: Array) -> None:
        """To 𝓜⁻¹: a_f = 𝓜⁻¹ J* of each wrench."""
        nv, model = self.nv, self.line.model
        self.of_atau[own] += of_inputs[..., :nv]
        for i, frame in enumerate(model.stepper.wrenches):
            J = jacobian(model.system, self.line.q[own], frame)
            self.of_atau[own] += of_inputs[..., nv + 6 * i : nv + 6 * i + 6] @ J

    def _readings(self, of_H: Array, of_Hw: Array) -> Array:
        """Through the sensors that feel accelerations; the gradient in gravity as they read it."""
        line, nv, model = self.line, self.nv, self.line.model
        rows = (self.rows, -1)
        of_h = -self.T.reshape(*rows)
        forces = slice(self.n - 6 * len(model.wrench_places), self.n)
        of_H, of_Hw = of_H.reshape(self.rows, -1, self.n), of_Hw.reshape(self.rows, -1, self.p)
        of_inputs = np.concatenate([of_Hw[:, :, :nv], of_H[:, :, forces]], axis=2)
        gravity = np.zeros(3)
        for sensor, own in zip(model.seen.sensors, model.seen.tangents_of):
            feel = FEELS.get(type(sensor))
            if feel is None:
                continue
            s = model.seen.factors[own]

            def read(a: Array, g: Array, feel: Any = feel, sensor: Any = sensor) -> Any:
                return feel(sensor, model.system, line.q, line.v, a, g)

            at = read(self.a, model.g)
            back = s * at.of_a.swapaxes(1, 2)
            of_own, of_q = of_h[:, own], of_H[:, own, :nv]
            self.of_a += (back @ of_own[..., None])[..., 0]
            self.of_aq += back @ of_q
            self.of_av += back @ of_H[:, own, nv : 2 * nv]
            self._pull_inputs(slice(None), back @ of_inputs[:, own])
            zero, still = np.zeros_like(self.a), np.zeros(3)
            level = read(zero, still).of_q  # of_q is affine in a and in g
            for j, unit in enumerate(np.eye(nv)):
                moved = read(np.broadcast_to(unit, zero.shape).copy(), still).of_q - level
                self.of_a[:, j] += np.einsum("rij,i,rij->r", of_q, s, moved)
            for j, unit in enumerate(np.eye(3)):
                there, here = read(zero, unit), read(zero, still)
                gravity[j] += inner(of_own, s * (there.reading - here.reading))
                gravity[j] += inner(of_q, s[:, None] * (there.of_q - here.of_q))
        return gravity

    def _scale(self, of_H: Array, T: Array) -> Array:
        """In the logarithm of a factor of each reading: h̄·h + H̄·H, without the bias."""
        line, point = self.line, self.line.point
        m = T.shape[2]
        own = np.ones(self.n, bool)
        for place in line.model.bias_places:
            own[line.model.tangent_place(place)] = False  # biases are added behind the factor
        out = np.einsum("rij,rij->i", of_H.reshape(-1, m, self.n)[..., own], point.H[..., own])
        plain = line.plain
        h = point.at.h.reshape(self.rows, -1) - line.biased
        flat = T.reshape(self.rows, m)
        out[plain.tangents] -= np.einsum("ri,ri->i", flat[:, plain.tangents], h[:, plain.points])
        if point.H_w is not None:
            w = line.w.reshape(self.rows, 1, self.p)
            of_Hw = self.H[..., self.n :].reshape(-1, m, self.p) + flat[..., None] * w
            out += np.einsum("rij,rij->i", of_Hw, point.H_w)
        return out

    def _robot(self) -> Adjoint:
        """To the effects: −𝓜⁻¹ of each, and ∂_q(𝓜 da) through unit accelerations."""
        line, Minv = self.line, self.a_tau
        left_q, left_v = -Minv @ self.of_aq, -Minv @ self.of_av
        of_a = self.of_a.copy()
        robot = line.model.stepper.system
        zero, still = np.zeros_like(line.v), np.zeros(3)
        for j in range(self.nv):
            unit = zero.copy()
            unit[:, j] = 1.0
            slope = inverse_dynamics_derivatives(robot, line.q, zero, unit, gravity=still).dtau_dq
            of_a[:, j] += np.einsum("rij,rij->r", left_q, slope)
        r = -(Minv @ of_a[..., None])[..., 0]
        of_M = left_q @ self.a_q.swapaxes(1, 2) + left_v @ self.a_v.swapaxes(1, 2) - Minv @ self.of_atau @ Minv
        return Adjoint(r, left_q, left_v, of_M)


def _along_turns(points: Any, d: Array, of_J: Array, of_A: Array) -> Array:
    """Gradient in d of ⟨of_J, J(d)⟩ + ⟨of_A, A(d)⟩ for the Jacobians of Exp, by differences of fourth order."""
    out = np.zeros_like(d)
    for _, tangent in points.blocks:
        for i in range(tangent.start, tangent.stop):
            e = np.zeros(d.shape[1])
            e[i] = _ANGLE

            def value(s: float, e: Array = e) -> Array:
                at = d + s * e
                both = of_J * points.right_jacobian(at) + of_A * points.transported(at)
                return np.asarray(both.sum(axis=(1, 2)))

            one, two = value(1.0) - value(-1.0), value(2.0) - value(-2.0)
            out[:, i] = (8.0 * one - two) / (12.0 * _ANGLE)
    return out
