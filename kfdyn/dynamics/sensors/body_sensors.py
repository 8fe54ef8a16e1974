"""Sensors on bodies: accelerometers and inertial units, force-torque sensors, and external forces."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.dynamics.sensors.sensor import Array, Rows, Sensor, Site
from kfdyn.errors import ModelError
from kfdyn.multibody import LinkTerms, System
from kfdyn.spatial import skew


class AtFrame(Sensor):
    """A sensor with axes and origin of its own: a body, or a named frame fixed to one."""

    entries: ClassVar[int] = 3

    def __init__(self, frame: str, cov: ArrayLike, bias: ArrayLike = 0.0, name: str | None = None) -> None:
        self.frame = str(frame)
        super().__init__(cov, bias, name, repr(frame))

    def sites(self, system: System) -> list[Site]:
        """The body that carries the frame."""
        return [Site(node_of(system, self.frame), slice(0, self.entries))]


class Accelerometer(AtFrame):
    """Accelerometer: y = R*(acceleration of the frame's origin − g) + r, in the frame's axes.

    Parameters
    ----------
    frame : str
        Body or named frame; the lever arm and the velocity are accounted for.
    cov : float, (3,) or (3, 3)
        Covariance in the frame's axes; 0 is exact.
    bias : float or (3,)
        Added by the sensor.
    name : str, optional
        For messages.

    Examples
    --------
    At rest it reads the ground's support, upwards:

    >>> import kfdyn as kf
    >>> arm = kf.models.pendulum()
    >>> sensors = [kf.sensors.JointAcceleration(0.0), Accelerometer("bob", 1e-4)]
    >>> kf.estimate_dynamics(arm, [0.0], [0.0], sensors, [[0.0], [0.0, 0.0, 9.81]]).predicted[1].round(6)
    array([0.  , 0.  , 9.81])
    """

    def rows(self, system: System, site: Site, terms: LinkTerms) -> Rows:
        """K = R*[−r~, 1]; the offset is R*(ω × (ω × r))."""
        R, r = placed(system, self.frame, terms)
        K = np.concatenate([-skew(r), np.broadcast_to(np.eye(3), R.shape)], axis=-1)
        w = terms.velocity[:, system.locate(self.frame)[0], :3]
        turn = np.cross(w, np.cross(w, r))
        back = R.swapaxes(-1, -2)
        return at_node(system, self.frame, terms, back @ K, (back @ turn[..., None])[..., 0])


class AngularAcceleration(AtFrame):
    """Angular acceleration, as the derivative of a gyroscope's reading: y = R*ω̇ + r, in the frame's axes.

    Parameters
    ----------
    frame : str
        Body or named frame.
    cov : float, (3,) or (3, 3)
        Covariance in the frame's axes; 0 is exact.
    bias : float or (3,)
        Added by the sensor.
    name : str, optional
        For messages.

    Examples
    --------
    >>> import kfdyn as kf
    >>> sensors = [AngularAcceleration("bob", 0.01)]
    >>> kf.estimate_dynamics(kf.models.pendulum(), [0.0], [0.0], sensors, [[0.0, 2.0, 0.0]]).a
    array([2.])
    """

    def rows(self, system: System, site: Site, terms: LinkTerms) -> Rows:
        """K = R*[1, 0]."""
        R, _ = placed(system, self.frame, terms)
        K = np.concatenate([R.swapaxes(-1, -2), np.zeros(R.shape)], axis=-1)
        return at_node(system, self.frame, terms, K, np.zeros(R.shape[:2]))


class Imu(AtFrame):
    """Inertial unit: [angular acceleration; accelerometer], six entries in the frame's axes.

    Parameters
    ----------
    frame : str
        Body or named frame.
    cov : float, (6,) or (6, 6)
        Covariance in the frame's axes; 0 is exact.
    bias : float or (6,)
        Added by the sensor.
    name : str, optional
        For messages.

    Examples
    --------
    Without the derivative of its gyroscope it is an accelerometer: the angular entries are missing.

    >>> import kfdyn as kf
    >>> reading = [np.nan, np.nan, np.nan, 3.0, 0.0, 9.81]
    >>> kf.estimate_dynamics(kf.models.pendulum(), [0.0], [0.0], [kf.sensors.JointPrior(1.0), Imu("bob", 1.0)],
    ...                      [None, reading]).predicted[1][3:].round(6)
    array([0.  , 0.  , 9.81])
    """

    entries: ClassVar[int] = 6

    def rows(self, system: System, site: Site, terms: LinkTerms) -> Rows:
        """Both of its parts, one above the other."""
        turn = AngularAcceleration.rows(self, system, site, terms)  # type: ignore[arg-type]
        move = Accelerometer.rows(self, system, site, terms)  # type: ignore[arg-type]
        assert turn.K is not None and move.K is not None and turn.offset is not None and move.offset is not None
        offset = np.concatenate([turn.offset, move.offset], axis=-1)
        return Rows(K=np.concatenate([turn.K, move.K], axis=-2), offset=offset)


class ForceTorque(Sensor):
    """Force–torque sensor at a hinge: y = [moment; force] of the outboard side on the inboard one, −R*φ⁻¹f + r.

    Parameters
    ----------
    hinge : str
        Name of the hinge, or of the body it carries. A fixed joint is a hinge if its link was kept apart:
        ``kf.load(..., keep_fixed=["wrist_sensor"])``.
    cov : float, (6,) or (6, 6)
        Covariance in the sensor's axes; 0 is exact.
    frame : str, optional
        A frame fixed to the outboard body, whose axes and origin the sensor has; those of the body, at the hinge
        point, if not given.
    direction : {"child_to_parent", "parent_to_child"}
        Which side acts on which. The second is the negative of the first.
    bias : float or (6,)
        Added by the sensor.
    name : str, optional
        For messages.

    Examples
    --------
    A bob of 1 kg hangs still: it pulls its hinge down.

    >>> import kfdyn as kf
    >>> sensors = [kf.sensors.JointAcceleration(0.0), ForceTorque("pivot", 1.0)]
    >>> readings = [[0.0], [0, 0, 0, 0, 0, -9.81]]
    >>> kf.estimate_dynamics(kf.models.pendulum(), [0.0], [0.0], sensors, readings).predicted[1].round(6) + 0.0
    array([ 0.  ,  0.  ,  0.  ,  0.  ,  0.  , -9.81])
    """

    def __init__(
        self,
        hinge: str,
        cov: ArrayLike,
        frame: str | None = None,
        direction: Literal["child_to_parent", "parent_to_child"] = "child_to_parent",
        bias: ArrayLike = 0.0,
        name: str | None = None,
    ) -> None:
        if direction not in ("child_to_parent", "parent_to_child"):
            raise ModelError(f"ForceTorque: direction {direction!r} is neither child_to_parent nor parent_to_child")
        self.hinge, self.frame, self.direction = str(hinge), None if frame is None else str(frame), direction
        super().__init__(cov, bias, name, repr(hinge))

    def sites(self, system: System) -> list[Site]:
        """The node of the hinge."""
        if self.hinge in system.frames and self.hinge not in system.hinge_names:
            body = system.frames[self.hinge].body
            raise ModelError(
                f"{self.name}: {self.hinge!r} is joined to body {body!r}, and no force between the two is known; "
                f"load the robot with keep_fixed=[{self.hinge!r}]"
            )
        at_hinge = self.hinge in system.hinge_names or self.hinge not in system.body_names
        k = system.hinge_index(self.hinge) if at_hinge else system.body_index(self.hinge)
        if self.frame is not None and system.locate(self.frame)[0] != k:
            raise ModelError(f"{self.name}: frame {self.frame!r} is not fixed to body {system.body_names[k]!r}")
        return [Site(k, slice(0, 6))]

    def rows(self, system: System, site: Site, terms: LinkTerms) -> Rows:
        """S = ∓R*[[1, −r~], [0, 1]]."""
        R, r = placed(system, self.frame or system.body_names[site.k], terms)
        back = R.swapaxes(-1, -2)
        S = np.zeros((len(R), 6, 6))
        S[:, :3, :3] = S[:, 3:, 3:] = back
        S[:, :3, 3:] = -back @ skew(r)
        return Rows(S=widened(-S if self.direction == "child_to_parent" else S, terms))


class ExternalForce(AtFrame):
    """The prior of an external force: N(reading, cov); bodies without one have none.

    Parameters
    ----------
    frame : str
        Body or named frame; the force acts on its body, at its origin. Reading None is mean zero.
    cov : float, (size,) or (size, size)
        Covariance of the prior: 0 makes the force known, ``np.inf`` leaves it flat (also entry by entry).
    axes : {"world", "frame"}
        In which axes reading and covariance are.
    moment : bool
        Whether [moment; force], six entries, or a force alone, three.
    name : str, optional
        For messages.

    Examples
    --------
    A sensor in the hinge weighs what hangs on the bob, of which nothing was known:

    >>> import kfdyn as kf
    >>> sensors = [kf.sensors.JointAcceleration(0.0), kf.sensors.ForceTorque("pivot", 1e-4)]
    >>> sensors += [ExternalForce("bob", np.inf)]
    >>> readings = [[0.0], [0, 0, 0, 0, 0, -9.81 - 5.0], None]
    >>> est = kf.estimate_dynamics(kf.models.pendulum(), [0.0], [0.0], sensors, readings)
    >>> est.external_forces[0].round(6) + 0.0, est.std("external_forces")[0].round(6)
    (array([ 0.,  0.,  0.,  0.,  0., -5.]), array([0.01, 0.01, 0.01, 0.01, 0.01, 0.01]))
    """

    prior: ClassVar[bool] = True
    may_be_flat: ClassVar[bool] = True
    is_force: ClassVar[bool] = True

    def __init__(
        self,
        frame: str,
        cov: ArrayLike,
        axes: Literal["world", "frame"] = "world",
        moment: bool = True,
        name: str | None = None,
    ) -> None:
        if axes not in ("world", "frame"):
            raise ModelError(f"ExternalForce: axes {axes!r} are neither those of the world nor of the frame")
        self.axes, self.moment = axes, bool(moment)
        super().__init__(frame, cov, 0.0, name)

    def sites(self, system: System) -> list[Site]:
        """The body that carries the frame."""
        return [Site(node_of(system, self.frame), slice(0, 6 if self.moment else 3))]

    def wrench(self, system: System, terms: LinkTerms) -> Array:
        """P (B, 6, size): the force as one at the body's origin in world axes, [[1, r~], [0, 1]] diag(R, R).

        On a body that bends, what it does to the modes stands below.
        """
        R, r = placed(system, self.frame, terms)
        axes = np.broadcast_to(np.eye(3), R.shape) if self.axes == "world" else R
        P = np.zeros((len(R), 6, 6))
        P[:, :3, :3] = P[:, 3:, 3:] = axes
        P[:, :3, 3:] = skew(r) @ axes
        pull = at_node(system, self.frame, terms, P.swapaxes(-1, -2)).K
        assert pull is not None
        return pull.swapaxes(-1, -2)[:, :, 0 if self.moment else 3 :]


def node_of(system: System, frame: str) -> int:
    """The body that carries a frame; of an attachment the body that bends."""
    k = system.locate(frame)[0]
    if k < system.n_bodies:
        return k
    return int(system.open_tree.parent[k])


def at_node(system: System, frame: str, terms: LinkTerms, K: Array, offset: Array | None = None) -> Rows:
    """Rows K (B, r, 6) on the motion of the frame's body as rows on that of its node.

    An attachment to a body that bends moves by [φ*, Π] of that, and by what its rates bring.
    """
    c = system.locate(frame)[0] - system.n_bodies
    if c < 0:
        return Rows(K=widened(K, terms), offset=offset)
    brought = (K @ terms.pushed[:, c, :, None])[..., 0]  # type: ignore[attr-defined]
    return Rows(K=K @ terms.reach[:, c], offset=brought if offset is None else brought + offset)  # type: ignore[attr-defined]


def widened(rows: Array, terms: LinkTerms) -> Array:
    """Rows (B, r, 6) with zeros for the modes, if nodes have any."""
    more = terms.inertia.shape[-1] - rows.shape[-1]
    return np.pad(rows, ((0, 0), (0, 0), (0, more))) if more else rows


def placed(system: System, frame: str, terms: LinkTerms) -> tuple[Array, Array]:
    """Rotation (B, 3, 3) of a frame, and its place (B, 3) from its body's origin, both in the world's axes."""
    k, rotation, position = system.locate(frame)
    R = terms.rotation[:, k]
    return R @ rotation, R @ position
