"""The force between two bodies as inertia times acceleration plus a rest, in four ways (ATBI "force decompositions").

==============  ==================  =====================================================
decomposition   inertia             the rest depends on
==============  ==================  =====================================================
terminal        M(k), of the body   all generalised forces (or all accelerations)
composite       ℛ(k), frozen        outboard hinge accelerations
articulated     P(k), floppy        outboard generalised forces
inboard         P⁺(k), floppy       outboard generalised forces and the hinge's own
==============  ==================  =====================================================

In estimation the same four lines split the smoothed state x̂ into what the co-state explains and a prediction.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.dynamics.forward import dynamics_filter
from kfdyn.dynamics.theory.composite import composite_inertias
from kfdyn.estimation import Blocks, Smoothed, StateSpace
from kfdyn.estimation.model.blocks import offsets_of
from kfdyn.multibody import System
from kfdyn.multibody.kinds import expect_tree


@dataclass(frozen=True, eq=False)
class Decomposition:
    """f(k) = inertia(k) @ acceleration(k) + rest(k) at every node.

    Attributes
    ----------
    inertia : Blocks of (n_k, n_k)
        M, ℛ, P or P⁺.
    acceleration : Blocks of (..., n_k)
        α(k), or α⁺(k) on the inboard side of the hinge.
    rest : Blocks of (..., n_k)
        Residual force: φf(outboard) + ξ, y, z or z⁺.
    """

    inertia: Blocks = field(repr=False)
    acceleration: Blocks = field(repr=False)
    rest: Blocks = field(repr=False)

    @property
    def inertial(self) -> Blocks:
        """The part inertia(k) @ acceleration(k), (..., n_k)."""
        return Blocks(_times(self.inertia, self.acceleration.flat), self.acceleration.rows)

    @property
    def force(self) -> Blocks:
        """The sum, (..., n_k): the same force for all four."""
        return Blocks(self.inertial.flat + self.rest.flat, self.rest.rows)


@dataclass(frozen=True, eq=False)
class ForceDecompositions:
    """The four decompositions of the same forces.

    ::

        f(k) = M(k) α(k)   + Σ φ(k,j) f(j) + ξ(k)       terminal
             = ℛ(k) α(k)   + y(k)                       composite
             = P(k) α(k)   + z(k)                       articulated
             = P⁺(k) α⁺(k) + z⁺(k)                      inboard

    with y(k) = Σ φ(k,j) [y(j) + ℛ(j) (H*a(j) + η(j))] + ξ(k) and z, z⁺ the filter's.

    Examples
    --------
    The same force four times. Only at the tip, where nothing is outboard, do the rests agree:

    >>> import numpy as np, kfdyn as kf
    >>> parts = kf.decompose_forces(kf.models.uniform_chain(2), [0.3, 0.4], [1.0, 2.0], [0.5, -0.5])
    >>> four = (parts.terminal, parts.composite, parts.articulated, parts.inboard)
    >>> bool(all(np.allclose(one.force[0], four[0].force[0]) for one in four))
    True
    >>> [bool(np.allclose(one.rest[1], four[0].rest[1])) for one in four]
    [True, True, True, False]
    """

    terminal: Decomposition
    composite: Decomposition
    articulated: Decomposition
    inboard: Decomposition


def decompose_forces(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None,
    tau: ArrayLike,
    external_forces: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
) -> ForceDecompositions:
    """Split the forces between the bodies of a robot in motion.

    Parameters
    ----------
    system : System
        The robot.
    q : (nq,)
        Configuration.
    v : (nv,) or None
        Velocity; at rest if None.
    tau : (..., nv)
        Generalised forces; NaN locks a degree of freedom.
    external_forces : (n_bodies, 6), optional
        [moment; force] on each body, world orientation, at the body's origin.
    gravity : (3,), optional
        ``system.gravity`` if not given.

    Returns
    -------
    ForceDecompositions
        ``terminal``, ``composite``, ``articulated``, ``inboard``; spatial forces in world orientation at the
        hinge points. Accelerations are relative to free fall, as in the model.

    Notes
    -----
    O(N).

    Examples
    --------
    A floppy arm at rest falls; seen from free fall its base accelerates upwards, and every force is P α:

    >>> import numpy as np, kfdyn as kf
    >>> from kfdyn.dynamics.theory.decomposition import decompose_forces
    >>> arm = kf.models.chain(3)
    >>> parts = decompose_forces(arm, np.ones(3), None, [0.0, 0.0, 0.0])
    >>> bool(abs(parts.articulated.rest[1]).max() < 1e-14), bool(abs(parts.composite.rest[1]).max() < 1e-14)
    (True, False)
    """
    expect_tree(system, "decompose_forces")
    return force_decompositions(dynamics_filter(system, q, v, tau, external_forces, gravity)[1])


def force_decompositions(smooth: Smoothed) -> ForceDecompositions:
    """Split the smoothed states (forces) of any model: :func:`decompose_forces` for what is no robot.

    Parameters
    ----------
    smooth : Smoothed
        Result of :func:`kfdyn.bryson_frazier`.

    Returns
    -------
    ForceDecompositions
        ``terminal``, ``composite``, ``articulated``, ``inboard``. O(N).

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> ss = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)))
    >>> smooth = kf.bryson_frazier(ss, kf.kalman_filter(ss, [1.0, 3.0]))
    >>> parts = force_decompositions(smooth)
    >>> parts.composite.rest[1], parts.composite.force[1], smooth.x[1]
    (array([-1.]), array([3.]), array([3.]))
    """
    from kfdyn.estimation import Operators

    filt, ss, alpha = smooth.filt, smooth.ss, smooth.costate
    cov = filt.covariances
    rest = Operators(ss).E_phi.forward(smooth.x.flat)
    if filt.xi is not None:
        rest = rest + filt.xi
    composite = composite_inertias(ss)
    return ForceDecompositions(
        Decomposition(ss.Q, alpha, ss.state_blocks(rest)),
        Decomposition(composite, alpha, composite_rest(ss, smooth.a, filt.xi, filt.eta, composite)),
        Decomposition(cov.P, alpha, filt.z),
        Decomposition(cov.P_plus, smooth.costate_plus, filt.z_plus),
    )


def composite_rest(
    ss: StateSpace, a: Array, xi: Array | None = None, eta: Array | None = None, composite: Blocks | None = None
) -> Blocks:
    """The composite decomposition's rest y, from accelerations alone: no force enters.

    ::

        y = φξ + φ̃ ℛ (H*a + η)

    Parameters
    ----------
    ss : StateSpace
        The model; its own ξ and η are not read.
    a : (..., Σm_k)
        Hinge accelerations; y(k) reads only those outboard of k.
    xi, eta : (..., Σn_k), optional
        Biases; zero if not given.
    composite : Blocks, optional
        ℛ, if it is at hand.

    Returns
    -------
    Blocks of (..., n_k)
        y(k). O(N).
    """
    from kfdyn.estimation import Operators

    op = Operators(ss)
    relative = op.H.H.forward(ss.check_outputs(a, "a"))
    if eta is not None:
        relative = relative + ss.check_states(eta, "eta")
    y = op.phi_strict.forward(_times(composite_inertias(ss) if composite is None else composite, relative))
    return ss.state_blocks(y if xi is None else y + op.phi.forward(ss.check_states(xi, "xi")))


def _times(blocks: Blocks, flat: Array) -> Array:
    """A block-diagonal matrix times stacked vectors (..., Σn_k), one product for each size of block."""
    out, at = np.empty_like(flat), offsets_of(blocks.rows)
    for nodes, stack in blocks.grouped():
        where = at[nodes][:, None] + np.arange(stack.shape[1])
        out[..., where] = np.einsum("kij,...kj->...ki", stack, flat[..., where])
    return out
