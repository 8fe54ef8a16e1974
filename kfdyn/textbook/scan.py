"""The associative scan of a chain, executed (THEORY section 8; Särkkä and García-Fernández 2021).

A step of the filter is an affine map with information on what comes in. Two steps in a row are again one, and the order
in which neighbours are combined is free: with N processors the filter takes about log N rounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kfdyn.textbook.algebra import Array, inverse, solve


class Element(NamedTuple):
    """Effect of some steps on the state x that comes in from the step before.

    ::

        x_out | x ~ N(A x + b, C),      log p(T | x) = −½ x*J x + h*x + constant

    Attributes
    ----------
    A, b, C
        The map (n_out, n_in), its offset (n_out,) and covariance (n_out, n_out).
    J, h
        Information (n_in, n_in) and (n_in,) that the measurements of these steps have on x.

    Examples
    --------
    A level that is kept, and seen with variance 1:

    >>> import numpy as np
    >>> one, zero = np.eye(1), np.zeros((1, 1))
    >>> element(one, one, zero, one, np.zeros(1), np.array([3.0])).J
    array([[1.]])
    """

    A: Array
    b: Array
    C: Array
    J: Array
    h: Array


def element(phi: Array, H: Array, Q: Array, R: Array, xi: Array, T: Array) -> Element:
    """Return the element of one step x = φ x_in + w, w ~ N(ξ, Q), that is measured as T = H x + r, r ~ N(0, R).

    Parameters
    ----------
    phi : array, shape (n, n_in)
        Transition; n_in is 0 at the first step.
    H : array, shape (m, n)
        Output map.
    Q, R : array, shape (n, n), (m, m)
        Covariances; W = H Q H* + R must be regular.
    xi : array, shape (n,)
        Mean of w.
    T : array, shape (m,)
        Measurement.

    Returns
    -------
    Element

    Examples
    --------
    >>> import numpy as np
    >>> one = np.eye(1)
    >>> element(np.zeros((1, 0)), one, one, one, np.zeros(1), np.array([3.0])).b
    array([1.5])
    """
    W_inverse = inverse(H @ Q @ H.T + R, "H Q H* + R")
    g = Q @ H.T @ W_inverse
    e = T - H @ xi
    A = phi - g @ (H @ phi)
    seen = (H @ phi).T @ W_inverse
    return Element(A, xi + g @ e, Q - g @ (H @ Q), seen @ (H @ phi), seen @ e)


def combine(first: Element, second: Element) -> Element:
    """Return the element of ``first`` followed by ``second``.

    Parameters
    ----------
    first, second : Element
        Neighbours.

    Returns
    -------
    Element

    Examples
    --------
    A level measured twice, 3 and 4, with variance 1 and a prior of variance 1:

    >>> import numpy as np
    >>> one, zero = np.eye(1), np.zeros(1)
    >>> begin = element(np.zeros((1, 0)), one, one, one, zero, np.array([3.0]))
    >>> combine(begin, element(one, one, 0 * one, one, zero, np.array([4.0]))).b.round(6)
    array([2.333333])
    """
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

    Parameters
    ----------
    elements : list of Element
        One for each step.

    Returns
    -------
    list of Element

    Examples
    --------
    >>> import numpy as np
    >>> one, zero = np.eye(1), np.zeros(1)
    >>> begin = element(np.zeros((1, 0)), one, one, one, zero, np.array([3.0]))
    >>> [e.C.item() for e in scan([begin, element(one, one, one, one, zero, zero)])]
    [0.5, 0.6]
    """
    out, apart = list(elements), 1
    while apart < len(out):
        out = out[:apart] + [combine(out[k - apart], out[k]) for k in range(apart, len(out))]
        apart *= 2
    return out
