"""Tolerances: when a number is no more than rounding, and what is done about it."""

from kfdyn.sweeps.control_flow import if_, loop
from kfdyn.sweeps.functions import sqrt
from kfdyn.sweeps.values import any_lanes, to_float, where
from kfdyn.sweeps.variables import local

EPS = 2.220446049250313e-16


def bound(n):
    """Return the bound of rounding in a sum of n squares: 4 n ε."""
    return 4 * EPS * to_float(n)


def scale(r, h, P):
    """r + Σ h_i² P_ii: the size of what the variance r + h P h* is a sum of."""
    s = local(r)
    for i in loop(h.size):
        s += h[i] * h[i] * P[i, i]
    return s


def flush(before, P_plus, exact):
    """Zero the rows of P⁺ that an exact measurement has left at rounding level, covariances included.

    A perfectly known state must read as known: its leftover of order εP would pass for a variance at the next
    node and let a singular model through. A small variance alone is no sign of that: after H = [1, δ] the first state
    has variance δ² and the covariance −δ, which is far above rounding. Nothing happens where it was not ``exact``.
    """
    n = P_plus.shape[0]
    for _ in if_(any_lanes(exact)):
        for i in loop(n):
            limit = bound(n) * sqrt(before[i])
            above = local(where(exact, 0.0, 1.0))
            for j in loop(n):
                above.set(where(abs(P_plus[i, j]) <= limit * sqrt(before[j]), above, 1.0))
            for _ in if_(any_lanes(above == 0.0)):
                for j in loop(n):
                    left = where(above == 0.0, 0.0, P_plus[i, j])
                    P_plus[i, j] = left
                    P_plus[j, i] = left
