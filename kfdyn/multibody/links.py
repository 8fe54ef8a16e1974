"""LinkTerms: every body's share of the equations of motion, which assembly turns into a state space."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.multibody.calls.arguments import batch, checked, configuration, expect_finite, expect_system, overflow
from kfdyn.multibody.calls.kernel import Kernel, known
from kfdyn.multibody.calls.packed_model import in_own_frames

if TYPE_CHECKING:
    from kfdyn.multibody.system import System


LINK_TERMS = Kernel("kfdyn.multibody.recursions.links", "LINK_TERMS", model=in_own_frames)


class LinkTerms(NamedTuple):
    """Terms of R86 sections 3-5 for n bodies, world orientation, at each body's origin.

    Attributes
    ----------
    rotation, position : (..., n, 3, 3), (..., n, 3)
        Pose of each body.
    l : (..., n, 3)
        From the parent's origin (the world's for a root) to the body's: φ(p,k) = [[1, l~], [0, 1]].
    H : (..., nv, 6)
        Rows of the hinge maps, stacked as v is; body k owns v_start[k] : v_start[k+1].
    inertia : (..., n, 6, 6)
        M(k) = [[J, m p~], [−m p~, m 1]].
    velocity : (..., n, 6)
        V(k) = φ* V(p) + H* β.
    xi : (..., n, 6)
        Bias force [ω × Jω; m ω × (ω × p)] − f_ext.
    eta : (..., n, 6)
        Bias acceleration, with [0; −g] at the roots.

    Examples
    --------
    The first of two rods that lie along x, in the terms of the theory: l, and a row of H, a turn about z.

    >>> import numpy as np
    >>> from kfdyn.multibody.models import uniform_chain
    >>> terms = link_terms(uniform_chain(2), np.zeros(2))
    >>> terms.l[1], terms.H[1]
    (array([1., 0., 0.]), array([0., 0., 1., 0., 0., 0.]))
    """

    rotation: Array
    position: Array
    l: Array
    H: Array
    inertia: Array
    velocity: Array
    xi: Array
    eta: Array


def link_terms(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None = None,
    external_forces: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
) -> LinkTerms:
    """Evaluate l, H, M, ξ and η of every body (R86 3.1, 4.4, 5.1-5.6).

    A hinge of several screws accumulates η screw by screw, as through mass-less bodies:

        η = [ω × H_ω*β; ω × H_v*β + ω_p × (ω_p × l + H_v*β)],  plus [0; −g] at the roots
        ξ = [ω × Jω; m ω × (ω × p)] − f_ext

    Parameters
    ----------
    system : System
        The robot.
    q : (..., nq)
    v : (..., nv), optional
        At rest if not given.
    external_forces : (..., n_bodies, 6), optional
        [moment; force] on each body, world orientation, at the body's origin.
    gravity : (..., 3), optional
        ``system.gravity`` if not given.

    Returns
    -------
    LinkTerms
        Cost O(N), about 400 flops per body.

    Examples
    --------
    A rod of 1 kg and 1 m along x, turning about z at 3 rad/s, pulls at its hinge with m ω² l/2:

    >>> from kfdyn.multibody.models import uniform_chain
    >>> terms = link_terms(uniform_chain(1), [0.0], [3.0])
    >>> terms.xi[0], terms.H.shape
    (array([ 0. ,  0. ,  0. , -4.5,  0. ,  0. ]), (1, 6))
    """
    expect_system(system)
    n, nv = len(system.layout.order), system.nv  # the layout first of all: with couplings or loops there is none
    v_in = np.zeros(nv) if v is None else checked(system, v, (nv,), "v")
    force = np.zeros((n, 6)) if external_forces is None else checked(system, external_forces, (n, 6), "external_forces")
    g = system.gravity if gravity is None else checked(system, gravity, (3,), "gravity")
    lead, (q_flat, v_flat, g_flat, f_flat) = batch(
        system, q=(configuration(system, q), 1), v=(v_in, 1), gravity=(g, 1), external_forces=(force, 2)
    )
    size = len(q_flat)
    R, p, H = np.empty((size, n, 3, 3)), np.empty((size, n, 3)), np.empty((size, nv, 6))
    V, eta, xi = np.empty((size, n, 6)), np.empty((size, n, 6)), np.empty((size, n, 6))
    l, inertia = np.empty((size, n, 3)), np.empty((size, n, 6, 6))
    if known(LINK_TERMS(system, size, q_flat, v_flat, f_flat, g_flat, R, p, l, H, inertia, V, xi, eta)):
        return LinkTerms(*(a.reshape(lead + a.shape[1:]) for a in (R, p, l, H, inertia, V, xi, eta)))
    given = {"q": q_flat, "v": v_flat, "external_forces": f_flat, "gravity": g_flat}
    for what, term in (
        ("the inertia", inertia),
        ("the lever arm", l),
        ("the velocity", V),
        ("the acceleration η", eta),
        ("the force ξ", xi),
    ):
        expect_finite(system, term, f"{what} of some body", **given)
    raise overflow(system, "the place of some body", **given)


def open_terms(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None = None,
    external_forces: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
) -> LinkTerms:
    """The terms of a system's open tree, in the state that its couplings give it."""
    tree, q_tree, v_tree = system.opened(q, v=v)
    return link_terms(tree, q_tree, v_tree, external_forces, gravity)
