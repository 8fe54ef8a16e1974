"""Phylogenies, and the ready-made models of traits that evolve along them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import ModelError, ShapeError, TreeError
from kfdyn.estimation.branching.newick import read_newick
from kfdyn.estimation.branching.outward_tree import OutwardTree
from kfdyn.estimation.branching.transitions import pulled, stationary
from kfdyn.estimation.model.blocks import Blocks, FloatArray, IntArray, real_array
from kfdyn.estimation.model.tree import Tree


@dataclass(frozen=True, eq=False)
class Phylogeny:
    """A rooted tree with lengths of branches and names of tips, and the models of traits on it.

    Every model is an :class:`OutwardTree` with one state for each trait, observed at the tips. Brownian motion adds
    variance in proportion to time, Ornstein and Uhlenbeck's process is pulled towards an optimum on the way, and
    Pagel's λ shrinks what tips share.

    Without ``root_cov``, the root of Brownian motion and of Pagel's λ is flat, and the log-likelihood is that of REML,
    restricted maximum likelihood: of the differences between tips, which do not contain the root's value. It is less
    by ½ d log 2π + ½ log |X*X| for the d states of the root, where the tips' means are X times the root: a number that
    no rate or λ changes, so that maxima, their information and ratios are the same. Rates estimated so are not biased
    by the estimate of the root. Ornstein and Uhlenbeck's root is drawn from the stationary distribution: the pull
    changes X, and with a flat root the likelihood would grow with it for ever.

    Attributes
    ----------
    parent : ndarray of int, shape (N,)
        Parent of every node, −1 at the root.
    length : ndarray, shape (N,)
        Length of the branch from the parent; that of a root is ignored.
    names : tuple of str
        Name of every node, '' where it has none.

    Examples
    --------
    Who came before A and B? Their own mean, drawn a little towards C:

    >>> import kfdyn as kf
    >>> apes = kf.Phylogeny.from_newick("((A:1,B:1)AB:1,C:2);")
    >>> post = apes.brownian().smooth(apes.traits({"A": 1.0, "B": 3.0, "C": 8.0}))
    >>> post.mean[apes.node("AB")].round(6), post.cov[apes.node("AB")].round(6)
    (array([2.857143]), array([[0.428571]]))
    """

    parent: IntArray
    length: FloatArray
    names: tuple[str, ...] = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parent", np.array(self.parent))
        object.__setattr__(self, "length", np.array(real_array(self.length, "length")))
        object.__setattr__(self, "names", tuple(self.names))

    @classmethod
    def from_newick(cls, text: str) -> Phylogeny:
        """Read Newick text; every branch but the root's needs a length (0 is allowed)."""
        parent, length, names = read_newick(text)
        missing = np.flatnonzero(np.isnan(length) & (parent >= 0))
        if missing.size:
            k = int(missing[0])
            raise TreeError(
                f"the branch to node {k} ('{names[k]}') has no length in the Newick text; write it as name:1.0"
            )
        return cls(parent, np.where(parent < 0, 0.0, length), tuple(names))

    @cached_property
    def tree(self) -> Tree:
        """The forest, with names for error messages."""
        length, tree = self.length, Tree(self.parent, self.names)
        inner = length[tree.parent >= 0] if length.shape == (len(tree),) else np.array([np.nan])
        if not ((inner >= 0.0) & (inner < np.inf)).all():
            raise TreeError(
                f"length must hold {len(tree)} finite numbers of 0 or more, one for each node; a root's is ignored"
            )
        return tree

    @cached_property
    def tips(self) -> IntArray:
        """Nodes without children, in node order."""
        return np.array(self.tree.leaves)

    @cached_property
    def heights(self) -> FloatArray:
        """Distance of every node from its root, (N,)."""
        out = np.zeros(len(self.tree))
        for k in self.tree.order[::-1].tolist():
            p = self.parent[k]
            if p >= 0:
                out[k] = out[p] + self.length[k]
        return out

    @cached_property
    def _nodes(self) -> dict[str, list[int]]:
        """The nodes of each name; inner labels are often support values, which repeat."""
        nodes: dict[str, list[int]] = {}
        for k, name in enumerate(self.names):
            nodes.setdefault(name, []).append(k)
        return nodes

    def node(self, name: str) -> int:
        """Return the number of the node with this name, which no other node may have."""
        return self._one(name, self._nodes.get(name, []) if name else [])

    def _tip(self, name: str) -> int:
        """Return the number of the tip with this name; inner nodes of the same name are ignored."""
        found = self._nodes.get(name, []) if name else []
        tips = [k for k in found if self.tree.child_start[k] == self.tree.child_start[k + 1]]
        k = self._one(name, tips or found)
        if not tips:
            raise TreeError(f"{name!r} is no tip, and only tips are observed in the ready-made models")
        return k

    def _one(self, name: str, found: list[int]) -> int:
        if len(found) > 1:
            which = (
                f"nodes {', '.join(map(str, found[:-1]))} and {found[-1]}" if len(found) < 5 else f"{len(found)} nodes"
            )
            raise TreeError(f"{which} are called {name!r}; rename them, or use their numbers")
        if not found:
            more = " …" if len(self.tips) > 8 else ""
            raise TreeError(
                f"no node is called {name!r}; the tips are {', '.join(self.names[k] for k in self.tips[:8])}{more}"
            )
        return found[0]

    def traits(self, values: Mapping[str, ArrayLike], size: int | None = None) -> FloatArray:
        """Stack the traits of the tips for :meth:`OutwardTree.smooth`; tips not named are missing.

        Parameters
        ----------
        values : mapping from tip names to numbers, or to arrays with one number for each trait
            NaN marks a trait that is missing.
        size : int, optional
            Number of traits; read off the values if not given.

        Returns
        -------
        ndarray, shape (tips · traits,)
            In node order.
        """
        if not hasattr(values, "items"):
            raise ShapeError(
                f"traits must map names of tips to numbers, as {{'{self.names[self.tips[0]]}': 1.0}}; got "
                f"{type(values).__name__}. An array in node order goes to smooth as it is"
            )
        table = {self._tip(name): np.atleast_1d(real_array(v, f"traits of {name}")) for name, v in values.items()}
        d = size if size is not None else next((len(v) for v in table.values()), 1)
        place = {int(k): i for i, k in enumerate(self.tips)}
        out = np.full((len(self.tips), d), np.nan)
        for k, v in table.items():
            if v.shape != (d,):
                raise ShapeError(f"{self.names[k]!r} has {v.size} traits where the others have {d}")
            out[place[k]] = v
        return out.ravel()

    def brownian(
        self,
        rate: ArrayLike = 1.0,
        *,
        error: ArrayLike = 0.0,
        root_mean: ArrayLike | None = None,
        root_cov: ArrayLike | None = None,
    ) -> OutwardTree:
        """Make the model of Brownian motion: x(child) = x(parent) + N(0, length · rate).

        Parameters
        ----------
        rate : float, or array (d, d)
            Variance (covariance of d traits) that a branch adds for each unit of its length.
        error : float, (d,) or (d, d)
            Variance with which the tips are measured; 0 for exact tips.
        root_mean, root_cov : optional
            Prior of the root; flat if root_cov is not given.
        """
        rate = _covariance(rate, "rate")
        d = len(rate)
        A = np.broadcast_to(np.eye(d), (len(self.tree), d, d))
        return self._model(A, self.length[:, None, None] * rate, error, root_mean, root_cov, None)

    def pagel(
        self,
        lam: float,
        rate: ArrayLike = 1.0,
        *,
        error: ArrayLike = 0.0,
        root_mean: ArrayLike | None = None,
        root_cov: ArrayLike | None = None,
    ) -> OutwardTree:
        """Make the model of Pagel's λ: Brownian motion in which tips share λ times the covariance that the tree says.

        Inner branches are shortened to λ times their length and those of the tips lengthened, so that no tip's
        variance changes: λ = 1 is Brownian motion, λ = 0 tips that know nothing of each other.

        Parameters
        ----------
        lam : float
            λ, from 0 to as much more than 1 as keeps every branch of a tip at a length of 0 or more.
        rate, error, root_mean, root_cov
            As in :meth:`brownian`.
        """
        rate = _covariance(rate, "rate")
        d = len(rate)
        given = real_array(lam, "lam")
        if given.ndim:
            raise ShapeError(f"lam must be one number, Pagel's λ of the whole tree; got shape {given.shape}")
        lam = float(given)
        length = lam * self.length
        tips = self.tips[self.parent[self.tips] >= 0]
        length[tips] = self.heights[tips] - lam * self.heights[self.parent[tips]]
        if not lam >= 0.0 or (length < -1e-12 * self.heights).any():
            raise ModelError(
                f"λ = {lam} makes branches of negative length; choose it between 0 and {self.largest_lambda():.6g}"
            )
        length = np.maximum(length, 0.0)
        A = np.broadcast_to(np.eye(d), (len(self.tree), d, d))
        return self._model(A, length[:, None, None] * rate, error, root_mean, root_cov, None)

    def largest_lambda(self) -> float:
        """Return the largest λ that leaves no branch of a tip negative."""
        tips = self.tips[self.parent[self.tips] >= 0]
        above = self.heights[self.parent[tips]]
        ratio = np.divide(self.heights[tips], above, out=np.full(tips.size, np.inf), where=above > 0)
        return float(ratio.min(initial=np.inf))

    def ornstein_uhlenbeck(
        self,
        rate: ArrayLike = 1.0,
        pull: ArrayLike = 1.0,
        optimum: ArrayLike = 0.0,
        *,
        error: ArrayLike = 0.0,
        root_mean: ArrayLike | None = None,
        root_cov: ArrayLike | Literal["stationary"] | None = "stationary",
    ) -> OutwardTree:
        """Make the model of Ornstein and Uhlenbeck's process dx = pull (optimum − x) dt + noise of the given rate.

        ::

            A = exp(−pull t),   u = (1 − A) optimum,   W = ∫₀ᵗ exp(−pull s) rate exp(−pull* s) ds

        Parameters
        ----------
        rate : float, or array (d, d)
            Variance that is added for each unit of time.
        pull : float, (d,) or (d, d)
            Strength of the pull; 0 gives Brownian motion. A matrix lets one trait pull at another.
        optimum : float, or array (d,), or array (N, d) with one optimum for each branch
            Where the pull leads to.
        error : float, (d,) or (d, d)
            As in :meth:`brownian`.
        root_mean, root_cov : optional
            Prior of the root. If not given, it is the stationary distribution, with the covariance Σ of
            pull Σ + Σ pull* = rate about the optimum. None for ``root_cov`` is a flat root; then likelihoods of
            different pulls cannot be compared.
        """
        rate, pull = _covariance(rate, "rate"), real_array(pull, "pull")
        d, N = len(rate), len(self.tree)
        A, W = pulled(np.where(self.tree.parent < 0, 0.0, self.length), rate, pull)
        goal = real_array(optimum, "optimum")
        if goal.ndim == 0 or goal.shape in ((d,), (N, d)):
            goal = np.broadcast_to(goal, (N, d))
        else:
            raise ShapeError(f"optimum must be a number, or have shape ({d},) or ({N}, {d}); got {goal.shape}")
        u = goal - np.einsum("kij,kj->ki", A, goal)
        if isinstance(root_cov, str):
            if root_cov != "stationary":
                raise ModelError(f"root_cov must be a covariance, None or 'stationary', got {root_cov!r}")
            at_roots = goal[self.tree.parent < 0]
            if root_mean is None and (at_roots != at_roots[:1]).any():
                raise ModelError(
                    "the roots of this forest have different optima; give root_mean, or one optimum for all"
                )
            root_cov, root_mean = stationary(rate, pull), at_roots[0] if root_mean is None else root_mean
        return self._model(A, W, error, root_mean, root_cov, u.ravel())

    def _model(
        self,
        A: FloatArray,
        W: FloatArray,
        error: ArrayLike,
        root_mean: ArrayLike | None,
        root_cov: ArrayLike | None,
        mean: FloatArray | None,
    ) -> OutwardTree:
        N, d = A.shape[:2]
        noise = _covariance(error, "error", d)
        m, n = np.zeros(N, dtype=np.int64), np.full(N, d)
        m[self.tips] = d
        C = Blocks(np.tile(np.eye(d).ravel(), self.tips.size), m, n)
        R = Blocks(np.tile(noise.ravel(), self.tips.size), m, m)
        if root_mean is not None:
            root_mean = np.broadcast_to(real_array(root_mean, "root_mean"), (d,))
        cov = None if root_cov is None else _covariance(root_cov, "root_cov", d)
        return OutwardTree(self.tree, A, W, C, R, root_mean, cov, mean=mean)


def _covariance(value: ArrayLike, name: str, size: int | None = None) -> FloatArray:
    """Return a number, a vector of variances or a covariance as a matrix."""
    array = real_array(value, name)
    d = size if size is not None else (1 if array.ndim == 0 else array.shape[0])
    if array.ndim < 2 and array.shape in ((), (1,), (d,)):
        if not (array >= 0.0).all() or np.isinf(array).any():
            raise ModelError(f"{name} must be a variance, a finite number of 0 or more, got {array}")
        return np.diag(np.broadcast_to(array, (d,)))
    if array.shape != (d, d):
        raise ShapeError(f"{name} must be a number, {d} variances or a ({d}, {d}) covariance; got shape {array.shape}")
    return array
