"""A state-space model on a forest written out as full matrices.

w ~ N(ξ + Qφ*η, Q),   x = φw,   T = Hx + r,   r ~ N(0, R)              THEORY (1), section 3
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError, TreeError

__all__ = ["DenseModel", "StateSpaceLike", "dense_model"]


class StateSpaceLike(Protocol):
    """The parts of a model that the oracle reads: blocks indexable by node, inputs flat or None."""

    @property
    def tree(self) -> Any:
        """The forest; ``tree.parent`` is read."""

    @property
    def phi(self) -> Any:
        """Transitions (n_p, n_k), from k to its parent."""

    @property
    def H(self) -> Any:
        """Output maps (m_k, n_k)."""

    @property
    def Q(self) -> Any:
        """Process covariances (n_k, n_k)."""

    @property
    def R(self) -> Any:
        """Output covariances (m_k, m_k)."""

    @property
    def xi(self) -> Any:
        """Process mean (..., N) or None."""

    @property
    def eta(self) -> Any:
        """Co-state input (..., N) or None."""


@dataclass(frozen=True)
class DenseModel:
    """A state-space model on a forest as full matrices, N = Σn_k states and Σm_k outputs.

    Attributes
    ----------
    parent : tuple of int
        Parent of each node, −1 at a root.
    states, outputs : tuple of slice
        Where node k sits in a stacked state and in a stacked output.
    E_phi, phi : (N, N)
        φ(p(k), k) at block (p(k), k), and φ = (I − ℰ_φ)^-1.
    H, Q, R : (Σm, N), (N, N), (Σm, Σm)
        The block-diagonal output map and covariances.
    xi, eta : (..., N)
        Process mean and co-state input.

    Examples
    --------
    A chain of two nodes with one state each: φ sums what is outboard.

    >>> import numpy as np, kfdyn as kf
    >>> ss = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)))
    >>> dense_model(ss).phi
    array([[1., 0.],
           [1., 1.]])
    """

    parent: tuple[int, ...]
    states: tuple[slice, ...]
    outputs: tuple[slice, ...]
    E_phi: Array
    phi: Array
    H: Array
    Q: Array
    R: Array
    xi: Array
    eta: Array

    @classmethod
    def from_blocks(
        cls,
        parent: Sequence[int],
        phi: Any,
        H: Any,
        Q: Any,
        R: Any = None,
        xi: ArrayLike | None = None,
        eta: ArrayLike | None = None,
    ) -> DenseModel:
        """Stack plain blocks; ``phi[k]`` leads from k to its parent and is ignored at a root.

        Parameters
        ----------
        parent : sequence of int
            Parent of each node, −1 at a root.
        phi, H, Q, R : sequences of blocks
            (n_p, n_k), (m_k, n_k), (n_k, n_k), (m_k, m_k) for each node k. R = None is R = 0.
        xi, eta : (..., N), optional
            Zero by default.

        Examples
        --------
        A random walk seen without noise at its second step:

        >>> I = [[1.0]]
        >>> model = DenseModel.from_blocks([1, -1], [I, None], [np.zeros((0, 1)), I], [I, I])
        >>> model.output_cov
        array([[2.]])
        """
        parent = tuple(int(p) for p in parent)
        _require_forest(parent)
        nodes = range(len(parent))
        H_blocks = [np.asarray(H[k], float) for k in nodes]
        for k, block in enumerate(H_blocks):
            if block.ndim != 2:
                raise ShapeError(f"H[{k}] has shape {block.shape}; give it as a matrix (m_k, n_k)")
        states = _slices([block.shape[1] for block in H_blocks])
        outputs = _slices([block.shape[0] for block in H_blocks])
        N, m = states[-1].stop, outputs[-1].stop

        E_phi, H_full, Q_full, R_full = (np.zeros(s) for s in ((N, N), (m, N), (N, N), (m, m)))
        for k in nodes:
            H_full[outputs[k], states[k]] = _block("H", k, H_blocks[k], H_blocks[k].shape)
            n_k, m_k = H_blocks[k].shape[1], H_blocks[k].shape[0]
            Q_full[states[k], states[k]] = _covariance("Q", k, Q[k], n_k)
            if R is not None:
                R_full[outputs[k], outputs[k]] = _covariance("R", k, R[k], m_k)
            p = parent[k]
            if p >= 0:
                E_phi[states[p], states[k]] = _block("phi", k, phi[k], (H_blocks[p].shape[1], n_k))
        return cls(
            parent=parent,
            states=states,
            outputs=outputs,
            E_phi=E_phi,
            phi=_inverse_of_one_minus(E_phi),
            H=H_full,
            Q=Q_full,
            R=R_full,
            xi=_input("xi", xi, N),
            eta=_input("eta", eta, N),
        )

    @cached_property
    def state_mean(self) -> Array:
        """E[x] = φ(ξ + Qφ*η), shape (..., N)."""
        return (self.xi + self.eta @ self.phi @ self.Q) @ self.phi.T

    @cached_property
    def state_cov(self) -> Array:
        """cov[x] = φQφ*, shape (N, N)."""
        return symmetric(self.phi @ self.Q @ self.phi.T)

    @cached_property
    def bias(self) -> Array:
        """E[T] = Hφ(ξ + Qφ*η), shape (..., Σm)."""
        return self.state_mean @ self.H.T

    @cached_property
    def output_cov(self) -> Array:
        """cov[T] = HφQφ*H* + R, shape (Σm, Σm), THEORY (1)."""
        return symmetric(self.H @ self.state_cov @ self.H.T) + self.R

    def outboard(self, k: int) -> NDArray[np.bool_]:
        """Mark the stacked outputs of strict descendants of node k, a mask of shape (Σm,)."""
        mask = np.zeros(len(self.H), bool)
        for j in range(len(self.parent)):
            i = self.parent[j]
            while i >= 0 and i != k:
                i = self.parent[i]
            mask[self.outputs[j]] = i == k
        return mask


def dense_model(ss: StateSpaceLike) -> DenseModel:
    """Write a state-space model out as full matrices.

    Parameters
    ----------
    ss : StateSpaceLike
        Anything with ``tree.parent``, blocks ``phi[k], H[k], Q[k], R[k]`` and flat ``xi``, ``eta`` (or None).
        For plain lists of blocks see `DenseModel.from_blocks`.

    Returns
    -------
    DenseModel
        φ, H, Q, R in full.

    Examples
    --------
    The covariance of the outputs of a robot is its mass matrix:

    >>> import numpy as np, kfdyn as kf
    >>> arm, q = kf.models.chain(3), np.ones(3)
    >>> full = dense_model(kf.as_estimation(arm, q))
    >>> output = full.H @ full.phi @ full.Q @ full.phi.T @ full.H.T + full.R
    >>> bool(np.allclose(output, kf.mass_matrix(arm, q)))
    True
    """
    if getattr(ss, "flat", None) is not None:
        raise ModelError("the model has flat states, whose covariance is infinite; the dense oracle takes finite ones")
    return DenseModel.from_blocks(ss.tree.parent, ss.phi, ss.H, ss.Q, ss.R, ss.xi, ss.eta)


def _require_forest(parent: tuple[int, ...]) -> None:
    if not parent:
        raise TreeError("the parent list is empty; a model needs at least one node")
    for k, p in enumerate(parent):
        if not -1 <= p < len(parent):
            raise TreeError(f"node {k}: parent {p} does not exist; use 0 to {len(parent) - 1}, or -1 for a root")
        for _ in parent:
            if p < 0:
                break
            p = parent[p]
        else:
            raise TreeError(f"node {k}: following its parents never ends at a root; break the loop")


def _slices(sizes: Sequence[int]) -> tuple[slice, ...]:
    stops = np.cumsum(sizes)
    return tuple(slice(int(stop - size), int(stop)) for size, stop in zip(sizes, stops))


def _block(name: str, k: int, block: Any, shape: tuple[int, ...]) -> Array:
    block = np.asarray(block, float)
    if block.shape != shape:
        raise ShapeError(f"{name}[{k}] has shape {block.shape}; node {k} needs {shape}")
    if not np.isfinite(block).all():
        raise ModelError(f"{name}[{k}] has entries that are not finite")
    return block


def _covariance(name: str, k: int, block: Any, size: int) -> Array:
    block = _block(name, k, block, (size, size))
    scale = np.abs(block).max(initial=0.0)
    if not np.allclose(block, block.T, rtol=0, atol=1e-12 * scale):
        raise ModelError(f"{name}[{k}] is not symmetric; a covariance is")
    if size and np.linalg.eigvalsh(block)[0] < -1e-12 * size * scale:
        raise ModelError(f"{name}[{k}] has a negative eigenvalue; a covariance has none")
    return symmetric(block)


def _input(name: str, value: ArrayLike | None, size: int) -> Array:
    array = np.zeros(size) if value is None else np.asarray(value, float)
    if array.ndim == 0 or array.shape[-1] != size:
        raise ShapeError(f"{name} has shape {array.shape}; its last axis must hold the {size} states of all nodes")
    if not np.isfinite(array).all():
        raise ModelError(f"{name} has entries that are not finite")
    return array


def symmetric(matrix: Array) -> Array:
    """Return the symmetric part."""
    return 0.5 * (matrix + matrix.T)


def _inverse_of_one_minus(E: Array) -> Array:
    """(1 − E)⁻¹ = 1 + E + E² + … = (1 + E)(1 + E²)(1 + E⁴)… for nilpotent E.

    Sums of products along paths and nothing else, so that each entry is right to the rounding of its own terms; an
    elimination with pivots is right only to that of the largest entry.
    """
    total, power = np.eye(len(E)) + E, E
    for _ in range(len(E).bit_length()):
        if not power.any():
            break
        power = power @ power
        total = total + total @ power
    return total
