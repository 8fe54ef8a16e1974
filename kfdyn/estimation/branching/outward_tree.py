"""Define the outward model: children inherit the state of their parent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import ModelError, ShapeError, SingularError
from kfdyn.estimation.branching.factors import branch_factors, expect_clear
from kfdyn.estimation.branching.posterior import OutwardBatch, OutwardPosterior
from kfdyn.estimation.branching.square_root_dual import solve
from kfdyn.estimation.inference.missing_data import named, patterns
from kfdyn.estimation.model.blocks import Blocks, FloatArray, IntArray, real_array
from kfdyn.estimation.model.packing import BlockInput, Packed, pack
from kfdyn.estimation.model.state_space import as_tree
from kfdyn.estimation.model.tree import Tree
from kfdyn.estimation.model.validation import expect_covariance, expect_finite, expect_size

if TYPE_CHECKING:
    from kfdyn.estimation.branching.posterior import OutwardBatch


class OutwardTree:
    """A linear-Gaussian model on a forest whose nodes inherit from their parents.

    ::

        x(k) = A(k) x(p(k)) + u(k) + w(k)      w(k) ~ N(0, W(k))      state
        y(k) = C(k) x(k) + r(k)                r(k) ~ N(0, R(k))      observation

    :class:`StateSpace` *adds* children, as forces add; here each child *copies* its parent, as species, levels of a
    hierarchy and scales do. It is the dual model on the same engine: the co-state of that is the posterior of this
    (THEORY section 13).

    Parameters
    ----------
    parent : Tree or sequence of int, shape (N,)
        Parent of every node, −1 at a root, in any numbering.
    A : sequence of (n_k, n_parent) blocks, or array (N, n, n)
        What a node takes over from its parent; ignored at a root.
    W : sequence of (n_k, n_k) blocks, or array (N, n, n)
        Covariance of what a branch adds, positive semi-definite; 0 for a branch of no length; ignored at a root.
    C : sequence of (m_k, n_k) blocks, or array (N, m, n)
        Observation maps; m_k may be 0.
    R : sequence of (m_k, m_k) blocks, or array (N, m, m), optional
        Observation noise, positive semi-definite; zero, that is exact observations, if not given.
    root_mean : array (n_root,), optional
        Prior mean of every root; zero if not given.
    root_cov : array (n_root, n_root), optional
        Prior covariance of every root; None for a flat prior, of which nothing is known.
    mean : array, shape (Σn_k,), optional
        The known part u of every branch, stacked node by node; ignored at a root.
    names : sequence of str, optional
        Names of the nodes for error messages.

    Raises
    ------
    ModelError
        If a W or R is all but singular (its correlations have an eigenvalue between 1e-14 and 1e-10), or an
        observation all but exact (of several states together, R below 1e-10 of what the branch adds).

    Attributes
    ----------
    tree : Tree
        The forest.
    A, W, C, R : Blocks
        The blocks; those of a root in A have no columns, in W they are its prior covariance (0 if flat).
    n, m : ndarray of int, shape (N,)
        State and observation sizes.
    mean : ndarray, shape (Σn_k,)
        u, at roots the prior mean.
    root_cov : ndarray or None
        None if nothing is known of the roots.

    Examples
    --------
    Two children of an unseen parent, each one unit of variance away from it; nothing else is known:

    >>> import numpy as np, kfdyn as kf
    >>> one, none = np.eye(1), np.zeros((0, 1))
    >>> tree = kf.OutwardTree([2, 2, -1], [one] * 3, [one] * 3, [one, one, none])
    >>> post = tree.smooth([1.0, 3.0])
    >>> post.mean[2], post.cov[2]
    (array([2.]), array([[0.5]]))
    """

    __slots__ = ("A", "B", "C", "R", "W", "m", "mean", "n", "root_cov", "tree")

    tree: Tree
    A: Blocks
    B: Blocks
    C: Blocks
    R: Blocks
    W: Blocks
    n: IntArray
    m: IntArray
    mean: FloatArray
    root_cov: FloatArray | None

    def __init__(
        self,
        parent: Tree | ArrayLike,
        A: BlockInput,
        W: BlockInput,
        C: BlockInput,
        R: BlockInput | None = None,
        root_mean: ArrayLike | None = None,
        root_cov: ArrayLike | None = None,
        *,
        mean: ArrayLike | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        tree = as_tree(parent, names)
        inner = tree.parent >= 0
        maps = _packed(tree, "C", C)
        m, n = maps.shapes
        above, own = (np.where(inner, size, 0) if len(tree) else n for size in (n[tree.parent], n))
        nothing = np.zeros(len(tree), dtype=np.int64)
        taken = pack(tree, "A", A, skip_roots=nothing)
        expect_size(tree, "A", taken, own, above, "map the parent's state to its node's")
        added = pack(tree, "W", W, skip_roots=nothing)
        expect_size(tree, "W", added, own, own, "be square with one row for each state of its node")
        noise = Packed(np.zeros(int((m * m).sum())), m, m) if R is None else _packed(tree, "R", R)
        expect_size(tree, "R", noise, m, m, "be square with one row for each observation of its node")
        root_cov = None if root_cov is None else real_array(root_cov, "root_cov")
        u, W_flat = _roots(tree, n, mean, root_mean, root_cov, added.flat)
        added = Packed(W_flat, n, n)
        for name, packed in (("C", maps), ("A", taken), ("W", added), ("R", noise)):
            expect_finite(tree, name, packed)
        for name, packed in (("W", added), ("R", noise)):
            expect_covariance(tree, name, packed)
        C_flat, A_flat, R_flat = maps.spread(), taken.flat, noise.spread()
        values: dict[str, object] = {
            "tree": tree, "n": n, "m": m, "mean": u, "root_cov": root_cov,
            "A": Blocks(A_flat, n, above), "W": Blocks(W_flat, n, n),
            "C": Blocks(C_flat, m, n), "R": Blocks(R_flat, m, m),
        }  # fmt: skip
        for name, value in values.items():
            object.__setattr__(self, name, value)
        expect_clear(tree, self.C, self.W, self.R)
        object.__setattr__(self, "B", branch_factors(self.W, tree.roots if root_cov is None else []))
        for buffer in (n, m, u, A_flat, W_flat, C_flat, R_flat, self.B.flat):
            buffer.flags.writeable = False

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"OutwardTree is immutable; build another to change '{name}'")

    def __reduce__(self) -> tuple[object, ...]:
        means = [Blocks(self.mean, self.n)[k] for k in self.tree.roots]
        root_mean = means[0] if any(mean.any() for mean in means) else None
        return _rebuilt, (self.tree, *map(list, (self.A, self.W, self.C, self.R)), root_mean, self.root_cov, self.mean)

    def __len__(self) -> int:
        return len(self.tree)

    def __repr__(self) -> str:
        prior = "flat root" if self.root_cov is None else "known root"
        return f"OutwardTree({len(self)} nodes, states {int(self.n.sum())}, observations {self.n_outputs}, {prior})"

    @property
    def n_outputs(self) -> int:
        """Length Σm_k of a stacked observation."""
        return int(self.m.sum())

    def smooth(self, y: ArrayLike, covariances: bool = True) -> OutwardPosterior | OutwardBatch:
        """Condition every node on all observations, in one gather and one scatter of the dual model.

        Parameters
        ----------
        y : array, shape (..., Σm_k)
            Observations stacked node by node in node order; NaN marks a missing one. Each batch entry may lack others.
        covariances : bool
            Whether the posterior covariances are wanted.

        Returns
        -------
        OutwardPosterior, or OutwardBatch where batch entries lack different observations
            Mean and covariance of every node, log-likelihood and score; the covariances of an OutwardBatch have batch
            axes.

        Raises
        ------
        SingularError
            If a flat root is not resolved (its direction is named), or exact observations say a thing twice.

        Notes
        -----
        O(N) time and memory. With a flat root the log-likelihood is Durbin and Koopman's: the limit of
        ℓ + ½ d log κ for the prior covariance κ1 of d states.

        Examples
        --------
        >>> import numpy as np, kfdyn as kf
        >>> one, none = np.eye(1), np.zeros((0, 1))
        >>> tree = kf.OutwardTree([2, 2, -1], [one] * 3, [one] * 3, [one, one, none])
        >>> post = tree.smooth([np.nan, 3.0])
        >>> post.mean[0], post.cov[0]
        (array([3.]), array([[2.]]))
        """
        data = real_array(y, "y")
        if data.ndim == 0 or data.shape[-1] != self.n_outputs:
            raise ShapeError(
                f"y has shape {data.shape}, but its last axis must stack the {self.n_outputs} observations of the "
                f"{len(self)} nodes in node order"
            )
        if np.isinf(data).any():
            raise ModelError("y has infinite entries; mark a missing observation by NaN")
        table = data.reshape(math.prod(data.shape[:-1]), self.n_outputs)
        missing = np.isnan(table)
        if (missing == missing[:1]).all():
            return self._posterior(data.copy(), table, covariances)
        groups = []
        for entries in patterns(table):
            own = table[entries]
            try:
                groups.append((entries, self._posterior(own, own, covariances)))
            except SingularError as error:
                raise named(int(entries[0]), data.shape[:-1], error) from None
        return OutwardBatch(self, data.copy(), tuple(groups))

    def _posterior(self, y: FloatArray, table: FloatArray, covariances: bool) -> OutwardPosterior:
        return OutwardPosterior(self, y, solve(self, table, covariances), covariances)


def _rebuilt(*given: Any) -> OutwardTree:
    """Rebuild a pickled model from its arguments, with ``mean`` as the last."""
    return OutwardTree(*given[:-1], mean=given[-1])


def _packed(tree: Tree, name: str, blocks: BlockInput) -> Packed:
    """Pack blocks as :func:`pack` does; copy them at once if they lie in one buffer."""
    if isinstance(blocks, Blocks) and blocks.cols is not None and len(blocks) == len(tree) and blocks.flat.ndim == 1:
        return Packed(blocks.flat.copy(), blocks.rows.copy(), blocks.cols.copy())
    return pack(tree, name, blocks)


def _roots(
    tree: Tree,
    n: IntArray,
    mean: ArrayLike | None,
    root_mean: ArrayLike | None,
    root_cov: FloatArray | None,
    W: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the stacked u with the roots' prior means in it, and W with their prior covariances."""
    roots = tree.roots
    u = np.zeros(int(n.sum())) if mean is None else np.array(real_array(mean, "mean"))
    if u.shape != (int(n.sum()),) or not np.isfinite(u).all():
        raise ShapeError(f"mean must stack the {int(n.sum())} states of all nodes, finite numbers; got shape {u.shape}")
    centre = None if root_mean is None else np.atleast_1d(real_array(root_mean, "root_mean"))
    stacked = Blocks(u, n)
    full = Blocks(np.zeros(int((n * n).sum())), n, n)
    inner = np.ones(full.flat.size, dtype=bool)
    for k in roots:
        if centre is not None and (centre.shape != (n[k],) or not np.isfinite(centre).all()):
            raise ShapeError(
                f"root_mean must be {n[k]} finite numbers, as root {tree.label(k)} has states; got {centre}"
            )
        if root_cov is not None and root_cov.shape != (n[k], n[k]):
            raise ShapeError(
                f"root_cov must have shape {(int(n[k]),) * 2}, as {tree.label(k)} has; got {root_cov.shape}"
            )
        stacked[k][...] = 0.0 if centre is None else centre
        full[k][...] = 0.0 if root_cov is None else root_cov
        inner[full.offsets[k] : full.offsets[k + 1]] = False
    full.flat[inner] = W
    return u, full.flat
