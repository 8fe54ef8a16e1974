"""The associative scan of a chain, executed (THEORY section 8; Särkkä and García-Fernández 2021).

A step of the filter is an affine map with information on what comes in. Two steps in a row are again one, and the order
in which neighbours are combined is free: with N processors the filter takes about log N rounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kfdyn.textbook.algebra import Array, inverse, solve


class Element(NamedTuple):
    """What some steps do to the state x that comes in from the step before.

    ::

        x_out | x ~ N(A x + b, C),      log p(T | x) = −½ x*J x + h*x + constant

    Attributes
    ----------
    A, b, C
        The map (n_out, n_in), its offset (n_out,) and covariance (n_out, n_out).
    J, h
        Information (n_in, n_in) and (n_in,) that the measurements of these steps have on x.
    """

    A: Array
    b: Array
    C: Array
    J: Array
    h: Array


def element(phi: Array, H: Array, Q: Array, R: Array, xi: Array, T: Array) -> Element:
    """Return the element of one step x = φ x_in + w, w ~ N(ξ, Q), that is measured as T = H x + r, r ~ N(0, R).

    ``phi`` is (n, n_in), ``H`` (m, n). W = H Q H* + R must be regular. The first step has n_in = 0.
    """
    W_inverse = inverse(H @ Q @ H.T + R, "H Q H* + R")
    g = Q @ H.T @ W_inverse
    e = T - H @ xi
    A = phi - g @ (H @ phi)
    seen = (H @ phi).T @ W_inverse
    return Element(A, xi + g @ e, Q - g @ (H @ Q), seen @ (H @ phi), seen @ e)


def combine(first: Element, second: Element) -> Element:
    """Return the element of ``first`` followed by ``second``."""
    n = len(first.b)
    ahead = solve(np.eye(n) + first.C @ second.J, np.column_stack([first.A, first.C, first.b + first.C @ second.h]))
    XA, XC, Xb = ahead[:, : -n - 1], ahead[:, -n - 1 : -1], ahead[:, -1]
    back = solve(np.eye(n) + second.J @ first.C, np.column_stack([second.J @ first.A, second.h - second.J @ first.b]))
    return Element(
        second.A @ XA,
        second.A @ Xb + second.b,
        second.A @ XC @ second.A.T + second.C,
        first.A.T @ back[:, :-1] + first.J,
        first.A.T @ back[:, -1] + first.h,
    )


def scan(elements: list[Element]) -> list[Element]:
    """Combine each element with all before it, in about log₂ N rounds; result k has z⁺(k) as ``b``, P⁺(k) as ``C``.

    In a round every element is combined with the one 1, 2, 4, … places before it; all of them at once, if there are as
    many processors.
    """
    out, apart = list(elements), 1
    while apart < len(out):
        out = out[:apart] + [combine(out[k - apart], out[k]) for k in range(apart, len(out))]
        apart *= 2
    return out
