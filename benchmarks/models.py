"""Random models with every matrix different at every node."""

import numpy as np


def covariances(rng: np.random.Generator, count: int, size: int, scale: float = 1.0) -> np.ndarray:
    """Well-conditioned covariances, shape (count, size, size)."""
    factor = rng.normal(size=(count, size, size))
    return scale * (np.einsum("kij,klj->kil", factor, factor) / size + 0.1 * np.eye(size))


def transitions(rng: np.random.Generator, count: int, size: int) -> np.ndarray:
    """Transitions that neither die out nor explode: orthogonal matrices times factors near one."""
    turn, _ = np.linalg.qr(rng.normal(size=(count, size, size)))
    return turn * rng.uniform(0.9, 1.0, size=(count, 1, 1))


def random_parent(rng: np.random.Generator, nodes: int) -> np.ndarray:
    """A random recursive tree: node k > 0 hangs on any node before it; expected depth log(nodes). Root 0."""
    parent = np.full(nodes, -1)
    parent[1:] = (rng.random(nodes - 1) * np.arange(1, nodes)).astype(np.int64)
    return parent


def chain_parent(nodes: int) -> np.ndarray:
    """A chain from node 0 to its root, the last node."""
    parent = np.arange(1, nodes + 1)
    parent[-1] = -1
    return parent


def output_covariance(parent: np.ndarray, phi: np.ndarray, H: np.ndarray, Q: np.ndarray, R: np.ndarray) -> np.ndarray:
    """𝓜 = HφQφ*H* + R from its definition, φ = (1 − ℰ)⁻¹, all dense: what a user without a recursion would form."""
    nodes, size = Q.shape[:2]
    shift = np.zeros((nodes, size, nodes, size))
    for k in np.flatnonzero(parent >= 0):
        shift[parent[k], :, k, :] = phi[k]
    total = np.linalg.inv(np.eye(nodes * size) - shift.reshape(nodes * size, -1)).reshape(nodes, size, nodes, size)
    to_output = np.einsum("iab,ibjc->iajc", H, total)
    seen = np.einsum("iajc,jcd->iajd", to_output, Q).reshape(-1, nodes * size)
    out = seen @ to_output.reshape(-1, nodes * size).T
    for k, noise in enumerate(R):
        at = slice(k * len(noise), (k + 1) * len(noise))
        out[at, at] += noise
    return (out + out.T) / 2
