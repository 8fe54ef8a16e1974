"""The operational space compliance of frames on trees, through nearest common ancestors (SKO 48-50)."""

import numpy as np
from numba import njit

from kfdyn._kernels.sizes import SWEEP, matrix


@njit(**SWEEP)
def compliances(model, G, Lambda, bodies, lever, common, out):
    """Fill out (batch, 6 F, 6 F), zeros given, for F frames on a forest of equal trees.

    ::

        X_f(body) = phi(body, frame),   X_f(p) = phi(p,k) (1 - G(k) H(k)) X_f(k)      up to the root
        Omega(f, g) = X_f*(c) Lambda(c) X_g(c),   c = common[f, g], 0 between different trees

    ``lever`` (batch, F, 3) leads from the body's origin to the frame's. Cost: 800 flops per frame and ancestor,
    900 per pair of frames.
    """
    batch, n_frames = lever.shape[:2]
    n = model.parent.size // max(batch, 1)
    trail = np.empty((n_frames, n, 6, 6))
    seen, half = np.empty((6, 6)), np.empty((6, 6))
    for b in range(batch):
        first = b * n
        for f in range(n_frames):
            k = bodies[f]
            l = lever[b, f]
            _shift(l, trail[f, k])
            while model.parent[first + k] >= 0:
                p = model.parent[first + k] - first
                _up(model, G, first + k, trail[f, k], seen, half, trail[f, p])
                k = p
        for f in range(n_frames):
            for g in range(f + 1):
                c = common[f, g]
                if c < 0:
                    continue
                kernel = matrix(Lambda, model.Q_at[first + c], 6, 6)
                left, right = trail[f, c], trail[g, c]
                for i in range(6):
                    for j in range(6):
                        s = 0.0
                        for o in range(6):
                            s += kernel[i, o] * right[o, j]
                        half[i, j] = s
                for i in range(6):
                    for j in range(6 if g < f else i + 1):
                        s = 0.0
                        for o in range(6):
                            s += left[o, i] * half[o, j]
                        out[b, 6 * f + i, 6 * g + j] = s
                        out[b, 6 * g + j, 6 * f + i] = s


@njit(nogil=True)
def _shift(l, X):
    """X = [[1, l~], [0, 1]]."""
    for i in range(6):
        for j in range(6):
            X[i, j] = 1.0 if i == j else 0.0
    for i, j, along in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        X[i, 3 + j] = -l[along]
        X[j, 3 + i] = l[along]


@njit(nogil=True)
def _up(model, G, k, X, seen, half, above):
    """X(p) = phi (X - G H X): one closed-loop step psi from node k to its parent."""
    m = model.output[k + 1] - model.output[k]
    H_k, G_k = matrix(model.H, model.H_at[k], m, 6), matrix(G, model.H_at[k], 6, m)
    for a in range(m):
        for j in range(6):
            s = 0.0
            for o in range(6):
                s += H_k[a, o] * X[o, j]
            seen[a, j] = s
    for i in range(6):
        for j in range(6):
            s = X[i, j]
            for a in range(m):
                s -= G_k[i, a] * seen[a, j]
            half[i, j] = s
    phi = matrix(model.phi, model.phi_at[k], 6, 6)
    for i in range(6):
        for j in range(6):
            s = 0.0
            for o in range(6):
                s += phi[i, o] * half[o, j]
            above[i, j] = s
