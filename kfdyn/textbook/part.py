"""Jain, "Partitioning of Recursive Multibody Dynamics", executed: a hinge split over a mass-less body.

Node k of the whole carries all dofs, H_whole(k) = [H(k″); H_C], H_C = H(k′) φ(k′,k). In the split system body k keeps
H(k″) and the mass-less k′ between k and its parent has H(k′). Underlined letters of the paper end in ``_whole`` here.
Functions are named by equation; P, G … without ending are those of body k, with ``_prime`` those of k′.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kfdyn.errors import SingularError
from kfdyn.textbook.algebra import Array, block, inverse, zeros
from kfdyn.textbook.r86.links import rotation

ROUNDING = 1e-13  # of the largest acceleration, below which a contact neither pulls nor closes


class Parts(NamedTuple):
    """Articulated inertias of body k and of the mass-less k′, (8): what the relations (9)-(18) start from.

    Attributes
    ----------
    phi : (n, n)
        φ(k′, k).
    H, H_prime : (m″, n), (m′, n)
        H(k″) and H(k′).
    P, D, G, tau, tau_bar, P_plus
        Of body k.
    P_prime, D_prime, G_prime, tau_prime, tau_bar_prime, P_plus_prime
        Of the mass-less body k′.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> part = kf.textbook.part
    >>> both = part.parts_8(np.diag([2.0, 3.0]), np.eye(2), np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))
    >>> both.D, both.D_prime
    (array([[2.]]), array([[3.]]))
    """

    phi: Any
    H: Any
    H_prime: Any
    P: Any
    D: Any
    G: Any
    tau: Any
    tau_bar: Any
    P_plus: Any
    P_prime: Any
    D_prime: Any
    G_prime: Any
    tau_prime: Any
    tau_bar_prime: Any
    P_plus_prime: Any

    @property
    def H_C(self) -> Array:
        """H(k′) φ(k′,k), PART (5)."""
        return self.H_prime @ self.phi

    @property
    def H_whole(self) -> Array:
        """[H(k″); H_C], PART (5)."""
        return np.concatenate([self.H, self.H_C])


def update_7(P: Array, H: Array) -> tuple[Array, Array, Array, Array, Array]:
    """D = HPH*, G = PH*D⁻¹, τ = GH, τ̄ = 1 − τ, P⁺ = τ̄P: one step of the recursion (7)."""
    D = H @ P @ H.T
    G = P @ H.T @ inverse(D)
    tau = G @ H
    tau_bar = np.eye(len(P), dtype=P.dtype) - tau
    return D, G, tau, tau_bar, tau_bar @ P


def parts_8(P: Array, phi: Array, H: Array, H_prime: Array) -> Parts:
    """Compute the partitioned step: body k, then the mass-less k′ with P(k′) = φ P⁺(k) φ*. PART (8).

    Parameters
    ----------
    P : (n, n)
        P(k), the same in both systems (17).
    phi : (n, n)
        φ(k′, k).
    H, H_prime : (m″, n), (m′, n)
        H(k″) and H(k′).

    Returns
    -------
    Parts
        Everything (9)-(18) is made of.

    Notes
    -----
    The paper prints P⁺(k) = τ̄(k) P(k+1); it is τ̄(k) P(k).

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> part = kf.textbook.part
    >>> both = part.parts_8(np.diag([2.0, 3.0]), np.eye(2), np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))
    >>> part.D_inverse_9(both)
    array([[0.5       , 0.        ],
           [0.        , 0.33333333]])
    """
    own = update_7(P, H)
    P_prime = phi @ own[-1] @ phi.T
    return Parts(phi, H, H_prime, P, *own, P_prime, *update_7(P_prime, H_prime))


def D_9(s: Parts) -> Array:
    """D_whole = [[D, H P H_C*], [H_C P H*, H_C P H_C*]]. PART (9)."""
    cross = s.H @ s.P @ s.H_C.T
    return block([[s.D, cross], [cross.T, s.H_C @ s.P @ s.H_C.T]])


def D_inverse_9(s: Parts) -> Array:
    """D_whole⁻¹ = [[D⁻¹, 0], [0, 0]] + [−G*H_C*; 1] D⁻¹(k′) [−H_C G, 1]. PART (9)."""
    reach = _reach(s)
    out = reach.T @ inverse(s.D_prime) @ reach
    m = len(s.D)
    out[:m, :m] = out[:m, :m] + inverse(s.D)
    return out


def G_10(s: Parts) -> Array:
    """G_whole = [G, 0] + P⁺ H_C* D⁻¹(k′) [−H_C G, 1]. PART (10)."""
    gain = s.P_plus @ s.H_C.T @ inverse(s.D_prime)
    return np.concatenate([s.G, 0 * gain], axis=1) + gain @ _reach(s)


def tau_11(s: Parts) -> tuple[Array, Array]:
    """τ_whole = τ + P⁺H_C*D⁻¹(k′)H_C τ̄ and τ̄_whole = τ̄ − P⁺H_C*D⁻¹(k′)H_C τ̄. PART (11)."""
    through = s.P_plus @ s.H_C.T @ inverse(s.D_prime) @ s.H_C @ s.tau_bar
    return s.tau + through, s.tau_bar - through


def phi_G_14(s: Parts) -> Array:
    """φ(k′,k) G_whole = [τ̄(k′) φ G, G(k′)]. PART (14)."""
    return np.concatenate([s.tau_bar_prime @ s.phi @ s.G, s.G_prime], axis=1)


def phi_tau_15(s: Parts) -> tuple[Array, Array]:
    """φ τ_whole = φτ + τ(k′)φτ̄ and φ τ̄_whole = τ̄(k′)φτ̄. PART (15)."""
    closed = s.phi @ s.tau_bar
    return s.phi @ s.tau + s.tau_prime @ closed, s.tau_bar_prime @ closed


def information_16(s: Parts) -> Array:
    """H_whole* D_whole⁻¹ H_whole = H*D⁻¹H + τ̄*H_C*D⁻¹(k′)H_C τ̄. PART (16)."""
    seen = s.H_C @ s.tau_bar
    return s.H.T @ inverse(s.D) @ s.H + seen.T @ inverse(s.D_prime) @ seen


def P_plus_18(s: Parts) -> Array:
    """P⁺_whole = P⁺ − P⁺H_C*D⁻¹(k′)H_C P⁺. PART (18)."""
    return s.P_plus - s.P_plus @ s.H_C.T @ inverse(s.D_prime) @ s.H_C @ s.P_plus


def transported_19(s: Parts) -> Array:
    """φ P⁺_whole φ* = τ̄(k′) φ τ̄ P τ̄* φ* τ̄*(k′) = P⁺(k′); printed without the last star. PART (19)."""
    closed = s.tau_bar_prime @ s.phi @ s.tau_bar
    return closed @ s.P @ closed.T


def upsilon_23(s: Parts, above: Array, phi_inner: Array) -> tuple[Array, Array, Array]:
    """Υ⁺(k′), Υ(k′) and Υ(k) from Υ(k+1), through the mass-less body. PART (23); φ(k+1,k′) is ``phi_inner``."""
    plus = phi_inner.T @ above @ phi_inner
    prime = s.tau_bar_prime.T @ plus @ s.tau_bar_prime + s.H_prime.T @ inverse(s.D_prime) @ s.H_prime
    own_plus = s.phi.T @ prime @ s.phi
    return plus, prime, s.tau_bar.T @ own_plus @ s.tau_bar + s.H.T @ inverse(s.D) @ s.H


def _reach(s: Parts) -> Array:
    """Return [−H_C G, 1]."""
    return np.concatenate([-s.H_C @ s.G, np.eye(len(s.H_C), dtype=s.P.dtype)], axis=1)


def joint_map_of_pins(axes: Any, cosines: Any, sines: Any) -> Array:
    """Return H (s, 3) of a hinge of successive pins, in the child's frame, outermost pin first. PART (5).

    ::

        H(k) = [H(k″); H(k′) φ(k′,k)],     H(k″), H(k′) constant, φ(k′,k) the turn of the pins outboard of k′

    Parameters
    ----------
    axes : (s, 3)
        Unit vectors of the pins, innermost first, each in its own frame: the joint maps of the parts, constants.
    cosines, sines : (s,)
        Of their angles.

    Returns
    -------
    (s, 3)
        ω of the child in its own frame is H* times the rates, outermost first; it varies with the angles.

    Notes
    -----
    "While the H*(k) matrix for the original hinges varies as the coordinates change, the joint map matrix remains
    constant for the individual subhinges." Source: PART section 2.

    Examples
    --------
    A universal joint, z then y, bent by a right angle: the first axis lies along minus x of the child.

    >>> import kfdyn as kf
    >>> kf.textbook.part.joint_map_of_pins([[0, 0, 1], [0, 1, 0]], [1, 0], [0, 1])
    array([[ 0,  1,  0],
           [-1,  0,  0]])
    """
    rows, outward = [], None
    for axis, cosine, sine in list(zip(axes, cosines, sines))[::-1]:
        axis = np.asarray(axis)
        rows.append(axis if outward is None else outward.T @ axis)
        turn = rotation(axis, cosine, sine)
        outward = turn if outward is None else turn @ outward
    return np.array(rows)


def unilateral(Omega: Array, approach: Array) -> tuple[Array, Array]:
    """Return forces f (r,) of contacts that can push and not pull, and the accelerations w (r,) with them.

    ::

        w = Ω f + w₀,     f ≥ 0,   w ≥ 0,   f·w = 0

    Parameters
    ----------
    Omega : (r, r)
        Operational space compliance (20) along the contact normals, positive definite.
    approach : (r,)
        w₀, accelerations along the normals without contact forces; negative where bodies would run into each other.

    Returns
    -------
    f, w : (r,), (r,)
        Each contact either pushes or opens.

    Notes
    -----
    One contact changes sides at a time, the first that is wrong (Murty's least-index rule), which ends for every
    positive definite Ω; up to 2^r turns, r or so in practice. Without friction. Source: PART section 4, where Ω is
    "required for handling bilateral and unilateral constraints"; bilateral ones are :func:`kfdyn.cut_joint`.

    Examples
    --------
    A plank on two trestles, pushed down beside one of them: the other lets go.

    >>> import numpy as np, kfdyn as kf
    >>> kf.textbook.part.unilateral(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([-3.0, 1.0]))
    (array([1.5, 0. ]), array([0. , 2.5]))
    """
    Omega, approach = (x if x.dtype == object else x.astype(float) for x in map(np.asarray, (Omega, approach)))
    r = len(approach)
    scale = 0 if Omega.dtype == object else np.abs(approach).max(initial=0.0)
    closed: list[int] = []
    for _ in range(2**r):
        f, w = zeros(r, Omega), approach
        if closed:
            f[closed] = -inverse(Omega[np.ix_(closed, closed)], "Ω") @ approach[closed]
            w = Omega @ f + approach
            w[closed] = zeros(len(closed), w)
        wrong = [i for i in range(r) if (f[i] * abs(Omega[i, i]) if i in closed else w[i]) < -ROUNDING * scale]
        if not wrong:
            return f, w
        closed = sorted(set(closed) ^ {wrong[0]})
    raise SingularError("Ω is not positive definite: no set of contacts carries the load")
