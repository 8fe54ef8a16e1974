"""The search for the maximum: smoothing, and steps of the parameters, in turn."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.errors import KfdynError
from kfdyn.motion.identification.directions import beside, scaled, visible
from kfdyn.motion.identification.held import Held
from kfdyn.motion.identification.linear import Linear, Log, Motion
from kfdyn.motion.identification.noise_information import information_of_covariances
from kfdyn.motion.identification.parameters.groups import ROBOT
from kfdyn.motion.identification.response import signatures
from kfdyn.motion.identification.smoothing import moved, smooth
from kfdyn.motion.identification.start import Start

_UNKNOWN = 1e-6  # eigenvalue of the information, scaled to unit diagonal, below which a direction is not known
_SADDLE = 1e-3  # eigenvalue of the information, scaled to unit diagonal, that differences do not leave
_INNER = 40  # steps in which the quadratic model is maximised
_NEAR = 1e-6  # promised gain below which the observed information is worth its price
_AGAIN = 1.0  # promised gain above which the information of the means is computed anew
_MOST_AGE = 8  # steps after which the observed information is seen anew
_SMALL = 1e-4  # promised gain below which slopes are trusted more than values: a hundredth of a standard error
_ROUNDING = 1e-6  # promised gain that may be left where steps no longer shrink: a thousandth of a standard error


class Place(NamedTuple):
    """Free numbers, and the logs linearised about their own motions there."""

    z: Array
    lines: list[Linear]
    held: Held
    llf: float

    @property
    def motions(self) -> list[Motion]:
        """The motions."""
        return self.held.motions


class Found(NamedTuple):
    """End of a search."""

    place: Place
    information: Array
    seen: tuple[Array, Array]
    at_bound: NDArray[np.bool_]
    iterations: int
    converged: bool
    message: str


class Curvature(NamedTuple):
    """Information in numbers z of parameters, directions that are seen and not seen, and numbers at a bound."""

    parameters: Any
    z: Array
    information: Array
    seen: tuple[Array, Array]
    at_bound: NDArray[np.bool_]


class Step(NamedTuple):
    """End of a step, what the whole of Newton's promises and what it does, and the least curvature."""

    there: Array
    gain: float
    promised: float
    least: float


