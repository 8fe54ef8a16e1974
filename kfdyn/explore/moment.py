"""The explorer's state at one moment, and the numbers behind it: one filter, one smoother. Nothing here draws."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.dynamics import as_estimation, force_decompositions, mass_matrix, with_armature
from kfdyn.dynamics.loops.aggregation import Node, plan
from kfdyn.estimation import bryson_frazier, kalman_filter
from kfdyn.multibody import System, integrate, jacobian, link_terms
from kfdyn.spatial import rigid_transform


class Mode(StrEnum):
    """Modes of a hinge.

    Examples
    --------
    >>> [mode.value for mode in Mode]
    ['free', 'locked', 'with rotor', 'prescribed']
    """

    FREE = "free"
    LOCKED = "locked"
    ROTOR = "with rotor"
    PRESCRIBED = "prescribed"


@dataclass(frozen=True, eq=False)
class Moment:
    """A robot in a state, each of its hinges free, locked, with a rotor or prescribed.

    Attributes
    ----------
    system : System
        The robot as it came, with couplings or without.
    q, v, tau : (nq,), (nv,), (nv,)
        Configuration, velocity, generalised forces.
    mode : tuple of Mode
        One a hinge; that of a hinge which follows another is not read.
    rotor, rate : (nv,)
        Rotor inertia where the mode is ``ROTOR`` (added to the hinge's own), acceleration where it is ``PRESCRIBED``.
    gravity : bool
        Whether there is any.

    Examples
    --------
    A pendulum held out level and let go begins to fall with g/l; locked it does not, and nothing is left to measure:

    >>> import numpy as np, kfdyn as kf
    >>> fall = Moment.at_rest(kf.models.pendulum(), [0.5 * np.pi])
    >>> solve(fall).a, solve(fall.with_mode("pivot", Mode.LOCKED)).a
    (array([-9.81]), array([0.]))
    """

    system: System
    q: Array
    v: Array
    tau: Array
    mode: tuple[Mode, ...]
    rotor: Array
    rate: Array
    gravity: bool = True
    _rebuilt: dict[bytes, System] = field(default_factory=dict, repr=False)

    @classmethod
    def at_rest(cls, system: System, q: ArrayLike | None = None) -> Moment:
        """Make a moment with all hinges free and no torques, in the neutral configuration if none is given."""
        zero = np.zeros(system.nv)
        pose = system.neutral() if q is None else np.array(q, dtype=float)
        return cls(system, pose, zero, zero, (Mode.FREE,) * system.n_bodies, np.full(system.nv, 0.1), zero)

    def with_mode(self, hinge: str, mode: Mode) -> Moment:
        """Return the moment with another mode of one hinge, which stands still if that locks it."""
        k, own = self.system.hinge_index(hinge), self.system.v_slice(hinge)
        v = self.v.copy()
        if mode is Mode.LOCKED:
            v[own] = 0.0
        return replace(self, mode=(*self.mode[:k], mode, *self.mode[k + 1 :]), v=v)

    def with_dof(self, key: str, i: int, value: float) -> Moment:
        """Return the moment with another entry of ``v``, ``tau``, ``rotor`` or ``rate``."""
        numbers = getattr(self, key).copy()
        numbers[i] = value
        return replace(self, **{key: numbers})

    def dofs(self, *modes: Mode) -> NDArray[np.bool_]:
        """Return which dofs belong to hinges of these modes, (nv,)."""
        out = np.zeros(self.system.nv, dtype=bool)
        for k in movers(self.system):
            out[self.system.v_slice(self.system.hinge_names[k])] = self.mode[k] in modes
        return out

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Dofs whose acceleration is given, (nv,)."""
        return self.dofs(Mode.LOCKED, Mode.PRESCRIBED)

    @cached_property
    def given(self) -> Array:
        """Their accelerations, 0 elsewhere, (nv,)."""
        return np.where(self.dofs(Mode.PRESCRIBED), self.rate, 0.0)

    @cached_property
    def built(self) -> System:
        """The system with the rotors that were added."""
        extra = np.where(self.dofs(Mode.ROTOR), self.rotor, 0.0)
        if not extra.any():
            return self.system
        key = extra.tobytes()
        if key not in self._rebuilt:
            self._rebuilt.clear()
            self._rebuilt[key] = self._with_rotors(extra)
        return self._rebuilt[key]

    def _with_rotors(self, extra: Array) -> System:
        """Put rotors (nv,) on the hinges that the dofs are named after."""
        tree = self.system.open_tree
        rotors = tree.armature.copy()
        for k in movers(self.system):
            hinge = self.system.hinge_names[k]
            rotors[tree.v_slice(hinge)] += extra[self.system.v_slice(hinge)]
        return with_armature(self.system, rotors)


def movers(system: System) -> list[int]:
    """Return the hinges that have dofs and follow no other.

    Examples
    --------
    >>> import kfdyn as kf
    >>> movers(kf.models.double_pendulum().with_couplings([kf.Coupling(["shoulder", "elbow"], [1.0, 2.0])]))
    [0]
    """
    following = {name for c in system.couplings for name in c.hinges if name not in c.named}
    return [k for k, body in enumerate(system.bodies) if body.hinge.nv and body.hinge_name not in following]


class Numbers(NamedTuple):
    """Results of the filter and smoother for a moment.

    ``rotation`` (n, 3, 3) and ``position`` (n, 3) are the bodies' poses; ``P`` and ``P_plus`` (n, 3, 3) the linear
    blocks of the articulated inertias on the two sides of each hinge; ``D`` (nv,) the diagonal of the innovations
    covariances, NaN where nothing is measured; ``a`` (nv,) the accelerations; ``causes`` (3, nv) their parts by
    torques, bias forces and bias accelerations (gravity among them); ``mass_matrix`` (nv, nv); ``inverse`` (nv, nv)
    of its free part, 0 elsewhere; ``logdet`` of the free part; ``parts`` (n, 4, 6): force at each hinge, then its
    inertial parts Mα, ℛα and Pα; ``H`` the rows of the hinge maps of the open tree, (nv, 6).

    Examples
    --------
    >>> import kfdyn as kf
    >>> solve(Moment.at_rest(kf.models.double_pendulum())).D
    array([1., 1.])
    """

    rotation: Array
    position: Array
    P: Array
    P_plus: Array
    D: Array
    a: Array
    causes: Array
    mass_matrix: Array
    inverse: Array
    logdet: float
    parts: Array
    H: Array


def solve(moment: Moment) -> Numbers:
    """Run the filter and the smoother of a moment, prescribed hinges as missing measurements (THEORY section 6).

    Hinges that are coupled are one node of the filter (THEORY section 12), whose inertias and forces are shown hinge by
    hinge.

    Parameters
    ----------
    moment : Moment
        The robot and its state.

    Returns
    -------
    Numbers
        Everything that is shown.

    Examples
    --------
    A rotor is measurement noise, and adds to D:

    >>> import kfdyn as kf
    >>> heavy = Moment.at_rest(kf.models.pendulum()).with_mode("pivot", Mode.ROTOR).with_dof("rotor", 0, 0.5)
    >>> solve(heavy).D
    array([1.5])
    """
    system, known, nodes = moment.built, moment.known, plan(moment.system).nodes
    ss = as_estimation(system, moment.q, moment.v, gravity=None if moment.gravity else (0.0, 0.0, 0.0))
    terms = link_terms(system.open_tree, system.expand(moment.q))
    zero, xi = np.zeros(ss.n_states), ss.xi if ss.xi is not None else np.zeros(ss.n_states)
    given = [moment.given[node.own] for node in nodes]
    eta = (ss.eta if ss.eta is not None else zero) + np.concatenate([H.T @ a for H, a in zip(ss.H, given)])
    rotors = np.concatenate([R @ a for R, a in zip(ss.R, given)])  # what a differential's rotors feel of a given rate
    order = np.concatenate([node.own for node in nodes])  # the dofs, output by output
    none = np.where(known, np.nan, 0.0)[order]
    T = moment.tau[order] - rotors + none
    filt = kalman_filter(ss, T, xi=xi, eta=eta)
    smooth = bryson_frazier(ss, filt, covariances=False)
    by_cause = kalman_filter(
        ss,
        np.stack([moment.tau[order] + none, none, none - rotors]),
        xi=np.stack([zero, xi, zero]),
        eta=np.stack([zero, zero, eta]),
    )
    split = force_decompositions(smooth)
    M = mass_matrix(system, moment.q)
    free = np.flatnonzero(~known)
    inverse = np.zeros_like(M)
    inner = M[np.ix_(free, free)]
    inverse[np.ix_(free, free)] = np.linalg.inv(inner)
    P, P_plus = np.empty((2, system.n_bodies, 3, 3))
    D, a, causes = np.empty(system.nv), np.empty(system.nv), np.empty((3, system.nv))
    parts = np.empty((system.n_bodies, 4, 6))
    a[order], causes[:, order] = smooth.a, bryson_frazier(ss, by_cause, covariances=False).a
    for k, node in enumerate(nodes):
        at_hinges = summed_at_hinges(node, terms.l)
        for out, whole in ((P, filt.P[k]), (P_plus, filt.P_plus[k])):
            blocks = (at_hinges @ whole @ at_hinges.T).reshape(len(node.bodies), 6, len(node.bodies), 6)
            out[node.bodies] = np.einsum("iaib->iab", blocks)[:, 3:, 3:]
        D[node.own] = np.diag(filt.D[k])
        parts[node.bodies, 0] = (at_hinges @ smooth.x[k]).reshape(-1, 6)
        parts[node.bodies, 1] = split.terminal.inertial[k].reshape(-1, 6)
        parts[node.bodies, 2] = (at_hinges @ split.composite.inertial[k]).reshape(-1, 6)
        parts[node.bodies, 3] = (at_hinges @ split.articulated.inertial[k]).reshape(-1, 6)
    return Numbers(
        terms.rotation,
        terms.position,
        P,
        P_plus,
        np.where(known, np.nan, D),
        np.where(known, moment.given, a),
        causes,
        M,
        inverse,
        float(np.linalg.slogdet(inner)[1]),
        parts,
        terms.H,
    )


def summed_at_hinges(node: Node, l: Array) -> Array:
    """Return φ_S, (6s, 6s): the forces at the s hinges of a node by what each of its bodies adds (SKO "embedding").

    The identity where a node is one body; ``l`` (n, 3) leads from the hinge of each body's parent to its own.
    """
    out = np.eye(6 * len(node.bodies))
    for i, (k, above) in enumerate(zip(node.bodies, node.above)):
        if above >= 0:
            out[:, 6 * i : 6 * i + 6] += out[:, 6 * above : 6 * above + 6] @ rigid_transform(l[k])
    return out


def pulled(moment: Moment, frame: str, target: ArrayLike, steps: int = 8) -> Moment:
    """Move a frame's origin to a point by the smallest motion in the metric of the mass matrix.

    Each step is dq = 𝓜⁻¹J*(J𝓜⁻¹J*)⁻¹dx, J𝓜⁻¹J* being the operational space compliance, with a part per thousand of its
    trace added so that a stretched arm does not jump; the frame comes as near as it can. Locked and prescribed hinges
    stay.

    Parameters
    ----------
    moment : Moment
        Where it is.
    frame : str
        The frame or body that is pulled.
    target : (3,)
        Where to, in the world.
    steps : int
        How many.

    Returns
    -------
    Moment
        At rest, where it came to.

    Examples
    --------
    >>> import kfdyn as kf
    >>> arm = Moment.at_rest(kf.models.puma560(), [0.1, -0.8, 0.3, 0.2, 0.5, 0.0])
    >>> before = solve(arm).position[-1]
    >>> after = solve(pulled(arm, arm.system.body_names[-1], before + [0.0, 0.05, 0.0], steps=20)).position[-1]
    >>> (after - before).round(3) + 0.0
    array([0.  , 0.05, 0.  ])
    """
    system, wanted = moment.built, np.asarray(target, dtype=float)
    body, _, offset = system.locate(frame)
    here = moment
    for _ in range(steps):
        numbers = link_terms(system.open_tree, system.expand(here.q))
        dx = wanted - (numbers.position[body] + numbers.rotation[body] @ offset)
        size = float(np.linalg.norm(dx))
        if size < 1e-6:
            break
        J = jacobian(system, here.q, frame)[3:]
        free = np.flatnonzero(~moment.known)
        if not free.size:
            break
        M = mass_matrix(system, here.q)[np.ix_(free, free)]
        X = np.linalg.solve(M, J[:, free].T)
        compliance = J[:, free] @ X
        compliance += (1e-3 * np.trace(compliance) + 1e-300) * np.eye(3)
        dq = np.zeros(system.nv)
        dq[free] = X @ np.linalg.solve(compliance, dx)
        dq *= min(1.0, 0.5 / (np.abs(dq).max() + 1e-300))
        here = replace(here, q=integrate(system, here.q, dq))
    return replace(here, v=np.zeros(system.nv))
