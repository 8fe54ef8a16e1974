"""Exact maps between our q, v, a, tau and those of another tool, hinge by hinge.

Velocities differ by a matrix X(q) that is orthogonal for every joint below, so with v_there = X v

    a_there = X a + Ẋ v,   tau_there = X^-* tau = X tau,

and back by the transpose. Mass matrices go as 𝓜_there = X 𝓜 X*.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import checked, configuration, expect_system
from kfdyn.multibody.kinds import expect_rigid
from kfdyn.multibody.parts.body import as_floats
from kfdyn.spatial import normalize_quaternion, quaternion_to_matrix

W_FIRST, W_LAST = [3, 0, 1, 2], [1, 2, 3, 0]  # (x, y, z, w) -> (w, x, y, z), and back
SWAPPED = np.eye(6)[[3, 4, 5, 0, 1, 2]]  # [angular; linear] <-> [linear; angular]


class Kind(Enum):
    """Coordinates that the other tool uses for a joint."""

    SAME = "the same numbers"
    SHIFTED = "one number, less a reference"
    CIRCLE = "the cosine and sine of the angle"
    BALL_W_FIRST = "quaternion (w, x, y, z)"
    POSE_W_FIRST = "position, quaternion (w, x, y, z); v is [linear, world axes; angular, body axes]"
    POSE_LINEAR_FIRST = "position, quaternion (x, y, z, w); v is [linear; angular], body axes"
    PLANE = "x, y, cosine, sine; the linear part of v in body axes"


class Pair(NamedTuple):
    """One of our hinges and the joint it is in the other tool."""

    hinge: str
    kind: Kind
    q: slice
    v: slice
    q_there: slice
    v_there: slice
    reference: float = 0.0


class State(NamedTuple):
    """Configuration (..., nq) and, where they were given, velocity, acceleration and force (..., nv).

    Attributes
    ----------
    q : (..., nq)
        Configuration.
    v, a, tau : (..., nv) or None
        Velocity, acceleration and generalised force; None where they were not given.

    Examples
    --------
    >>> state = State(np.zeros(3), v=np.ones(3))
    >>> state.v, state.tau
    (array([1., 1., 1.]), None)
    """

    q: Array
    v: Array | None = None
    a: Array | None = None
    tau: Array | None = None


class Pairing(NamedTuple):
    """All pairs of a system's open tree and a model of another tool, the other's sizes, and the system itself."""

    system: System
    pairs: Sequence[Pair]
    nq: int
    nv: int
    whole: System

    @classmethod
    def of(cls, whole: System, model: Any, pair_up: Callable[[System, Any], Sequence[Pair]]) -> Pairing:
        """Pair a system with a model by ``pair_up(open tree, model)``; the model tells its own sizes."""
        expect_system(whole)
        expect_rigid(whole, "the state of another library")
        return cls(whole.open_tree, pair_up(whole.open_tree, model), int(model.nq), int(model.nv), whole)

    def there(
        self, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None, tau: ArrayLike | None = None
    ) -> State:
        """Our state in the other's coordinates."""
        system = self.system
        if tau is not None:
            here = self.whole._expansion.at(configuration(self.whole, q))
            tau = here.named_forces(checked(self.whole, tau, (self.whole.nv,), "tau"))
        _, q, v, a = self.whole.opened(q, v=v, a=a)
        q = configuration(system, q)
        rates = [None if x is None else checked(system, x, (system.nv,), key) for key, x in _named(v, a, tau)]
        out = np.zeros((*q.shape[:-1], self.nq))
        for pair in self.pairs:
            out[..., pair.q_there] = _q_there(pair, q[..., pair.q])
        return State(out, *_rates(self, q, rates, True))

    def here(
        self, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None, tau: ArrayLike | None = None
    ) -> State:
        """The other's state in our coordinates."""
        q = _checked(q, self.nq, "q")
        rates = [None if x is None else _checked(x, self.nv, key) for key, x in _named(v, a, tau)]
        out = np.empty((*q.shape[:-1], self.system.nq))
        for pair in self.pairs:
            out[..., pair.q] = _q_here(pair, q[..., pair.q_there])
        state = State(out, *_rates(self, out, rates, False))
        return _contracted(self.whole, state)


def expect_model_of(kind: str, model: Any, has: Sequence[str], reader: str) -> None:
    """Refuse what is no model of the other tool, which is easily forgotten between the system and q."""
    if not all(hasattr(model, key) for key in has):
        raise ModelError(
            f"model, the second argument, must be a {kind}, got {type(model).__name__}; give (system, model, q, v) "
            f"with the model that {reader} makes of the same file"
        )


def _contracted(system: System, state: State) -> State:
    """A state of the open tree as one of the system with couplings, if it is one."""
    e, own = system._expansion, system._expansion.nearest(state.q)
    _obeys(system, "q", state.q[..., e.coupled_q], e.of_coordinates(own))
    q = e.contracted(state.q, own)
    here = e.at(q)

    def rates(x: Array | None, what: str, v: Array | None = None) -> Array | None:
        if x is None:
            return None
        out = e.kept(x, x[..., e.coupled_v] @ np.linalg.pinv(e.constant).T)
        every = here.accelerations(v, out) if what == "a" else here.rates(out)
        assert every is not None
        _obeys(system, what, x[..., e.coupled_v], every[..., e.coupled_v])
        return out

    v = rates(state.v, "v")
    return State(q, v, rates(state.a, "a", v), None if state.tau is None else here.forces(state.tau))


