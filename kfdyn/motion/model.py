"""The motion of a robot as a nonlinear state-space model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.dynamics.sensors.sensor import Sensor
from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.model.blocks import real_array
from kfdyn.estimation.nonlinear import arguments
from kfdyn.estimation.nonlinear.arguments import Prior
from kfdyn.estimation.nonlinear.model import NonlinearModel
from kfdyn.motion.readings import Readings, ReadPoints
from kfdyn.motion.result import MotionFiltered, MotionSmoothed
from kfdyn.motion.step import Stepper
from kfdyn.multibody import System, difference, integrate
from kfdyn.multibody.calls.arguments import configuration

Index = NDArray[np.int64]

_SEEN = {"q": "Position", "v": "Velocity"}


class MotionModel(NonlinearModel):
    """A robot in time: what moves it, what is not known of that, and what sensors see.

    ::

        a = FD(q, v, τ + w),   v⁺ = v + dt a,   q⁺ = q ⊕ dt v⁺        w ~ N(0, W), a random generalised force a step
        y = sensors(q, v, a) ⊕ r                                    r ~ N(0, R)

    Filters and smoothers of nonlinear models take it: :func:`kfdyn.extended_kalman_filter`,
    :func:`kfdyn.unscented_kalman_filter`, :func:`kfdyn.iterated_kalman_smoother`, :class:`kfdyn.OnlineFilter`.

    Parameters
    ----------
    system : System
        The robot: trees with all hinges but custom ones, floating bases, couplings with a constant X.
    dt : float
        Seconds a step.
    sensors : sequence of Sensor
        ``JointPosition``, ``JointVelocity``, ``Position``, ``Velocity``, ``Pose``, ``Orientation``, ``Gyroscope``,
        ``CenterOfMass``, ``Contact`` of ``kf.sensors``; ``Accelerometer``, ``Imu``, ``AngularAcceleration``,
        ``JointAcceleration``, ``JointTorque`` and ``ForceTorque``, which see the disturbance too.
    force_noise : number, (nv,), (nv, nv) or (N−1, nv, nv)
        Variances or covariance W of the random force of one step; a continuous density S gives W = S/dt.
    method : {"euler", "implicit", "rk4"}
        The step, that of :func:`kfdyn.simulate`. "implicit" is MuJoCo's Euler step with damping.
    damping, stiffness, friction : bool or (nv,)
        True: those of the system; off if not given, as in ``simulate``. Coulomb friction is −μ tanh(v/v₀).
    friction_speed : float
        v₀.
    rest : (nq,), optional
        Where springs are at rest.
    gravity : (3,), optional
        ``system.gravity`` if not given.
    biases : mapping from a sensor's place or name to (variance at the start, variance a step), optional
        Biases that walk at random; each variance a number or one for each entry.
    scales : mapping from a sensor's name to a factor or one an entry, optional
        Sensors read that multiple of the truth, then their bias.
    wrenches : mapping from a body or frame to (variance at the start, variance a step), optional
        External forces [moment; force] in world axes at its origin that walk at random; numbers or six each.
    prior : (q0, v0, P0), optional
        State of step 0 and its covariance (2 nv, 2 nv) in the tangent; infinite variances are flat. The neutral pose at
        rest, all flat, if not given.

    Attributes
    ----------
    dt : float
        Seconds a step.
    seen : Readings
        The sensors.
    bias_places, wrench_places : dict
        Where biases and wrenches stand in x.

    Notes
    -----
    x is (q, v), then biases and wrenches; tangents are (δq, δv), then the same. ``tau=`` in the filters and smoothers
    is what was ordered: (N−1, nv), or (N, nv) where a sensor feels accelerations. THEORY section 18.

    Examples
    --------
    >>> import kfdyn as kf
    >>> sensors = [kf.sensors.JointPosition(1e-6), kf.sensors.Gyroscope("link_6", 1e-4)]
    >>> kf.MotionModel(kf.models.puma560(), 0.01, sensors, force_noise=[1.0] * 6)
    MotionModel('PUMA 560', 6 dofs, dt 0.01 s, euler; JointPosition(), Gyroscope('link_6'))
    """

    filtered_type = MotionFiltered
    smoothed_type = MotionSmoothed
    input_name = "tau"

    def __init__(
        self,
        system: System,
        dt: float,
        sensors: Sequence[Sensor],
        force_noise: ArrayLike,
        *,
        method: str = "euler",
        damping: bool | ArrayLike = False,
        stiffness: bool | ArrayLike = False,
        friction: bool | ArrayLike = False,
        friction_speed: float = 0.01,
        rest: ArrayLike | None = None,
        gravity: ArrayLike | None = None,
        biases: Mapping[Any, tuple[Any, Any]] | None = None,
        wrenches: Mapping[str, tuple[Any, Any]] | None = None,
        scales: Mapping[str, ArrayLike] | None = None,
        prior: tuple[Any, Any, Any] | None = None,
    ) -> None:
        self.stepper = Stepper(
            system, dt, method, damping, stiffness, rest, gravity, tuple(wrenches or ()), friction, friction_speed
        )
        self.system, self.dt = system, self.stepper.dt
        self.seen = Readings(system, sensors, scales)
        self.g = np.asarray(system.gravity if gravity is None else gravity, np.float64)
        nq, nv = system.nq, system.nv
        if np.ndim(force_noise) == 0:
            force_noise = np.full(nv, force_noise)
        W = arguments.covariance(force_noise, "force_noise", nv)
        at = nq + nv
        starts: list[Array] = []
        walks: list[Array] = []
        self.bias_places: dict[str, slice] = {}
        self.wrench_places: dict[str, slice] = {}
        for key, pair in (biases or {}).items():
            i = self.sensor_index(key)
            own = self.seen.points_of[i]
            if self.seen.tangents_of[i].stop - self.seen.tangents_of[i].start != own.stop - own.start:
                raise ModelError(
                    f"{self.seen.sensors[i].name}: a bias of what does not add (a quaternion) has no meaning"
                )
            at = self._walk(self.bias_places, self.seen.sensors[i].name, own.stop - own.start, pair, at, starts, walks)
        for frame, pair in (wrenches or {}).items():
            at = self._walk(self.wrench_places, frame, 6, pair, at, starts, walks)
        self._bias_of = [self.sensor_index(key) for key in (biases or {})]
        self._extra = at - nq - nv
        extra_start = np.concatenate(starts) if starts else np.zeros(0)
        extra_walk = np.concatenate(walks) if walks else np.zeros(0)
        Q = np.zeros((*W.shape[:-2], nv + self._extra, nv + self._extra))
        Q[..., :nv, :nv] = W
        Q[..., range(nv, nv + self._extra), range(nv, nv + self._extra)] = extra_walk
        self._extra_start = extra_start
        names = [f"{of}[{name}]" for of in ("q", "v") for name in _dof_names(system)]
        for place_of in (self.bias_places, self.wrench_places):
            names += [f"{name}[{i}]" for name, place in place_of.items() for i in range(place.stop - place.start)]

        manifold: dict[str, Any] = {}
        if self.stepper.points.blocks:
            manifold = {"plus": self._plus, "minus": self._minus, "plus_jacobian": self._right_jacobian}
        x0, P0 = self._start(prior)
        observe = self._observed if self.seen.sees_noise else self._seen_at_rest
        super().__init__(self._stepped, observe, Q, self.seen.R, x0, P0, state_names=names, **manifold)
        if self.seen.points.blocks:
            self.readings = ReadPoints(self.seen.points)

    @staticmethod
    def _walk(
        places: dict[str, slice], name: str, size: int, pair: Any, at: int, starts: list[Array], walks: list[Array]
    ) -> int:
        try:
            start, walk = (np.broadcast_to(np.asarray(part, np.float64), (size,)) for part in pair)
        except (TypeError, ValueError):
            raise ShapeError(
                f"{name}: give a pair (variance at the start, variance a step), numbers or {size} each"
            ) from None
        if not ((start >= 0).all() and (walk >= 0).all() and np.isfinite(walk).all()):
            raise ModelError(f"{name}: variances must be numbers, and not negative")
        if name in places:
            raise ModelError(f"{name!r} is named twice; give the sensors names of their own (name=)")
        places[name] = slice(at, at + size)
        starts.append(start)
        walks.append(walk)
        return at + size

    def __repr__(self) -> str:
        sensors = ", ".join(sensor.name for sensor in self.seen.sensors)
        return (
            f"{type(self).__name__}({self.system.name!r}, {self.system.nv} dofs, dt {self.dt:g} s, "
            f"{self.stepper.method}; {sensors})"
        )

    def sensor_index(self, sensor: Any) -> int:
        """Place of a sensor that is given by its place, its name, or itself."""
        sensors = self.seen.sensors
        if isinstance(sensor, int | np.integer) and -len(sensors) <= sensor < len(sensors):
            return int(sensor) % len(sensors)
        found = [i for i, one in enumerate(sensors) if sensor in (one, one.name)]
        if len(found) != 1:
            names = ", ".join(repr(one.name) for one in sensors)
            raise ModelError(f"{sensor!r} names {len(found)} of the sensors; there are {names}")
        return found[0]

    def tangent_place(self, of: str) -> slice:
        """Return the slice of "q", "v", a bias or a wrench among the tangent components."""
        nq, nv = self.system.nq, self.system.nv
        if of in ("q", "v"):
            return slice(0, nv) if of == "q" else slice(nv, 2 * nv)
        place = self.bias_places.get(of) or self.wrench_places.get(of)
        if place is None:
            known = ["q", "v", *self.bias_places, *self.wrench_places]
            raise ModelError(f"there is no {of!r}; there are {', '.join(map(repr, known))}")
        return slice(place.start - nq + nv, place.stop - nq + nv)

    # Methods, not functions of __init__, so that a model can be pickled.

    def _stepped(self, x: Array, w: Array, u: Array, k: Index) -> Array:
        return self.advance(x, w, u, k)

    def _observed(self, x: Array, w: Array, u: Array, k: Index) -> Array:
        return self.read(x, w, u, k)

    def _seen_at_rest(self, x: Array, k: Index) -> Array:
        return self.read(x, np.zeros((len(x), self.system.nv + self._extra)), None, k)

    # --- the manifold of states

    def _apart(self, x: Array) -> tuple[Array, Array, Array]:
        """Columns q, v and the rest, contiguous as compiled code wants them."""
        nq, nv = self.system.nq, self.system.nv
        return (
            np.ascontiguousarray(x[:, :nq]), np.ascontiguousarray(x[:, nq : nq + nv]), x[:, nq + nv :],
        )  # fmt: skip

    def _plus(self, x: Array, d: Array) -> Array:
        nq, nv = self.system.nq, self.system.nv
        q = integrate(self.system, np.ascontiguousarray(x[:, :nq]), np.ascontiguousarray(d[:, :nv]))
        return np.concatenate([q, x[:, nq:] + d[:, nv:]], axis=1)

    def _minus(self, y: Array, x: Array) -> Array:
        nq = self.system.nq
        q = difference(self.system, np.ascontiguousarray(x[:, :nq]), np.ascontiguousarray(y[:, :nq]))
        return np.concatenate([q, y[:, nq:] - x[:, nq:]], axis=1)

    def _right_jacobian(self, d: Array) -> Array:
        nv = self.system.nv
        out = np.zeros((*d.shape, d.shape[1]))
        out[:, :nv, :nv] = self.stepper.points.right_jacobian(d[:, :nv])
        out[:, range(nv, d.shape[1]), range(nv, d.shape[1])] = 1.0
        return out

    # --- what estimators ask of a model

    @property
    def reading_size(self) -> int | None:
        """Numbers of a reading of all sensors."""
        return self.seen.points.size

    @property
    def takes_inputs(self) -> bool:
        """Torques are known inputs; zero if not given."""
        return True

    def _forces(self, w: Array, u: Array | None) -> Array:
        force = w[:, : self.system.nv]
        return np.ascontiguousarray(force if u is None else u + force)

    def advance(self, x: Array, w: Array, u: Array | None, k: Index) -> Array:
        """State after a step."""
        q, v, rest = self._apart(x)
        wrench = rest[:, rest.shape[1] - 6 * len(self.wrench_places) :]
        moved = self.stepper.step(q, v, self._forces(w, u), wrench)
        return np.concatenate([*moved, rest + w[:, self.system.nv :]], axis=1)

    def linear_step(self, x: Array, w: Array, u: Array | None, k: Index) -> tuple[Array, Array, Array]:
        """State after a step, with its Jacobians in x and in w."""
        nv, n = self.system.nv, 2 * self.system.nv
        q, v, rest = self._apart(x)
        wrench = rest[:, rest.shape[1] - 6 * len(self.wrench_places) :]
        q, v, F0, B0 = self.stepper.linear_step(q, v, self._forces(w, u), wrench)
        after = np.concatenate([q, v, rest + w[:, nv:]], axis=1)
        if not self._extra:
            return after, F0, B0
        size = n + self._extra
        F, B = np.zeros((len(x), size, size)), np.zeros((len(x), size, nv + self._extra))
        F[:, :n, :n], B[:, :n, :nv] = F0, B0[:, :, :nv]
        F[:, :n, size - 6 * len(self.wrench_places) :] = B0[:, :, nv:]
        F[:, range(n, size), range(n, size)] = 1.0
        B[:, range(n, size), range(nv, nv + self._extra)] = 1.0
        return after, F, B

    def _pushes(self, rest: Array) -> tuple[Array, list[tuple[str, Array]]]:
        """External forces, side by side and by the frames at which they act."""
        wrench = rest[:, rest.shape[1] - 6 * len(self.wrench_places) :]
        return wrench, [(frame, wrench[:, 6 * i : 6 * i + 6]) for i, frame in enumerate(self.wrench_places)]

    def read(self, x: Array, w: Array, u: Array | None, k: Index) -> Array:
        """Predicted readings."""
        q, v, rest = self._apart(x)
        if not self.seen.sees_noise:
            return self._biased(self.seen.predict(q, v, None, None, self.g), x)
        tau, (wrench, pushes) = self._forces(w, u), self._pushes(rest)
        a = self.stepper.acceleration(q, v, tau, wrench)
        return self._biased(self.seen.predict(q, v, a, tau, self.g, pushes), x)

    def linear_read(self, x: Array, w: Array, u: Array | None, k: Index) -> tuple[Array, Array, Array | None]:
        """Predicted readings, with their Jacobians in x and, where sensors feel it, in w."""
        nv, n = self.system.nv, 2 * self.system.nv
        q, v, rest = self._apart(x)
        if self.seen.sees_noise:
            tau, (wrench, pushes) = self._forces(w, u), self._pushes(rest)
            a = self.stepper.linear_acceleration(q, v, tau, wrench)
            h, H0, W0 = self.seen.linear(q, v, a, tau, self.g, pushes)
        else:
            h, H0, W0 = self.seen.linear(q, v, None, None, self.g)
        h = self._biased(h, x)
        if not self._extra:
            return h, H0, W0
        H = np.zeros((len(x), H0.shape[1], n + self._extra))
        H[:, :, :n] = H0
        for i, place in zip(self._bias_of, self.bias_places.values()):
            own = self.seen.tangents_of[i]
            shift = place.start - self.system.nq - nv + n
            H[:, range(own.start, own.stop), range(shift, shift + own.stop - own.start)] = 1.0
        if W0 is None:
            return h, H, None
        H[:, :, H.shape[2] - 6 * len(self.wrench_places) :] += W0[:, :, nv:]
        W = np.zeros((len(x), H0.shape[1], nv + self._extra))
        W[:, :, :nv] = W0[:, :, :nv]
        return h, H, W

    def _biased(self, h: Array, x: Array) -> Array:
        for i, place in zip(self._bias_of, self.bias_places.values()):
            h[:, self.seen.points_of[i]] += x[:, place]
        return h

    def reading_row(self, y: Any, k: int) -> Array:
        """Return one reading of all sensors (1, size), stacked or from a list with None where a sensor is silent."""
        if isinstance(y, Mapping):
            names = ", ".join(sensor.name for sensor in self.seen.sensors)
            raise ShapeError(f"readings must be a list in the order of the sensors ({names}), not a dict")
        if not isinstance(y, list | tuple) or not any(part is None or np.ndim(part) for part in y):
            return super().reading_row(y, k)
        if len(y) != len(self.seen.sensors):
            raise ShapeError(
                f"there are {len(y)} readings at step {k} for {len(self.seen.sensors)} sensors; give one a sensor, or "
                "None"
            )
        out = np.full(self.seen.points.size, np.nan)
        for sensor, own, part in zip(self.seen.sensors, self.seen.points_of, y):
            if part is not None:
                array = real_array(part, f"{sensor.name}: its reading at step {k}")
                if array.shape != (own.stop - own.start,):
                    raise ShapeError(
                        f"{sensor.name}: its reading at step {k} must be ({own.stop - own.start},), got {array.shape}"
                    )
                out[own] = array
        return super().reading_row(out, k)

    def input_row(self, u: Any, k: int) -> Array | None:
        """The torques of one step (1, nv); zero if not given."""
        if u is None:
            return np.zeros((1, self.system.nv))
        row = super().input_row(u, k)
        if row is None or row.shape[1] != self.system.nv:
            raise ShapeError(f"tau of step {k} must be ({self.system.nv},), got shape {np.shape(u)}")
        return row

    def cure_for(self, names: Sequence[str]) -> str:
        """A sensor that tells what no reading does."""
        cures: list[str] = []
        for of, _, rest in (name.partition("[") for name in names):
            hinge = rest.rstrip("]").split(".")[0]
            if of in ("q", "v") and hinge in self.system.hinge_names:
                size = self.system.v_slice(hinge)
                body = self.system.open_tree.body_names[self.system.open_tree.hinge_index(hinge)]
                many = size.stop - size.start > 1
                cures.append(f"Pose({body!r}, ...)" if many else f"Joint{_SEEN[of]}(..., hinges={hinge!r})")
            elif of in self.wrench_places:
                cures.append("ForceTorque, Accelerometer or JointPosition")
            else:
                cures.append(f"another sensor of what {of} reads")
        return f"add a sensor such as {' or '.join(dict.fromkeys(cures))}"

    def filter_halves(self, kind: str, points: Any = None) -> Any:
        """Return the correction and the prediction of filters: compiled for one motion of the simplest robots."""
        from kfdyn.motion import one_motion

        if not one_motion.serves(self):
            return super().filter_halves(kind, points)
        if kind == "extended":
            return one_motion.OneExtended(self)
        return one_motion.OneUnscented(self, points or one_motion.SigmaPoints())

    # --- what callers give

    def _start(self, prior: Any) -> tuple[Array, Array]:
        """x0 and P0 from (q0, v0, P0)."""
        system = self.system
        n = 2 * system.nv
        if prior is None:
            prior = (system.neutral(), np.zeros(system.nv), np.full(n, np.inf))
        if not isinstance(prior, tuple | list) or len(prior) != 3:
            raise ModelError("prior must be (q0, v0, P0): a configuration, velocities, and a covariance (2 nv, 2 nv)")
        q0, v0 = configuration(system, prior[0], "q0"), real_array(prior[1], "v0 of the prior")
        if q0.ndim != 1 or v0.shape != (system.nv,) or not np.isfinite(v0).all():
            raise ShapeError(
                f"q0 and v0 of the prior must be ({system.nq},) and ({system.nv},), got {q0.shape}, {v0.shape}"
            )
        P = np.full(n, np.inf) if prior[2] is None else real_array(prior[2], "P0 of the prior")
        if P.shape not in ((), (n,), (n, n)):
            raise ShapeError(
                f"P0 of the prior must be a number, ({n},) or ({n}, {n}): tangents of q, then v; got {P.shape}"
            )
        if P.ndim < 2:
            P = np.where(np.eye(n, dtype=bool), np.broadcast_to(P, (n,))[:, None], 0.0)
        out = np.zeros((n + self._extra, n + self._extra))
        out[:n, :n] = P
        out[range(n, len(out)), range(n, len(out))] = self._extra_start
        return np.concatenate([q0, v0, np.zeros(self._extra)]), out

    def check_prior(self, prior: Any) -> Prior:
        """The prior from (q0, v0, P0), or (x0, P0) with all of x; None is the model's own."""
        if isinstance(prior, tuple | list) and len(prior) == 3:
            prior = self._start(prior)
        return super().check_prior(prior)

    def check_readings(self, y: Any) -> tuple[Array, bool]:
        """Readings as (batch, N, size): one array a sensor, or None."""
        if isinstance(y, np.ndarray) and y.ndim in (2, 3) and y.shape[-1] == self.seen.points.size:
            parts: Any = [y[..., own] for own in self.seen.points_of]
        else:
            parts = y
        array, batched = self.seen.stacked(parts)
        N = array.shape[1]
        arguments.expect_steps(self.Q, "force_noise", (N,) if self.carries_noise else (N - 1, N))
        return array, batched

    def check_inputs(self, u: Any, batch: int, steps: int, **named: Any) -> Array | None:
        """Torques as (batch, N, nv); zero if not given."""
        tau = named.pop("tau", None)
        if named:
            raise TypeError(f"unexpected arguments: {', '.join(named)}; torques are given as tau=")
        if u is not None and tau is not None:
            raise ModelError("torques are given twice, as u= and as tau=")
        given = u if tau is None else tau
        if given is None:
            return np.zeros((batch, steps, self.system.nv))
        array = real_array(given, "tau")
        if array.shape[-1:] != (self.system.nv,):
            raise ShapeError(f"tau must be (N−1, {self.system.nv}), one row a step; got shape {array.shape}")
        return arguments.inputs(array, batch, steps, self.carries_noise, True, "tau")


def _dof_names(system: System) -> list[str]:
    """A name for each dof: its hinge's, with a number where the hinge has several."""
    out = [""] * system.nv
    for name in system.hinge_names:
        try:
            own = system.v_slice(name)
        except ModelError:  # a hinge that follows another
            continue
        size = own.stop - own.start
        for i in range(size):
            out[own.start + i] = name if size == 1 else f"{name}.{i}"
    return out
