"""Sensors at the hinges: torques, motor currents, accelerations, and the prior on accelerations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.dynamics.sensors.dofs import dof_start, dofs_of, has_own, mode_places
from kfdyn.dynamics.sensors.sensor import Array, Index, Rows, Sensor, Site, frozen
from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody import LinkTerms, System


class AtHinges(Sensor):
    """A sensor that reads every dof of some hinges, all of them unless they are named; stacked in that order.

    Where bodies bend their modes are read like hinges: all of them, or those named as in ``system.dof_names``.
    """

    at_hinges: ClassVar[bool] = True
    reads_modes: ClassVar[bool] = True

    def __init__(
        self,
        cov: ArrayLike,
        hinges: str | Iterable[str] | None = None,
        bias: ArrayLike = 0.0,
        name: str | None = None,
    ) -> None:
        self.hinges = None if hinges is None else (hinges,) if isinstance(hinges, str) else tuple(map(str, hinges))
        if self.hinges is not None and len(set(self.hinges)) < len(self.hinges):
            raise ModelError(f"{type(self).__name__}: a hinge is named twice; a second sensor may read it again")
        super().__init__(cov, bias, name, "" if self.hinges is None else ", ".join(map(repr, self.hinges)))

    def places(self, system: System, of_q: bool = False) -> NDArray[np.intp]:
        """Return the entries of v, or of q, that belong to its hinges."""
        every = np.arange(system.nq if of_q else system.nv)
        if self.hinges is None:
            return every
        place = system.q_slice if of_q else system.v_slice
        parts = [every[place(name)] for name in self.hinges]
        empty = [name for name, part in zip(self.hinges, parts) if not part.size]
        if empty:
            raise ModelError(f"{self.name}: hinge {empty[0]!r} has no dof to read")
        return np.concatenate([every[:0], *parts])

    def sites(self, system: System) -> list[Site]:
        """One at each hinge that has dofs."""
        names = system.hinge_names if self.hinges is None else self.hinges
        out, at, modes = [], 0, mode_places(system)
        for name in names:
            if name in modes and name not in system.hinge_names:
                if not self.reads_modes:
                    raise ModelError(f"{self.name}: {name!r} is a mode, and no motor drives it; ModalForce says so")
                k, first = modes[name]
                out.append(Site(k, slice(at, at + 1), first))
                at += 1
                continue
            k = system.hinge_index(name)
            every = self.hinges is None and self.reads_modes
            m = dofs_of(system).count(k) if every else int(dofs_of(system).hinge[k])
            if not has_own(system, k):  # it follows another hinge
                if self.hinges is not None:
                    system.v_slice(name)  # says whom
                continue
            if m == 0 and self.hinges is not None:
                raise ModelError(f"{self.name}: hinge {name!r} is fixed and has no dof; ForceTorque reads its force")
            if m:
                out.append(Site(k, slice(at, at + m)))
            at += m
        return out

    def entries(self, system: System) -> Index:
        """Return the entry of v for each entry of its reading."""
        first = [dof_start(system, site.k) + site.first for site in self.sites(system)]
        return np.concatenate(
            [np.zeros(0, int), *(i + np.arange(s.rows.stop - s.rows.start) for i, s in zip(first, self.sites(system)))]
        )

    def factors(self, system: System) -> tuple[Array, Array, Array]:
        """Factors (size,) of what it reads of its dofs: of H f, of the torque that turns the rotor, and of q̈."""
        raise NotImplementedError

    def rows(self, system: System, site: Site, terms: LinkTerms) -> Rows:
        """S = H, and e by rotors and accelerations, times the factors."""
        strain, rotor, moved = (part[site.rows] for part in self.factors(system))
        dofs, m = dofs_of(system), len(strain)
        own, first = slice(dofs.of(site.k).start + site.first, dofs.of(site.k).start + site.first + m), site.first
        e = np.zeros((1, m, dofs.count(site.k)))
        e[0, range(m), range(first, first + m)] = rotor * dofs.armature[own] + moved
        return Rows(S=strain[:, None] * terms.H[:, own] if strain.any() else None, e=e if e.any() else None)


class JointTorque(AtHinges):
    """Generalised force tau at hinges: y = H f + R_rotor q̈ + r.

    Parameters
    ----------
    cov : float, (size,) or (size, size)
        Covariance; 0 makes them exact: all hinges so is forward dynamics.
    hinges : str or sequence of str, optional
        All if not given (a free base too, whose torque is usually known to be zero).
    bias : float or (size,)
        Added by the sensor.
    rotor : bool
        Whether the torque that turns the rotor (the armature) is in the reading: true for a torque commanded at the
        motor, false for a strain gauge between gear and link.
    name : str, optional
        For messages.

    Examples
    --------
    Exact torques, and nothing else, are forward dynamics:

    >>> import kfdyn as kf
    >>> arm = kf.models.double_pendulum()
    >>> est = kf.estimate_dynamics(arm, [0.5 * np.pi, 0.0], [0.0, 0.0], [JointTorque(0.0)], [[0.0, 0.0]])
    >>> est.a.round(9)
    array([-9.81,  9.81])
    """

    def __init__(
        self,
        cov: ArrayLike,
        hinges: str | Iterable[str] | None = None,
        bias: ArrayLike = 0.0,
        rotor: bool = True,
        name: str | None = None,
    ) -> None:
        self.rotor = bool(rotor)
        super().__init__(cov, hinges, bias, name)

    def factors(self, system: System) -> tuple[Array, Array, Array]:
        """Torques are H f, and the rotor's share of it."""
        one = np.ones(self.size(system))
        return one, one * self.rotor, 0.0 * one