def _obeys(system: System, what: str, given: Array, coupled: Array) -> None:
    off = np.abs(given - coupled).max(axis=tuple(range(given.ndim - 1)), initial=0.0)
    if (off > 1e-6 * (1 + np.abs(given).max(initial=0.0))).any():
        names = [name for coupling in system.couplings for name in coupling.hinges]
        raise ModelError(
            f"{what} of the other model breaks a coupling of system {system.name!r}: {names[int(off.argmax())]!r} "
            f"is off by {off.max():.3g}; bring its state onto the couplings, or convert for system.open_tree"
        )


def _named(*rates: ArrayLike | None) -> list[tuple[str, ArrayLike | None]]:
    return list(zip(("v", "a", "tau"), rates))


def _checked(value: ArrayLike, size: int, what: str) -> Array:
    array = as_floats(value, what)
    if array.shape[-1:] != (size,):
        raise ShapeError(f"{what} must have shape (..., {size}) for the other tool's model, got {array.shape}")
    if not np.isfinite(array).all():
        raise ModelError(f"{what} has entries that are not finite")
    return array


def _q_there(pair: Pair, q: Array) -> Array:
    match pair.kind:
        case Kind.SHIFTED:
            return q + pair.reference
        case Kind.CIRCLE:
            return np.concatenate([np.cos(q), np.sin(q)], axis=-1)
        case Kind.BALL_W_FIRST:
            return q[..., W_FIRST]
        case Kind.POSE_W_FIRST:
            return np.concatenate([q[..., :3], q[..., 3:][..., W_FIRST]], axis=-1)
        case Kind.PLANE:
            return np.concatenate([q[..., :2], np.cos(q[..., 2:]), np.sin(q[..., 2:])], axis=-1)
        case _:
            return q


def _q_here(pair: Pair, q: Array) -> Array:
    match pair.kind:
        case Kind.SHIFTED:
            return q - pair.reference
        case Kind.CIRCLE:
            return np.arctan2(q[..., 1:], q[..., :1])
        case Kind.BALL_W_FIRST:
            return normalize_quaternion(q[..., W_LAST])
        case Kind.POSE_W_FIRST:
            return np.concatenate([q[..., :3], normalize_quaternion(q[..., 3:][..., W_LAST])], axis=-1)
        case Kind.PLANE:
            return np.concatenate([q[..., :2], np.arctan2(q[..., 3:], q[..., 2:3])], axis=-1)
        case _:
            return q


def _rates(pairing: Pairing, q: Array, rates: Sequence[Array | None], outward: bool) -> list[Array | None]:
    """Carry v, a and tau over, to the other tool (``outward``) or from it; ``q`` is ours."""
    v, a, _ = rates
    if a is not None and v is None:
        raise ModelError("an acceleration needs the velocity too: where axes turn, Ẋ v is part of it; give v")
    lead = np.broadcast_shapes(q.shape[:-1], *(x.shape[:-1] for x in rates if x is not None))
    size = pairing.nv if outward else pairing.system.nv
    out = [None if x is None else np.zeros((*lead, size)) for x in rates]
    for pair in pairing.pairs:
        source, target = (pair.v, pair.v_there) if outward else (pair.v_there, pair.v)
        X = _velocity_map(pair, q[..., pair.q])
        turn = X if outward else np.swapaxes(X, -1, -2)
        for x, y in zip(rates, out):
            if x is not None and y is not None:
                y[..., target] = (turn @ x[..., source, None])[..., 0]
        if a is not None and v is not None and out[1] is not None and out[0] is not None:
            beta = v[..., source] if outward else out[0][..., target]
            drift = _drift(pair, X, beta)
            if drift is not None:
                out[1][..., target] += drift if outward else -(turn @ drift[..., None])[..., 0]
    return out


def _velocity_map(pair: Pair, q: Array) -> Array:
    """X of v_there = X v, (..., m, m), orthogonal."""
    m = pair.v.stop - pair.v.start
    if pair.kind is Kind.POSE_LINEAR_FIRST:
        return SWAPPED
    if pair.kind is Kind.POSE_W_FIRST:
        X = np.zeros((*q.shape[:-1], 6, 6))
        X[..., :3, 3:] = quaternion_to_matrix(q[..., 3:])
        X[..., 3:, :3] = np.eye(3)
        return X
    X = np.zeros((*q.shape[:-1], m, m)) + np.eye(m)
    if pair.kind is Kind.PLANE:
        c, s = np.cos(q[..., 2]), np.sin(q[..., 2])
        X[..., 0, 0], X[..., 0, 1], X[..., 1, 0], X[..., 1, 1] = c, s, -s, c
    return X


def _drift(pair: Pair, X: Array, v: Array) -> Array | None:
    """Ẋ v, (..., m), of our velocity v; None where X is constant."""
    if pair.kind is Kind.POSE_W_FIRST:  # d(R v)/dt = R (dv/dt + ω × v)
        turning = np.concatenate([np.zeros_like(v[..., :3]), np.cross(v[..., :3], v[..., 3:])], axis=-1)
        return (X @ turning[..., None])[..., 0]
    if pair.kind is Kind.PLANE:  # d(R* v)/dt = R* dv/dt − θ̇ [0 −1; 1 0] R* v
        x, y, _ = np.moveaxis((X @ v[..., None])[..., 0], -1, 0)
        return np.stack([v[..., 2] * y, -v[..., 2] * x, np.zeros_like(x)], axis=-1)
    return None
