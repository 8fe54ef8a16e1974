"""THE translation: a robot in a state becomes a linear-Gaussian model on its own tree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.dynamics.solving.kinds import own_way
from kfdyn.errors import ShapeError
from kfdyn.estimation import StateSpace, Tree
from kfdyn.multibody import FlexibleSystem, LinkTerms, System, link_terms
from kfdyn.multibody.calls.arguments import expect_system

Index = NDArray[np.int64]


def as_estimation(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None = None,
    external_forces: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
) -> StateSpace:
    """Read a robot in one state as an estimation problem: T is tau, a is the joint acceleration.

    ::

        x(k) = Σ φ(k,j) x(j) + w(k),   w ~ N(ξ + Mφ*η, M)       forces between the bodies
        T(k) = H(k) x(k) + r(k),       r ~ N(0, R)              generalised forces

    Node k is body k, named after its hinge; its outputs are the dofs of that hinge, so T, ε, ν and a are
    stacked as v is. The covariance of T is the mass matrix 𝓜, and the smoother's a is forward dynamics.

    Parameters
    ----------
    system : System
        The robot.
    q : (nq,)
        One configuration.
    v : (nv,), optional
        At rest if not given.
    external_forces : (n_bodies, 6), optional
        [moment; force] on each body, world orientation, at the body's origin.
    gravity : (3,), optional
        ``system.gravity`` if not given.

    Returns
    -------
    StateSpace
        The triple (H, φ, Q) with R, ξ and η; states of size 6, world orientation, at the hinge points.

    Notes
    -----
    O(N). Source: R86 Table 6.1; THEORY section 6.

    With couplings and loops the outputs are independent coordinates, v = Xβ, and T = X*(tau − RẊβ): where X turns with
    the robot, what moves at β, rotors (R) take a part of tau. :func:`dynamics_filter` measures this T.

    Examples
    --------
    Two masses of 1 kg, one and two metres out. The shoulder feels the first alone, for the elbow is free; let go, both
    fall with g:

    >>> import numpy as np, kfdyn as kf
    >>> ss = as_estimation(kf.models.double_pendulum(), [0.5 * np.pi, 0.0])
    >>> filt = kf.kalman_filter(ss, [0.0, 0.0])
    >>> filt.D[0].round(9), kf.bryson_frazier(ss, filt).a.round(9)
    (array([[1.]]), array([-9.81,  9.81]))
    """
    expect_system(system)
    lead = getattr(q, "shape", ())[:-1]
    if 0 not in lead:  # else there is nothing where loops could be looked at
        forest = forest_of(system, q, v, external_forces, gravity, named=True)
        lead = forest.lead
    if lead:
        raise ShapeError(
            f"as_estimation takes one configuration, but the arguments have leading axes {lead} "
            f"(system {system.name!r}); call it for one of them"
        )
    ss: StateSpace = forest.ss
    return ss


def forest_of(
    system: Any,
    q: ArrayLike,
    v: ArrayLike | None = None,
    external_forces: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
    named: bool = False,
) -> Any:
    """The forest of configurations of any kind of system: nodes are bodies, groups of bodies, or bodies that bend.

    ``named`` takes coordinates of the system as the outputs of a group, else any basis of its free rates will do.
    """
    make = own_way(system, "forest")
    if make is None:
        return as_forest(system, q, v, external_forces, gravity)
    return make(system, q, v, gravity, external_forces, named=named)


@dataclass(frozen=True, eq=False)
class Forest:
    """B configurations of one system as one model: B copies of its tree, side by side.

    Attributes
    ----------
    system : System
        The robot.
    lead : tuple of int
        Leading axes of q and v, B = their product.
    ss : StateSpace
        Node b·n_bodies + k is body k of configuration b; outputs likewise.

    Examples
    --------
    Two postures of one arm, and one filter run for both:

    >>> import numpy as np, kfdyn as kf
    >>> from kfdyn.dynamics import as_forest
    >>> pair = as_forest(kf.models.double_pendulum(), [[0.0, 0.0], [0.0, 1.0]], gravity=np.zeros(3))
    >>> pair.ss
    StateSpace(4 nodes, states 24 (6 each), outputs 4 (1 each), R = 0)
    >>> pair.by_dof(kf.innovations_factor(pair.ss).solve(pair.stack([1.0, 0.0]))).round(3)
    array([[ 1.   , -2.   ],
           [ 0.585, -0.902]])
    """

    system: System | FlexibleSystem
    lead: tuple[int, ...]
    ss: StateSpace

    def stack(self, tau: ArrayLike) -> Array:
        """Lay generalised vectors (..., nv), broadcast to the leading axes, end to end: (B nv,)."""
        shape = (*self.lead, self.system.nv)
        try:
            return np.broadcast_to(np.asarray(tau, float), shape).reshape(-1)
        except ValueError:
            raise ShapeError(f"an array of shape {np.shape(tau)} does not broadcast to {shape}, the forest's") from None

    def by_dof(self, stacked: Array) -> Array:
        """The reverse of :meth:`stack`: (..., nv)."""
        return stacked.reshape(*self.lead, self.system.nv)

    def by_body(self, stacked: Array) -> Array:
        """Stacked spatial vectors (B n_bodies 6,) as (..., n_bodies, 6)."""
        return stacked.reshape(*self.lead, self.system.n_bodies, 6)

    def where(self, node: int) -> tuple[int, int]:
        """Number of the configuration, and the body, that a node stands for."""
        return divmod(node, self.system.n_bodies)


def as_forest(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None = None,
    external_forces: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
) -> Forest:
    """Read a batch of configurations as one estimation problem on a forest, so that one sweep serves them all.

    O(B N) time and memory.

    Parameters
    ----------
    system, q, v, external_forces, gravity
        As for :func:`as_estimation`; q (..., nq) and the others with leading axes, which broadcast.

    Returns
    -------
    Forest
        The model ``ss`` and the ways to and from arrays by degree of freedom.

    Examples
    --------
    A hundred postures are a hundred trees in one model:

    >>> import numpy as np, kfdyn as kf
    >>> arm = kf.models.puma560()
    >>> forest = as_forest(arm, np.linspace(-1, 1, 600).reshape(100, 6))
    >>> len(forest.ss), forest.lead
    (600, (100,))
    """
    terms = link_terms(system, q, v, external_forces, gravity)
    lead = terms.l.shape[:-2]
    shape = _shape(system, math.prod(lead))
    ss = StateSpace.trusted(
        shape.tree,                    # time: from the tips to the base                  R86 section 4; SKO "bwa"
        shape.n,                       # states x(k): spatial forces                      R86 Table 6.1, row 1
        shape.m,                       # measurements T(k): generalised forces            R86 Table 6.1, row 3
        _transitions(shape, terms),    # transition φ(p,k): shift of a force by l(p,k)    R86 Table 6.1, row 4; (3.5)
        terms.H.reshape(-1),           # state to output map H(k): hinge axes             R86 Table 6.1, row 7; (6.5)
        terms.inertia.reshape(-1),     # process covariance Q = M(k), spatial inertia     R86 Table 6.1, row 5; (3.1)
        shape.R,                       # measurement noise R(k): rotor inertia            THEORY section 6
        terms.xi.reshape(-1),          # known input ξ(k): bias force, less external      R86 Table 6.1, row 6; (4.4)
        terms.eta.reshape(-1),         # co-state input η(k): Coriolis; −g at the roots   R86 (5.6), (6.4)
        vectors=shape.vectors,         # [moment; force], turned to the world's axes
    )  # fmt: skip
    return Forest(system, lead, ss)


def _transitions(shape: _Shape, terms: LinkTerms) -> Array:
    """φ(p,k) = [[1, l~], [0, 1]] for every body that has a parent, flat."""
    l = terms.l.reshape(-1, shape.has_parent.size, 3)[:, shape.has_parent]
    phi = np.zeros((*l.shape[:2], 6, 6))
    phi[..., range(6), range(6)] = 1.0
    for i, j, along in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        phi[..., i, 3 + j] = -l[..., along]
        phi[..., j, 3 + i] = l[..., along]
    return phi.reshape(-1)


class _Shape(NamedTuple):
    """Parts that B configurations of a system share whatever q is."""

    tree: Tree
    n: Index
    m: Index
    R: Array
    has_parent: NDArray[np.bool_]
    vectors: NDArray[np.bool_]


@lru_cache(maxsize=16)
def _shape(system: System, copies: int) -> _Shape:
    """The forest of ``copies`` trees; kept, since a simulation asks for the same one at every step."""
    n_bodies, parent = system.n_bodies, system.parent
    first = n_bodies * np.arange(copies)[:, None]
    forest = np.where(parent >= 0, parent + first, -1).reshape(-1)
    tree = Tree(forest, system.hinge_names if copies == 1 else None)
    own = np.diff(system.layout.v_start)
    R = np.concatenate([np.diag(body.armature).reshape(-1) for body in system.bodies])
    return _Shape(
        tree, np.full(forest.size, 6), np.tile(own, copies), np.tile(R, copies), parent >= 0, np.ones(forest.size, bool)
    )