class Search:
    """A run of the steps.

    Parameters
    ----------
    parameters : Parameters or Built
        What is looked for.
    logs : list of Log
        Readings and torques.
    most : int
        Limit of steps.
    tolerance : float
        Of the promised gain.
    """

    def __init__(self, parameters: Any, logs: list[Log], most: int, tolerance: float) -> None:
        self.parameters, self.logs, self.most, self.tolerance = parameters, logs, most, tolerance
        self.responses: list[Array] = []

    # --- places

    def begin(self, regress: bool = True) -> Place:
        """The place where the search begins: the regression's, if there is one, or that of the first values."""
        parameters = self.parameters
        first = parameters.models(parameters.start)
        start = Start(first, self.logs)
        if start.known:
            z = start.regressed(parameters) if regress else parameters.start.copy()
            try:
                return self.place(z, start.motions(parameters.models(z)))
            except KfdynError:
                return self.place(parameters.start.copy(), start.motions(first))
        motions = []
        for model, log in zip(first, self.logs):
            x = log.problem(model).start("extended")
            noises = log.problem(model).noises
            motions.append(Motion(x, np.zeros((len(x), noises, model.p))))
        return self.place(parameters.start.copy(), motions)

    def place(self, z: Array, motions: list[Motion]) -> Place:
        """Smooth from motions nearby."""
        lines = [smooth(*parts) for parts in zip(self.parameters.models(z), self.logs, motions)]
        held = Held(self.parameters, self.logs, [line.motion for line in lines])
        return Place(z, lines, held, held.llf_of(z, lines))

    def _seen(self, place: Place) -> tuple[Array, Array]:
        robot = np.zeros(place.z.size, bool)
        for group, own in zip(self.parameters.groups, self.parameters.places):
            robot[own] = group.block[0] in ROBOT and self.parameters.closed[own.start]
        if not robot.any():
            return np.eye(robot.size), np.zeros((robot.size, 0))
        each = [signatures(self.parameters, place.z, line) for line in place.lines]
        return visible(np.concatenate(each, axis=1), robot)

    def _turned(self, seen: tuple[Array, Array], before: Array, now: Array) -> tuple[Array, Array]:
        """Turn what is seen to other free numbers; of the robot's own numbers the same directions stay unseen."""
        if not seen[1].size:
            return seen
        slopes = (self.parameters.straight_slope(z) for z in (now, before))
        blind = np.linalg.qr(np.linalg.solve(next(slopes), next(slopes) @ seen[1]))[0]
        return beside(blind), blind

    # --- informations

    def _expected(self, place: Place) -> Array:
        """Information of the means, and of the covariances in numbers that change them alone."""
        H, self.responses = place.held.responses(place.z, place.lines)
        noise = np.flatnonzero(self.parameters.noise)
        if noise.size:
            for i, line in enumerate(place.lines):
                H[np.ix_(noise, noise)] += information_of_covariances(self.parameters, place.z, i, line, noise)
        return H

    def _errors(self, H: Array, V: Array) -> Array:
        """Standard errors by an information, of the free numbers as far as they are seen."""
        values, vectors, scale = scaled(V.T @ H @ V)
        inverse = 1.0 / np.maximum(np.abs(values), 1e-3)
        columns = V @ (vectors / scale[:, None])
        return np.sqrt(np.einsum("ij,j,ij->i", columns, inverse, columns)) + 1e-12

    def curvature(self, found: Found) -> Curvature:
        """The information at the end of a search, from which standard errors follow.

        At the edge of positive mass logarithms of a thickness tell nothing. There it is the information of the
        natural numbers, as if inertias knew no edge: the best inside the edge is the projection of the best of all onto
        a convex set, in the information's norm, and so no farther from a truth inside.
        """
        place = found.place
        if not self.parameters.thin(place.z):
            return Curvature(self.parameters, place.z, found.information, found.seen, found.at_bound)
        straight, z = self.parameters.straightened(), self.parameters.straight(place.z)
        place = Place(z, place.lines, Held(straight, self.logs, place.motions), place.llf)
        search = Search(straight, self.logs, self.most, self.tolerance)
        seen = search._seen(place)
        H = place.held.information(z, search._errors(search._expected(place), seen[0]))
        at_bound = found.at_bound & ((z <= straight.lower) | (z >= straight.upper))
        return Curvature(straight, z, H, seen, at_bound)

    # --- steps

    def _free(self, z: Array, g: Array) -> NDArray[np.bool_]:
        return ~(((z <= self.parameters.lower) & (g <= 0.0)) | ((z >= self.parameters.upper) & (g >= 0.0)))

    def step(self, z: Array, g: Array, H: Array, V: Array) -> Step:
        """Maximise the quadratic model of the likelihood within the bounds, along what is seen.

        The model is one of the robot's own numbers, in which its equations are linear, not of their logarithms.
        """
        free = self._free(z, g)
        if not free.any():
            return Step(z, 0.0, 0.0, 0.0)
        own = V[free] if V.shape[1] < z.size else np.eye(z.size)[np.ix_(free, free)]
        values, vectors, scale = scaled(own.T @ H[np.ix_(free, free)] @ own)
        known = np.abs(values) > _UNKNOWN
        sizes, vectors = np.abs(values[known]), vectors[:, known]
        onto, back = own @ (scale[:, None] * vectors), own @ (vectors / scale[:, None])
        b = back.T @ g[free]
        curved, slope = np.zeros((z.size, z.size)), np.zeros(z.size)
        curved[np.ix_(free, free)], slope[free] = (onto * sizes) @ onto.T, onto @ b
        gain, least = 0.5 * float(b @ (b / sizes)), float(values.min(initial=0.0))
        there, promised = self._highest(z, slope, curved, free)
        return Step(there, gain, promised, least)

    def _highest(self, z: Array, g: Array, H: Array, free: NDArray[np.bool_]) -> tuple[Array, float]:
        """Free numbers where g·u − ½ u*Hu is highest, u linear in the robot's numbers; Levenberg and Marquardt."""
        parameters = self.parameters
        low = np.maximum(parameters.lower, z - parameters.longest)
        high = np.minimum(parameters.upper, z + parameters.longest)
        first, start = parameters.straight(z), np.linalg.inv(parameters.straight_slope(z))

        def model(there: Array) -> tuple[float, Array]:
            u = start @ (parameters.straight(there) - first)
            return float(g @ u - 0.5 * u @ H @ u), u

        there, (best, u), damping = z.copy(), model(z), 1e-6
        for _ in range(_INNER):
            T = start @ parameters.straight_slope(there)
            pull, A = T.T @ (g - H @ u), T.T @ H @ T
            inside = free & ~(((there <= low) & (pull <= 0.0)) | ((there >= high) & (pull >= 0.0)))
            if not inside.any():
                break
            A, pull = A[np.ix_(inside, inside)], pull[inside]
            scale = np.diag(A) + 1e-9 * np.diag(A).max(initial=0.0) + 1e-300
            while damping < 1e12:
                trial = there.copy()
                trial[inside] += np.linalg.solve(A + damping * np.diag(scale), pull)
                trial = np.clip(trial, low, high)
                value, moved_by = model(trial)
                if value > best:
                    break
                damping *= 10.0
            else:
                break
            done = value - best <= 1e-6 * abs(value)
            there, best, u, damping = trial, value, moved_by, max(0.1 * damping, 1e-12)
            if done:
                break
        return there, best

    def run(self, near: Found | None = None) -> Found:
        """Iterate from the first values; with motions and information of a maximum nearby, where one is known."""
        place = self.begin() if near is None else self.place(self.parameters.start.copy(), near.place.motions)
        g = place.held.gradient_of(place.z, place.lines)
        seen = self._seen(place)
        if near is None:
            H, observed, enough = self._expected(place), False, 1
        else:
            self.responses = place.held.responses(place.z, place.lines)[1]
            H, observed, enough = near.information, True, _MOST_AGE
        taken, age, before, message = 0, 0, np.inf, ""
        while True:
            step = self.step(place.z, g, H, seen[0])
            gain = step.gain
            thin = gain <= _SMALL and bool(self.parameters.thin(place.z))  # logarithms never arrive at the edge
            small = gain <= self.tolerance or (gain <= _ROUNDING and gain > 0.25 * before) or thin
            fresh = observed and age == 0
            if small and observed and age <= enough:
                message = (
                    "the gradient vanishes, but at a saddle; begin elsewhere"
                    if step.least < -_SADDLE and not thin
                    else ""
                )
                break
            if (gain <= _NEAR and not observed) or (small and age > enough) or age >= _MOST_AGE:
                H = place.held.information(place.z, self._errors(H, seen[0]))
                observed, age = True, 0
                continue
            if taken == self.most:
                message = f"no convergence in {self.most} steps; the last promised {gain:.2g}"
                break
            further = self._advance(place, step, observed)
            if further is None:
                if not fresh:
                    H = place.held.information(place.z, self._errors(H, seen[0]))
                    observed, age = True, 0
                    continue
                message = "no shorter step raises the likelihood"
                break
            for line in place.lines:
                line.release()
            slope = further.held.gradient_of(further.z, further.lines)
            if gain > _AGAIN and not observed:
                H = self._expected(further)
            else:
                H, age = self._carried(_positive(H) if fresh else H, place, further, g, slope), age + 1
            seen = self._turned(seen, place.z, further.z)
            place, g, before, taken = further, slope, gain, taken + 1
        if not observed:
            H = place.held.information(place.z, self._errors(H, seen[0]))
        at_bound = ~self._free(place.z, g)
        edge = "".join(f"; {name} is at the edge of positive mass" for name in self.parameters.thin(place.z))
        return Found(place, H, seen, at_bound, taken, not message, (message or "the gradient vanishes") + edge)

    def _advance(self, place: Place, step: Step, observed: bool) -> Place | None:
        """The longest step, halved at most ten times, that raises the likelihood of the smoothed motions."""
        parameters, d = self.parameters, step.there - place.z
        if not observed:  # a variance that is s times too small has the expected step s − 1
            d = np.where(parameters.noise, np.log1p(np.maximum(d, -0.9)), d)
        first, last = parameters.straight(place.z), parameters.straight(place.z + d)
        alpha = 1.0
        for _ in range(10):  # between inertias that masses have all others are so, and there the model is quadratic
            there = place.z + d if alpha == 1.0 else parameters.bent(first + alpha * (last - first))
            there = np.clip(there, parameters.lower, parameters.upper)
            try:
                found = self.place(there, self._answered(place, there - place.z))
            except KfdynError:  # no model, or no likelihood there
                alpha *= 0.5
                continue
            if np.isfinite(found.llf) and (found.llf >= place.llf + 0.1 * alpha * step.promised or step.gain < _SMALL):
                return found
            alpha *= 0.5
        return None

    def _carried(self, H: Array, place: Place, further: Place, g: Array, slope: Array) -> Array:
        """The information at the next place, by what it was and by the gradients at both (BFGS)."""
        parameters = self.parameters
        J = parameters.straight_slope(further.z)
        T = np.linalg.solve(parameters.straight_slope(place.z), J)
        s = np.linalg.solve(J, parameters.straight(further.z) - parameters.straight(place.z))
        return updated(T.T @ H @ T, s, T.T @ g - slope)

    def _answered(self, place: Place, dz: Array) -> list[Motion]:
        """Motions after a step, to first order in what the means answer."""
        out = []
        for line, x in zip(place.lines, self.responses):
            d = np.tensordot(dz, x, axes=1)[..., : line.problem.n]
            out.append(line.motion._replace(x=moved(line.model, line.motion.x, d)))
        return out


def _positive(H: Array) -> Array:
    """The information with all curvatures taken as those of a maximum."""
    values, vectors, scale = scaled(H)
    return np.asarray((vectors * np.abs(values)) @ vectors.T * np.outer(scale, scale))


def updated(H: Array, s: Array, y: Array) -> Array:
    """BFGS: the information that explains the last change y of minus the gradient along s."""
    if s @ y <= 1e-10 * np.linalg.norm(s) * np.linalg.norm(y):
        return H
    Hs = H @ s
    if s @ Hs <= 0.0:
        return H
    return np.asarray(H + np.outer(y, y) / (s @ y) - np.outer(Hs, Hs) / (s @ Hs))