class MotorCurrent(JointTorque):
    """Current of motors behind gears: y = tau / (gear · constant) + r, rotor included.

    Parameters
    ----------
    cov : float, (size,) or (size, size)
        Covariance, A².
    constant : float or (size,)
        Torque constant of the motor, N m/A.
    gear : float or (size,)
        Turns of the motor for one of the hinge.
    hinges : str or sequence of str, optional
        All if not given.
    bias : float or (size,)
        Added by the sensor, A.
    name : str, optional
        For messages.

    Examples
    --------
    Two amperes behind a gear of 50 and 0.1 N m/A are 10 N m:

    >>> import kfdyn as kf
    >>> arm = kf.models.pendulum()
    >>> kf.estimate_dynamics(arm, [0.0], [0.0], [MotorCurrent(1e-4, constant=0.1, gear=50)], [[2.0]]).tau.round(9)
    array([10.])
    """

    reads_modes: ClassVar[bool] = False

    def __init__(
        self,
        cov: ArrayLike,
        constant: ArrayLike,
        gear: ArrayLike = 1.0,
        hinges: str | Iterable[str] | None = None,
        bias: ArrayLike = 0.0,
        name: str | None = None,
    ) -> None:
        self.per_ampere = frozen(np.multiply(constant, gear), "constant and gear")
        if not (np.isfinite(self.per_ampere).all() and (self.per_ampere != 0).all() and self.per_ampere.ndim <= 1):
            raise ModelError("MotorCurrent: constant and gear must be finite and not zero, one number or one a dof")
        super().__init__(cov, hinges, bias, True, name)

    def factors(self, system: System) -> tuple[Array, Array, Array]:
        """Those of the torque, divided by the torque of an ampere."""
        size = self.size(system)
        if self.per_ampere.shape not in ((), (size,)):
            raise ShapeError(f"{self.name} reads {size} currents; constant and gear must be numbers or ({size},)")
        strain, rotor, moved = super().factors(system)
        return strain / self.per_ampere, rotor / self.per_ampere, moved


class ModalForce(JointTorque):
    """The prior of forces on the modes of bodies that bend: N(reading, cov); zero unless it is given.

    The same as a :class:`JointTorque` of modes, but for the likelihood, in which a prior is no datum. Elastic forces
    are the body's own and no part of it.

    Parameters
    ----------
    cov : float, (size,) or (size, size)
        Covariance; 0, so that the force is known, if not given.
    modes : str or sequence of str, optional
        Names as in ``system.dof_names``, all modes if not given. Reading None is mean zero.
    name : str, optional
        For messages.

    Examples
    --------
    A rod on a hinge that is read; nothing drives its modes:

    >>> import kfdyn as kf
    >>> rod = kf.beam("rod", 1.0, 2.0, bending=(0.0, 50.0), modes=2, hinge=kf.Hinge.revolute([0, 1, 0]))
    >>> arm = kf.FlexibleSystem([rod])
    >>> sensors = [kf.sensors.JointTorque(0.01, "rod"), ModalForce()]
    >>> est = kf.estimate_dynamics(arm, arm.neutral(), None, sensors, [[0.0], None])
    >>> bool(np.allclose(est.a, kf.forward_dynamics(arm, arm.neutral(), None, np.zeros(3))))
    True
    """

    prior: ClassVar[bool] = True

    def __init__(self, cov: ArrayLike = 0.0, modes: str | Iterable[str] | None = None, name: str | None = None) -> None:
        super().__init__(cov, modes, name=name)

    def sites(self, system: System) -> list[Site]:
        """One at each mode."""
        modes = mode_places(system)
        if not modes:
            raise ModelError(f"{self.name}: no body of system {system.name!r} bends, so that there are no modes")
        out = []
        for at, name in enumerate(modes if self.hinges is None else self.hinges):
            if name not in modes:
                raise ModelError(
                    f"{self.name}: system {system.name!r} has no mode {name!r}; there are {', '.join(modes)}"
                )
            k, first = modes[name]
            out.append(Site(k, slice(at, at + 1), first))
        return out


class JointAcceleration(AtHinges):
    """Joint acceleration: y = q̈ + r.

    Parameters
    ----------
    cov : float, (size,) or (size, size)
        Covariance; 0 makes them exact: all hinges so is inverse dynamics.
    hinges : str or sequence of str, optional
        All if not given.
    bias : float or (size,)
        Added by the sensor.
    name : str, optional
        For messages.

    Examples
    --------
    Exact accelerations, and nothing else, are inverse dynamics:

    >>> import kfdyn as kf
    >>> arm = kf.models.double_pendulum()
    >>> est = kf.estimate_dynamics(arm, [0.5 * np.pi, 0.0], [0.0, 0.0], [JointAcceleration(0.0)], [[-9.81, 9.81]])
    >>> bool(abs(est.tau).max() < 1e-12)
    True
    """

    def factors(self, system: System) -> tuple[Array, Array, Array]:
        """q̈ alone."""
        one = np.ones(self.size(system))
        return 0.0 * one, 0.0 * one, one


class JointPrior(JointAcceleration):
    """Prior N(reading, cov) of joint accelerations, which are flat where there is none; reading None is mean zero.

    The same as a reading of them, but for the likelihood, in which a prior is no datum.

    Parameters
    ----------
    cov : float, (size,) or (size, size)
        Covariance of the prior.
    hinges : str or sequence of str, optional
        All if not given.
    bias : float or (size,)
        Not of use here, zero.
    name : str, optional
        For messages.

    Examples
    --------
    With nothing read, the prior is the answer:

    >>> import kfdyn as kf
    >>> kf.estimate_dynamics(kf.models.pendulum(), [0.0], [0.0], [JointPrior(4.0)], [None]).std("a")
    array([2.])
    """

    prior: ClassVar[bool] = True
