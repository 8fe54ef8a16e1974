"""The functions that both frameworks have, once: arguments made arrays of one kind, and operations called on them."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

from kfdyn.bridge import coordinates, parameters, series
from kfdyn.bridge.operations import Operation
from kfdyn.bridge.rollouts import ROLLOUT
from kfdyn.errors import ShapeError
from kfdyn.estimation import StateSpace
from kfdyn.multibody import System

NAMES = (
    "forward_dynamics",
    "frame_pose",
    "frame_velocity",
    "integrate",
    "inverse_dynamics",
    "jacobian",
    "kinetic_energy",
    "log_likelihood",
    "mass_matrix",
    "mass_matrix_inverse",
    "mass_matrix_logdet",
    "potential_energy",
    "rollout",
    "smoothed_means",
    "step",
    "tangent_gradient",
)


class Pose(NamedTuple):
    """Rotation (..., 3, 3) from frame to world, and position (..., 3) of the frame's origin.

    Examples
    --------
    >>> import kfdyn as kf, kfdyn.bridge.jax as kj
    >>> kj.frame_pose(kf.models.pendulum(), [0.5], "bob")._fields
    ('rotation', 'position')
    """

    rotation: Any
    position: Any


class Functions:
    """The functions on the arrays of a framework, which is a module with ``xp``, ``arrays``, ``call`` and others."""

    def __init__(self, framework: ModuleType) -> None:
        self.framework: Any = framework

    def _of(self, system: System, name: str, given: dict[str, Any], *frame: str) -> Any:
        """The answers of an operation to q, and to what else is given, which is (..., nv)."""
        coordinates.expect_served(system)
        for asked in frame:
            system.locate(asked)  # or the words why not
        operation = Operation(name, system, *frame)
        found = self.framework.straight(operation, *given.values())
        if found is not None:
            return found
        return self.framework.call(operation, *self._given(system, **given))

    def _of_robots(self, system: System, name: str, given: dict[str, Any], robots: Any) -> Any:
        """The same, of robots with parameters of their own if there are some."""
        if robots is None:
            return self._of(system, name, given)
        coordinates.expect_served(system)
        parameters.expect_parameters(system, robots)
        theta, rotors = parameters.flattened(self.framework, system, robots)
        sizes = {key: system.nq if key == "q" else system.nv for key in given}
        sizes |= {"inertial parameters": 10 * system.n_bodies, "armature": system.nv}
        arrays = self.framework.arrays(sizes, *given.values(), theta, rotors)
        return self.framework.call(Operation(name + parameters.SUFFIX, system), *arrays)

    def _given(self, system: System, **given: Any) -> list[Any]:
        coordinates.expect_served(system)
        sizes = {name: system.nq if name in ("q", "gradient") else system.nv for name in given}
        return self.framework.arrays(sizes, *given.values())

    def forward_dynamics(self, system: System, q: Any, v: Any, tau: Any, parameters: Any = None) -> Any:
        """Accelerations a = 𝓜⁻¹(tau − c), as :func:`kfdyn.dynamics.forward_dynamics`.

        Parameters
        ----------
        system : System
            A tree, with or without couplings.
        q, v, tau : (..., nq), (..., nv), (..., nv)
            Configurations, velocities, generalised forces; leading axes broadcast.
        parameters : dict, optional
            ``masses``, ``coms``, ``inertias`` and ``armature`` as :func:`kfdyn.with_parameters` has them, with any
            leading axes, each row of which is a robot; gradients are taken in these, too. Of trees.

        Returns
        -------
        (..., nv) array
            Its derivatives are those of :func:`kfdyn.dynamics.forward_dynamics_derivatives`, O(N²).

        Examples
        --------
        >>> import jax, kfdyn as kf, kfdyn.bridge.jax as kj
        >>> bob = kf.models.pendulum(length=1.0)
        >>> by_q = jax.jacobian(lambda q: kj.forward_dynamics(bob, q, [0.0], [0.0]))([0.0])
        >>> round(float(by_q[0][0]), 4)
        -9.81
        """
        return self._of_robots(system, "forward_dynamics", {"q": q, "v": v, "tau": tau}, parameters)[0]

    def inverse_dynamics(self, system: System, q: Any, v: Any, a: Any, parameters: Any = None) -> Any:
        """Generalised forces tau = 𝓜 a + c, as :func:`kfdyn.dynamics.inverse_dynamics`; c where a = 0.

        Parameters
        ----------
        system : System
            A tree, with or without couplings.
        q, v, a : (..., nq), (..., nv), (..., nv)
            Configurations, velocities, accelerations; leading axes broadcast.
        parameters : dict, optional
            As in :func:`forward_dynamics`.

        Returns
        -------
        (..., nv) array
            Its derivatives are those of :func:`kfdyn.dynamics.inverse_dynamics_derivatives`, O(N depth).

        Examples
        --------
        >>> import kfdyn as kf, kfdyn.bridge.jax as kj
        >>> bob = kf.models.pendulum(length=1.0, mass=2.0)
        >>> round(float(kj.inverse_dynamics(bob, [0.0], [0.0], [1.0])[0]), 4)
        2.0
        """
        return self._of_robots(system, "inverse_dynamics", {"q": q, "v": v, "a": a}, parameters)[0]

    def mass_matrix(self, system: System, q: Any) -> Any:
        """Mass matrix 𝓜, as :func:`kfdyn.dynamics.mass_matrix`.

        Parameters
        ----------
        system : System
            A tree, with or without couplings.
        q : (..., nq)
            Configurations.

        Returns
        -------
        (..., nv, nv) array
            A derivative takes nv derivatives of inverse dynamics.

        Examples
        --------
        >>> import kfdyn as kf, kfdyn.bridge.jax as kj
        >>> kj.mass_matrix(kf.models.puma560(), [0.0] * 6).shape
        (6, 6)
        """
        return self._of(system, "mass_matrix", {"q": q})[0]

    def mass_matrix_inverse(self, system: System, q: Any) -> Any:
        """Inverse of the mass matrix, as :func:`kfdyn.dynamics.mass_matrix_inverse`; ∂𝓜⁻¹ = −𝓜⁻¹ ∂𝓜 𝓜⁻¹.

        Parameters
        ----------
        system : System
            A tree, with or without couplings.
        q : (..., nq)
            Configurations.

        Returns
        -------
        (..., nv, nv) array

        Examples
        --------
        >>> import kfdyn as kf, kfdyn.bridge.jax as kj
        >>> float(kj.mass_matrix_inverse(kf.models.pendulum(mass=2.0, length=1.0), [0.0])[0, 0])
        0.5
        """
        return self._of(system, "mass_matrix_inverse", {"q": q})[0]

    def mass_matrix_logdet(self, system: System, q: Any) -> Any:
        """Logarithm of det 𝓜, as :func:`kfdyn.dynamics.mass_matrix_logdet`.

        Parameters
        ----------
        system : System
            A tree, with or without couplings.
        q : (..., nq)
            Configurations.

        Returns
        -------
        (...) array
            Its gradient is that of :func:`kfdyn.dynamics.mass_matrix_logdet_gradient`, O(N).

        Examples
        --------
        >>> import jax, kfdyn as kf, kfdyn.bridge.jax as kj
        >>> arm, q = kf.models.double_pendulum(), jax.numpy.array([0.3, 0.5])
        >>> by_q = jax.grad(lambda q: kj.mass_matrix_logdet(arm, q))(q)
        >>> round(float(by_q[1]), 4)
        0.6842
        """
        return self._of(system, "mass_matrix_logdet", {"q": q})[0]

    def jacobian(self, system: System, q: Any, frame: str) -> Any:
        """Jacobian of a frame, as :func:`kfdyn.multibody.jacobian`.

        Parameters
        ----------
        system : System
            A tree, with or without couplings.
        q : (..., nq)
            Configurations.
        frame : str
            Name of a body or frame.

        Returns
        -------
        (..., 6, nv) array
            Rows [angular; linear], world orientation, at the frame's origin.

        Examples
        --------
        >>> import kfdyn as kf, kfdyn.bridge.jax as kj
        >>> kj.jacobian(kf.models.puma560(), [0.0] * 6, "link_6").shape
        (6, 6)
        """
        return self._of(system, "jacobian", {"q": q}, frame)[0]

    def frame_pose(self, system: System, q: Any, frame: str) -> Pose:
        """Pose of a body or frame, as :func:`kfdyn.multibody.frame_pose`; it can be differentiated twice.

        Parameters
        ----------
        system : System
            A tree, with or without couplings.
        q : (..., nq)
            Configurations.
        frame : str
            Name of a body or frame.

        Returns
        -------
        Pose
            ``rotation`` (..., 3, 3), ``position`` (..., 3).

        Examples
        --------
        >>> import kfdyn as kf, kfdyn.bridge.jax as kj
        >>> kj.frame_pose(kf.models.double_pendulum(length=2.0), [0.0, 0.0], "lower").position.tolist()
        [0.0, 0.0, -2.0]
        """
        return Pose(*self._of(system, "frame_pose", {"q": q}, frame))

    def frame_velocity(self, system: System, q: Any, v: Any, frame: str) -> Any:
        """Spatial velocity J v of a frame, as :func:`kfdyn.multibody.frame_velocity`.

        Parameters
        ----------
        system : System
            A tree, with or without couplings.
        q, v : (..., nq), (..., nv)
            Configurations and velocities.
        frame : str
            Name of a body or frame.

        Returns
        -------
        (..., 6) array
            [angular; linear], world orientation, at the frame's origin.

        Examples
        --------
        >>> import kfdyn as kf, kfdyn.bridge.jax as kj
        >>> kj.frame_velocity(kf.models.double_pendulum(), [0.0, 0.0], [3.0, 0.0], "lower").tolist()
        [0.0, 3.0, 0.0, -3.0, 0.0, 0.0]
        """
        q, v = self._given(system, q=q, v=v)
        return (self.jacobian(system, q, frame) @ v[..., None])[..., 0]

    def kinetic_energy(self, system: System, q: Any, v: Any) -> Any:
        """Kinetic energy ½ v*𝓜v; it can be differentiated twice, but not twice in q.

        Parameters
        ----------
        system : System
            A tree, with or without couplings.
        q, v : (..., nq), (..., nv)
            Configurations and velocities.

        Returns
        -------
        (...) array

        Examples
        --------
        >>> import kfdyn as kf, kfdyn.bridge.jax as kj
        >>> float(kj.kinetic_energy(kf.models.pendulum(mass=2.0, length=1.0), [0.3], [3.0]))
        9.0
        """
        q, v = self._given(system, q=q, v=v)
        return 0.5 * (v[..., None, :] @ (self.mass_matrix(system, q) @ v[..., None]))[..., 0, 0]

    def potential_energy(self, system: System, q: Any) -> Any:
        """Potential energy of gravity, as :func:`kfdyn.multibody.potential_energy`; it can be differentiated twice.

        Parameters
        ----------
        system : System
            A tree, with or without couplings.
        q : (..., nq)
            Configurations.

        Returns
        -------
        (...) array

        Examples
        --------
        >>> import jax, kfdyn as kf, kfdyn.bridge.jax as kj
        >>> stiffness = jax.hessian(lambda q: kj.potential_energy(kf.models.pendulum(), q))(jax.numpy.zeros(1))
        >>> round(float(stiffness[0, 0]), 4)
        9.81
        """
        return self._of(system, "potential_energy", {"q": q})[0]

    def integrate(self, system: System, q: Any, dv: Any) -> Any:
        """q ⊕ dv, as :func:`kfdyn.multibody.integrate`, in the framework's own functions.

        Parameters
        ----------
        system : System
            A tree, with or without couplings.
        q, dv : (..., nq), (..., nv)
            Configurations, and how far they move.

        Returns
        -------
        (..., nq) array
            At dv = 0 derivatives in dv are those in tangent coordinates.

        Examples
        --------
        >>> import kfdyn as kf, kfdyn.bridge.jax as kj
        >>> kj.integrate(kf.models.pendulum(), [0.5], [0.25]).tolist()
        [0.75]
        """
        return coordinates.integrate(self.framework.xp, system, *self._given(system, q=q, dv=dv))

    def tangent_gradient(self, system: System, q: Any, gradient: Any) -> Any:
        """Gradient in tangent coordinates, along ``integrate(system, q, dv)`` at dv = 0, from the gradient in q.

        Parameters
        ----------
        system : System
            A tree, with or without couplings.
        q : (..., nq)
            Configurations.
        gradient : (..., nq)
            What the framework calls the gradient in q.

        Returns
        -------
        (..., nv) array
            The same numbers where q has no quaternions.

        Examples
        --------
        >>> import numpy as np, kfdyn as kf, kfdyn.bridge.jax as kj
        >>> ball = kf.System([kf.Body("ball", np.eye(6), kf.Hinge.ball())])
        >>> kj.tangent_gradient(ball, [0.0, 0.0, 0.0, 1.0], [2.0, 4.0, 6.0, 0.0]).tolist()
        [1.0, 2.0, 3.0]
        """
        q, gradient = self._given(system, q=q, gradient=gradient)
        return coordinates.gradient(self.framework.xp, system, q, gradient)

    def step(self, system: System, q: Any, v: Any, tau: Any, dt: float) -> tuple[Any, Any]:
        """One step of :func:`kfdyn.dynamics.simulate` by "euler": v⁺ = v + dt a, q⁺ = q ⊕ dt v⁺.

        Parameters
        ----------
        system : System
            A tree, with or without couplings.
        q, v, tau : (..., nq), (..., nv), (..., nv)
            State, and torques during the step.
        dt : float
            Its size.

        Returns
        -------
        q, v : (..., nq), (..., nv)
            The next state.

        Examples
        --------
        >>> import kfdyn as kf, kfdyn.bridge.jax as kj
        >>> q, v = kj.step(kf.models.pendulum(mass=1.0, length=1.0), [0.0], [0.0], [2.0], 0.1)
        >>> [round(float(x[0]), 4) for x in (q, v)]
        [0.02, 0.2]
        """
        q, v, tau = self._given(system, q=q, v=v, tau=tau)
        after = v + dt * self.forward_dynamics(system, q, v, tau)
        return coordinates.integrate(self.framework.xp, system, q, dt * after), after

    def rollout(self, system: System, q: Any, v: Any, tau: Any, dt: float) -> tuple[Any, Any]:
        """States of all steps under given torques; back, all derivatives at once and one sweep.

        Parameters
        ----------
        system : System
            A tree, with or without couplings.
        q, v : (..., nq), (..., nv)
            State at the beginning.
        tau : (T, ..., nv)
            Torques, step after step.
        dt : float
            Size of a step.

        Returns
        -------
        q, v : (T + 1, ..., nq), (T + 1, ..., nv)
            As :func:`step` after step gives them. Where torques depend on the states, repeat :func:`step` instead.

        Notes
        -----
        The sweep is the discrete adjoint. It keeps three matrices (nv, nv) of each step.

        Examples
        --------
        >>> import numpy as np, kfdyn as kf, kfdyn.bridge.jax as kj
        >>> q, v = kj.rollout(kf.models.puma560(), np.zeros(6), np.zeros(6), np.zeros((10, 6)), 0.01)
        >>> q.shape, v.shape
        ((11, 6), (11, 6))
        """
        F = self.framework
        tau = F.asarray(tau)
        if tau.ndim < 2 or not len(tau):
            raise ShapeError(
                f"tau must have shape (T, ..., {system.nv}) with at least one step, got {tuple(tau.shape)}"
            )
        q, v, tau = self._given(system, q=F.asarray(q)[None], v=F.asarray(v)[None], tau=tau)
        steps = int(tau.shape[0])
        q, v = F.rollout(Operation(ROLLOUT, system, (float(dt), steps)), q[0], v[0], F.moveaxis(tau, 0, -2))
        return F.moveaxis(q, -2, 0), F.moveaxis(v, -2, 0)

    def log_likelihood(
        self,
        ss: StateSpace,
        T: Any,
        *,
        phi: Any = None,
        H: Any = None,
        Q: Any = None,
        R: Any = None,
        xi: Any = None,
        eta: Any = None,
    ) -> Any:
        """Log-likelihood of measurements, as ``kalman_filter(ss, T).llf``; its gradient is the score.

        Parameters
        ----------
        ss : StateSpace
            The tree, the sizes, and what is not given here.
        T : (..., Σm_k)
            Measurements, NaN where missing.
        phi, H, Q, R : (..., N, rows, columns), or one array (..., rows, columns) a node, optional
            Blocks that take the place of the model's; the φ of a root is ignored. Entries of a batch that have blocks
            of their own are models of their own, one after the other.
        xi, eta : (..., Σn_k), optional
            Known inputs.

        Returns
        -------
        (...) array

        Examples
        --------
        >>> import jax, numpy as np, kfdyn as kf, kfdyn.bridge.jax as kj
        >>> one = np.ones((1, 1))
        >>> ss = kf.StateSpace.chain(one, one, 0.0 * one, one, x0=[0.0], P0=one, steps=2)
        >>> by_R = jax.grad(lambda r: kj.log_likelihood(ss, [3.0, 0.0], R=r * np.ones((2, 1, 1))))(1.0)
        >>> round(float(by_R), 4), round(float(kf.score(ss, [3.0, 0.0]).R.flat.sum()), 4)
        (1.8333, 1.8333)
        """
        series.expect_model(ss)
        given = {"phi": phi, "H": H, "Q": Q, "R": R, "xi": xi, "eta": eta}
        names = tuple(name for name, value in given.items() if value is not None)
        F = self.framework
        flat = []
        for name in names:
            value = given[name]
            blocks = [F.asarray(x) for x in value] if isinstance(value, list | tuple) else F.asarray(value)
            flat.append(series.flattened(F.xp, ss, name, blocks))
        sizes = {"T": ss.n_outputs, **{name: series.size_of(ss, name) for name in names}}
        return F.call(Operation("log_likelihood", ss, names), *F.arrays(sizes, T, *flat))[0]

    def smoothed_means(self, ss: StateSpace, T: Any) -> Any:
        """Smoothed means x̂ of measurements, linear in them: the adjoint is one more smoother.

        Parameters
        ----------
        ss : StateSpace
            The model.
        T : (..., Σm_k)
            Measurements, NaN where missing.

        Returns
        -------
        (..., Σn_k) array

        Examples
        --------
        >>> import jax, numpy as np, kfdyn as kf, kfdyn.bridge.jax as kj
        >>> one = np.ones((1, 1))
        >>> ss = kf.StateSpace.chain(one, one, 0.0 * one, one, x0=[0.0], P0=one, steps=2)
        >>> gain = jax.jacobian(lambda T: kj.smoothed_means(ss, T))(np.zeros(2))
        >>> [round(float(x), 4) for x in gain[0]]
        [0.3333, 0.3333]
        """
        series.expect_model(ss)
        return self.framework.smoothed_means(
            Operation("smoothed_means", ss), *self.framework.arrays({"T": ss.n_outputs}, T)
        )
