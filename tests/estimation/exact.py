"""The recursions of THEORY sections 2 and 3 in fifty digits, as printed, on arrays of mpmath numbers.

At fifty digits the order of operations and the conditioning do not matter: whatever is lost, thirty digits stay.
"""

from types import SimpleNamespace

import mpmath as mp
import numpy as np

DIGITS = 50


def exact_smoother(ss, T, rounding=None):
    """Run filter and smoother; every result is a list over nodes of object arrays, llf a number.

    With a generator ``rounding`` every entry of φ, H, Q, R and T is first changed by up to one rounding error, 2⁻⁵³ of
    itself: the difference to the unchanged answer is what any computation on rounded data must be allowed.
    """
    with mp.workdps(DIGITS):
        return _run(ss, T, rounding)


def _lift(array):
    """Floats as mpmath numbers, exactly."""
    array = np.asarray(array)
    out = np.empty(array.shape, dtype=object)
    for at in np.ndindex(*array.shape):
        out[at] = array[at] if isinstance(array[at], mp.mpf) else mp.mpf(float(array[at]))
    return out


def _zeros(*shape):
    return _lift(np.zeros(shape))


def _inverse(A):
    return np.array(mp.inverse(mp.matrix(A.tolist())).tolist(), dtype=object) if len(A) else A


def _rounded(block, rng, symmetric=False):
    """The block with relative errors of up to one rounding; a covariance stays symmetric."""
    block = _lift(block)
    if rng is None:
        return block
    change = rng.uniform(-1, 1, size=block.shape)
    if symmetric:
        change = np.tril(change) + np.tril(change, -1).T
    return block * (1 + _lift(change) * mp.mpf(2) ** -53)


def _run(ss, T, rng):
    N, parent, order = len(ss), ss.tree.parent, ss.tree.order
    phi, H = ([_rounded(b, rng) for b in blocks] for blocks in (ss.phi, ss.H))
    Q, R = ([_rounded(b, rng, symmetric=True) for b in blocks] for blocks in (ss.Q, ss.R))
    y = [_rounded(b, rng) for b in ss.output_blocks(np.asarray(T, float))]
    z = [_lift(b) for b in ss.state_blocks(np.zeros(ss.n_states) if ss.xi is None else ss.xi)]
    P, out = [q.copy() for q in Q], {name: [None] * N for name in ("P_plus", "z_plus", "D", "G", "eps", "nu")}
    P_plus, z_plus, D, G, eps, nu = out.values()
    llf = mp.mpf(0)
    for k in order:
        D[k] = H[k] @ P[k] @ H[k].T + R[k]
        D_inverse = _inverse(D[k])
        G[k] = P[k] @ H[k].T @ D_inverse
        eps[k] = y[k] - H[k] @ z[k]
        nu[k] = D_inverse @ eps[k] if len(eps[k]) else eps[k]
        P_plus[k] = P[k] - G[k] @ D[k] @ G[k].T if len(eps[k]) else P[k]
        z_plus[k] = z[k] + G[k] @ eps[k] if len(eps[k]) else z[k]
        if len(eps[k]):
            llf -= (eps[k] @ nu[k] + mp.log(mp.det(mp.matrix(D[k].tolist()))) + len(eps[k]) * mp.log(2 * mp.pi)) / 2
        if parent[k] >= 0:
            P[parent[k]] = P[parent[k]] + phi[k] @ P_plus[k] @ phi[k].T
            z[parent[k]] = z[parent[k]] + phi[k] @ z_plus[k]
    costate, Lambda, x, S, a = ([None] * N for _ in range(5))
    for k in order[::-1]:
        n, p = ss.n[k], parent[k]
        above = phi[k].T @ costate[p] if p >= 0 else _zeros(n)
        above_cov = phi[k].T @ Lambda[p] @ phi[k] if p >= 0 else _zeros(n, n)
        x[k], S[k] = z_plus[k] + P_plus[k] @ above, P_plus[k] - P_plus[k] @ above_cov @ P_plus[k]
        if len(eps[k]):
            a[k] = nu[k] - G[k].T @ above
            costate[k] = above + H[k].T @ a[k]
            bar = _lift(np.eye(n)) - G[k] @ H[k]
            Lambda[k] = bar.T @ above_cov @ bar + H[k].T @ _inverse(D[k]) @ H[k]
        else:
            a[k], costate[k], Lambda[k] = eps[k], above, above_cov
    return SimpleNamespace(P=P, z=z, x=x, S=S, a=a, costate=costate, Lambda=Lambda, llf=llf, **out)


def relative_error(mine, exact):
    """Largest ‖mine − exact‖ / ‖exact‖ (Frobenius) over the nodes; the difference is taken in fifty digits."""
    worst = 0.0
    with mp.workdps(DIGITS):
        for block, reference in zip(mine, exact, strict=True):
            if not reference.size:
                continue
            own = block if np.asarray(block).dtype == object else _lift(block)
            error = mp.sqrt(sum(d * d for d in (own - reference).ravel()))
            size = mp.sqrt(sum(d * d for d in reference.ravel()))
            worst = max(worst, float(error / size) if size else float(error))
    return worst
