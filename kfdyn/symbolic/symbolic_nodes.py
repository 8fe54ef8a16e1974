"""Links as nodes of the filter, in symbols: the page of the engine run on formulas (R86 section 11).

What :mod:`kfdyn.estimation.recursions.node_update` calls a node is a link here, in its own frame, and an output one dof
of its joint. Every letter may stand for several columns: unit forces, of which all share the gains.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from kfdyn.errors import SingularError
from kfdyn.estimation.recursions.node_update import Output, Straight, filter_node, smooth_node
from kfdyn.textbook.sko.sko_model import Model


def solve(model: Model, T: Any) -> Any:
    """Return θ̈ (Σm_k,), or (Σm_k, c) for c columns of forces T, by filter and smoother of the engine's own page."""
    sweep = _Sweep(model, T)
    for k in model.inward:
        try:
            filter_node(_Node(sweep, k))
        except ZeroDivisionError:
            dof = next(i for i in range(sweep.first[k], sweep.first[k + 1]) if i not in sweep.kept)
            raise SingularError(
                f"degree of freedom {dof}: nothing that it is free to move has inertia, so its innovation variance is "
                "0; give a body a mass or the hinge an armature"
            ) from None
    for k in model.outward:
        smooth_node(_Node(sweep, k))
    return np.array(sweep.theta_ddot, dtype=object)


class _Sweep:
    """State of the sweep: P⁺ and z⁺ inward, α outward, and what each dof keeps."""

    def __init__(self, model: Model, T: Any) -> None:
        self.model, self.T = model, T
        self.tail = np.shape(T)[1:]
        self.first = np.cumsum([0, *(len(H) for H in model.H)])
        self.passed: dict[int, tuple[Any, Any]] = {}
        self.alpha: dict[int, Any] = {}
        self.kept: dict[int, _Kept] = {}
        self.theta_ddot: list[Any] = [None] * int(self.first[-1])


class _Kept(NamedTuple):
    gain: _Vector
    nu: Any


class _Matrix(NamedTuple):
    """A covariance; symmetric, so that each entry is written once."""

    entries: Any

    def applied(self, row: _Vector) -> _Vector:
        """P h*."""
        return _Vector(self.entries @ row.entries)

    def less(self, g: _Vector, u: _Vector) -> _Matrix:
        """P − g u*."""
        out = self.entries.copy()
        for i in range(len(out)):
            for j in range(i + 1):
                out[i, j] = out[j, i] = out[i, j] - g.entries[i] * u.entries[j]
        return _Matrix(out)


class _Vector(NamedTuple):
    """A row of H, a gain, z or α; the latter two perhaps with columns."""

    entries: Any

    def dot(self, other: _Vector) -> Any:
        """h x."""
        return self.entries @ other.entries

    def __rmul__(self, factor: Any) -> _Vector:
        return _Vector(factor * self.entries)

    def plus(self, g: _Vector, eps: Any) -> _Vector:
        """z + g ε."""
        return _Vector(self.entries + np.multiply.outer(g.entries, eps))

    def added_to(self, costate: _Vector, a: Any) -> _Vector:
        """α + h*a."""
        return costate.plus(self, a)


class _Node:
    """A link: z holds P a beforehand, SKO's split of the biases."""

    def __init__(self, sweep: _Sweep, k: int) -> None:
        self.sweep, self.k = sweep, k

    def _biases(self) -> tuple[Any, Any]:
        """a and b (n,), or (n, 1) beside columns."""
        model, deep = self.sweep.model, (slice(None), *(None for _ in self.sweep.tail))
        return model.a[self.k][deep], model.b[self.k][deep]

    def prior(self) -> Straight:
        """P = Σ A P⁺ A* + M, z = Σ A z⁺ + P a + b."""
        sweep, model = self.sweep, self.sweep.model
        P = model.M[self.k]
        a, b = self._biases()
        z = np.zeros((len(P), *sweep.tail), dtype=object)
        for j in model.children(self.k):
            P_plus, z_plus = sweep.passed[j]
            A = model.A[j]
            P, z = P + A @ P_plus @ A.T, z + A @ z_plus
        return Straight(_Matrix(P), _Vector(z + P @ a + b))

    def outputs(self, backwards: bool = False) -> Iterator[_Output]:
        """The dofs."""
        count = len(self.sweep.model.H[self.k])
        for i in reversed(range(count)) if backwards else range(count):
            yield _Output(self.sweep, self.k, i)

    def pass_on(self, P: _Matrix, z: _Vector) -> None:
        """Pass P⁺ and z⁺ to the parent, which shifts them."""
        self.sweep.passed[self.k] = P.entries, z.entries

    def arriving(self) -> Straight:
        """α⁺ = A*α(p)."""
        sweep, model = self.sweep, self.sweep.model
        p = model.parent[self.k]
        still = np.zeros((len(model.M[self.k]), *sweep.tail), dtype=object)
        return Straight(_Vector(model.A[self.k].T @ sweep.alpha[p] if p >= 0 else still))

    def leave(self, costate: _Vector) -> None:
        """α = α⁺ + H*θ̈ + a."""
        self.sweep.alpha[self.k] = costate.entries + self._biases()[0]


class _Output(Output):
    """One dof."""

    def __init__(self, sweep: _Sweep, k: int, i: int) -> None:
        self.sweep, self.at = sweep, int(sweep.first[k]) + i
        self.row = _Vector(sweep.model.H[k][i])
        self.noise = sweep.model.R[k][i, i]
        self.measured = sweep.T[self.at]

    def keep(self, g: _Vector, d: Any, nu: Any) -> None:
        """Remember the gain and ν."""
        self.sweep.kept[self.at] = _Kept(g, nu)

    @property
    def gain(self) -> _Vector:
        """g."""
        return self.sweep.kept[self.at].gain

    @property
    def nu(self) -> Any:
        """ν."""
        return self.sweep.kept[self.at].nu

    def answer(self, a: Any) -> None:
        """The acceleration of the dof."""
        self.sweep.theta_ddot[self.at] = a
