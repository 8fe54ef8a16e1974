"""The linear-Gaussian model on a tree: the SKO triple (H, φ, Q), with R, ξ and η."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.model.blocks import Blocks, FloatArray, IntArray, alike, offsets_of, real_array
from kfdyn.estimation.model.chain import as_chain, told_of_edges
from kfdyn.estimation.model.covariance_factors import Factors, squared
from kfdyn.estimation.model.packing import BlockInput, parent_blocks
from kfdyn.estimation.model.repr import as_html, as_text
from kfdyn.estimation.model.tree import Tree
from kfdyn.estimation.model.validation import (
    Mask,
    covariances,
    flat_states,
    matrices,
    stacked_vector,
    transitions,
    vector_nodes,
)

_TABLE_LOCK = Lock()  # a model may be used by several threads at once
_PHI_RULE = "map its node's state to its parent's"
_H_RULE = "have one column for each state of its node"
_R_RULE = "be square with one row for each output of its node"
_SAME = "have the size it has in the model that is replaced"


class Arrays(NamedTuple):
    """The model as flat read-only arrays, as the recursions take it; ``_at`` is where each block begins."""

    order: IntArray
    parent: IntArray
    child_start: IntArray
    children: IntArray
    state: IntArray
    output: IntArray
    phi: FloatArray
    phi_at: IntArray
    H: FloatArray
    H_at: IntArray
    Q: FloatArray
    Q_at: IntArray
    R: FloatArray
    R_at: IntArray


class Common(NamedTuple):
    """State and output size that all nodes share, None where they differ, and the largest ones."""

    n: int | None
    m: int | None
    most_states: int
    most_outputs: int

    @classmethod
    def of(cls, n: IntArray, m: IntArray) -> Common:
        """Read off the sizes of all nodes."""
        all_n, all_m = alike(n), alike(m)
        most = (int(sizes.max(initial=0)) if same is None else same for sizes, same in ((n, all_n), (m, all_m)))
        return cls(all_n, all_m, *most)


class StateSpace:
    """A linear-Gaussian model on a rooted forest, immutable and validated once.

    ::

        x(k) = Σ_{j∈c(k)} φ(k,j) x(j) + w(k)      w(k) ~ N(ξ(k), Q(k))     state
        T(k) = H(k) x(k) + r(k)                   r(k) ~ N(0, R(k))        output

    Sizes n_k, m_k may differ from node to node, m_k may be 0, φ need be neither square nor invertible,
    Q and R may be singular or zero (THEORY section 1; SKO "model").

    Parameters
    ----------
    parent : Tree or sequence of int, shape (N,)
        Parent of every node, −1 at a root, in any numbering.
    phi : sequence of (n_parent, n_k) blocks, or array (N, n, n)
        ``phi[k]`` leads from node k to its parent. None at a root, or ignored there.
    H : sequence of (m_k, n_k) blocks, or array (N, m, n)
        Output maps.
    Q : sequence of (n_k, n_k) blocks, or array (N, n, n)
        Process covariances, positive semi-definite.
    R : sequence of (m_k, m_k) blocks, or array (N, m, m), optional
        Measurement noise covariances, positive semi-definite; zero if not given.
    xi : array, shape (..., Σn_k), optional
        Known mean of w; zero if not given.
    eta : array, shape (..., Σn_k), optional
        Known input of the co-state (THEORY section 3); zero if not given.
    Q_factor, R_factor : sequences of blocks with n_k and m_k rows, optional
        Instead of Q and R: factors F with Q = F F*. The square-root form takes them as they are; a root taken of a
        singular Q loses half its digits.
    flat : mapping from nodes to True or masks (n_k,), optional
        States of which nothing is known beforehand: an infinite variance is added to their Q, in the exact limit.
        The filter, the smoother and the score take such models. In mechanics: a body of infinite mass.
    vectors : bool or mask (N,), optional
        Nodes whose states are made of vectors of three components, as [moment; force], that were turned. What a
        rotation leaves of a vector's largest variance in its smallest is rounding then, no error of the model.
    names : sequence of str, optional
        Names of the nodes for error messages.
    check : bool
        Whether to make sure that all numbers are finite and that Q and R are symmetric and positive semi-definite. Who
        rebuilds a model again and again from numbers that he vouches for may say False; what is no model is then
        refused by the filter, or answered with nonsense.

    Attributes
    ----------
    tree : Tree
        The forest.
    phi, H, Q, R : Blocks
        ``phi[k]`` etc. are read-only views; ``phi[root]`` has no rows.
    n, m : ndarray of int, shape (N,)
        State and output sizes.
    n_states, n_outputs : int
        Lengths Σn_k and Σm_k of a stacked state and a stacked output.
    xi, eta : ndarray or None
        The model's own inputs.
    flat : ndarray of int or None
        Places of the flat states in a stacked state.
    vectors : ndarray of bool, shape (N,), or None
        Nodes whose states are made of vectors.

    Examples
    --------
    Two leaves that meet in a root, which alone is measured:

    >>> import numpy as np
    >>> ss = StateSpace([2, 2, -1], [np.eye(2), np.eye(2), None],
    ...                 [np.zeros((0, 2)), np.zeros((0, 2)), np.eye(2)], [np.eye(2)] * 3)
    >>> ss
    StateSpace(3 nodes, states 6 (2 each), outputs 2 (0 to 2 each), R = 0)
    """

    tree: Tree
    n: IntArray
    m: IntArray
    n_states: int
    n_outputs: int
    phi: Blocks
    H: Blocks
    Q: Blocks
    R: Blocks
    arrays: Arrays
    common: Common
    xi: FloatArray | None
    eta: FloatArray | None
    factors: Factors | None
    flat: IntArray | None
    vectors: Mask | None
    _cache: dict[Any, Any]  # Riccati by method and pattern; the finite model of one with flat states
    _table: Any  # see address; None until asked for
    in_parts: bool = False  # one of several models that are to have the same bits however few nodes are in each

    def __init__(
        self,
        parent: Tree | ArrayLike,
        phi: BlockInput,
        H: BlockInput,
        Q: BlockInput | None = None,
        R: BlockInput | None = None,
        xi: ArrayLike | None = None,
        eta: ArrayLike | None = None,
        *,
        Q_factor: BlockInput | None = None,
        R_factor: BlockInput | None = None,
        flat: Mapping[int, Any] | None = None,
        vectors: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        check: bool = True,
    ) -> None:
        tree = as_tree(parent, names)
        turned = vector_nodes(tree, vectors)
        Q, Q_root = squared(tree, "Q", Q, Q_factor, check)
        R, R_root = squared(tree, "R", R, R_factor, check)
        if Q is None:
            raise ShapeError("give Q, the process covariances, or their factors Q_factor")
        Q_flat, n = covariances(tree, "Q", Q, None, "be square", check=check and Q_root is None, vectors=turned)
        H_flat, m = matrices(tree, "H", H, None, n, _H_RULE, check)
        if R is None:
            R_flat = np.zeros(int((m * m).sum()))
        else:
            R_flat = covariances(tree, "R", R, m, _R_RULE, check=check and R_root is None)[0]
        self._set(tree, n, m, transitions(tree, "phi", phi, n, _PHI_RULE, check), H_flat, Q_flat, R_flat, turned)
        self.__dict__.update(xi=self._known("xi", xi), eta=self._known("eta", eta))
        if Q_root is not None or R_root is not None:
            self.__dict__["factors"] = Factors(Q_root, R_root)
        if flat is not None:
            self.__dict__["flat"] = flat_states(tree, n, self.arrays.state, flat)

    def _set(
        self,
        tree: Tree,
        n: IntArray,
        m: IntArray,
        phi: Blocks,
        H: FloatArray,
        Q: FloatArray,
        R: FloatArray,
        vectors: Mask | None,
    ) -> None:
        """Take over flat buffers that are known to be good."""
        common = Common.of(n, m)
        if common.n is not None and common.n == common.m:
            m = n  # arrays of a million numbers are worth sharing
        state = offsets_of(n)
        output = state if m is n else offsets_of(m)
        blocks = {
            "phi": phi,
            "H": Blocks(H, m, n, state if common.m == 1 else None),
            "Q": Blocks(Q, n, n, state if common.n == 1 else None),
            "R": Blocks(R, m, m, output if common.m == 1 else None),
        }
        for buffer in (n, m, phi.flat, H, Q, R, vectors):
            if buffer is not None:
                buffer.flags.writeable = False
        arrays = Arrays(
            tree.order, tree.parent, tree.child_start, tree.child_list, state, output,
            phi.flat, phi.offsets, H, blocks["H"].offsets, Q, blocks["Q"].offsets, R, blocks["R"].offsets,
        )  # fmt: skip
        values: dict[str, object] = {
            "tree": tree,
            "n": n,
            "m": m,
            **blocks,
            "arrays": arrays,
            "common": common,
            "n_states": int(state[-1]),
            "n_outputs": int(output[-1]),
            "xi": None,
            "eta": None,
            "factors": None,
            "flat": None,
            "vectors": vectors,
            "_cache": {},
            "_table": None,
        }
        self.__dict__.update(values)

    @classmethod
    def trusted(
        cls,
        tree: Tree,
        n: IntArray,
        m: IntArray,
        phi: FloatArray | Blocks,
        H: FloatArray,
        Q: FloatArray,
        R: FloatArray,
        xi: FloatArray | None = None,
        eta: FloatArray | None = None,
        flat: IntArray | None = None,
        vectors: Mask | None = None,
    ) -> StateSpace:
        """Build a model from flat buffers that another part of the program vouches for: nothing is checked or copied.

        Parameters
        ----------
        tree : Tree
            The forest.
        n, m : ndarray of int, shape (N,)
            State and output sizes.
        phi, H, Q, R : ndarray of float64, flat
            The blocks, node after node and row by row; phi has no block at a root, and may be Blocks, which nodes may
            share. They become read-only.
        xi, eta : ndarray, shape (..., Σn_k), optional
            Known inputs.
        flat : ndarray of int64, optional
            Places of the flat states in a stacked state, increasing; at least one.
        vectors : ndarray of bool, shape (N,), optional
            Nodes whose states are made of vectors.
        """
        ss = cls.__new__(cls)
        if not isinstance(phi, Blocks):
            above, starts = parent_blocks(tree, n)
            phi = Blocks(phi, above, n, starts)
        ss._set(tree, n, m, phi, H, Q, R, vectors)
        ss.__dict__.update(xi=xi, eta=eta, flat=flat)
        return ss

    @classmethod
    def chain(
        cls,
        F: ArrayLike | None,
        H: ArrayLike,
        Q: ArrayLike | None,
        R: ArrayLike,
        x0: ArrayLike | None = None,
        P0: ArrayLike | None = None,
        *,
        inputs: ArrayLike | None = None,
        steps: int | None = None,
        check: bool = True,
    ) -> StateSpace:
        """Build a time series x(k+1) = F(k) x(k) + u(k) + w(k), T(k) = H(k) x(k) + r(k).

        **The edges.** ``F[k]`` leads from step k to step k+1 and ``Q[k]`` is the covariance of the noise
        added on that same edge, so there are N−1 of each. ``H`` and ``R`` have N entries, one for each step.
        ``x0`` and ``P0`` are the prior of step 0 itself, *before* its measurement and with no F applied.

        Parameters
        ----------
        F, Q : array (N−1, n, n), or (n, n) for a time-invariant model
            Transition and process covariance of each edge; None when there is one step. A number stands for (1, 1),
            as it does for H, R, x0 and P0.
        H : array (N, m, n), or (m, n)
            Output maps.
        R : array (N, m, m), or (m, m)
            Measurement noise covariances.
        x0 : array (n,), optional
            Prior mean of step 0; zero if only P0 is given. It needs a P0.
        P0 : array (n, n), optional
            Prior covariance of step 0; if not given, step 0 has a flat prior: nothing is known of it.
        inputs : array (N−1, n), optional
            Known inputs u added on the edges.
        steps : int, optional
            N; needed only where neither H, R, F nor Q tells it.
        check : bool
            False where the numbers are known to be good, as for :class:`StateSpace`.

        Examples
        --------
        >>> import numpy as np
        >>> one = np.ones((1, 1))
        >>> ss = StateSpace.chain(one, one, 1469.1 * one, 15099.0 * one, [0.0], 1e7 * one, steps=100)
        >>> len(ss), ss.tree.roots
        (100, [99])
        """
        known = as_chain(F, H, Q, R, x0, P0, inputs, steps)._asdict()
        with told_of_edges():
            return cls(**known, flat={0: True} if P0 is None else None, check=check)

    def replace(
        self,
        *,
        phi: BlockInput | None = None,
        H: BlockInput | None = None,
        Q: BlockInput | None = None,
        R: BlockInput | None = None,
        xi: ArrayLike | None = None,
        eta: ArrayLike | None = None,
        check: bool = True,
    ) -> StateSpace:
        """Build the same model with other numbers: what is not given is shared, not copied, and not checked again.

        This is what a fit calls at every step, where only variances change.

        Parameters
        ----------
        phi, H, Q, R : sequence of blocks, or array (N, rows, columns), optional
            As in :class:`StateSpace`, of the sizes that the model has. A matrix broadcast to all nodes
            (``np.broadcast_to``) is checked once.
        xi, eta : array, shape (..., Σn_k), optional
            Known inputs.
        check : bool
            False where the numbers are known to be good, as for :class:`StateSpace`.

        Returns
        -------
        StateSpace
            A new model; this one stays as it is.

        Raises
        ------
        ShapeError, ModelError
            If something new has another size, is not finite, or is no covariance.

        Notes
        -----
        O(N) for what is given, nothing for the rest: tree, sizes, offsets and all other blocks are the same objects.

        Examples
        --------
        >>> import numpy as np
        >>> ss = StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)))
        >>> other = ss.replace(Q=np.full((2, 1, 1), 4.0))
        >>> other.Q[1], ss.Q[1], other.phi is ss.phi
        (array([[4.]]), array([[1.]]), True)
        """
        tree, n, m = self.tree, self.n, self.m
        new: dict[str, Blocks] = {}
        if phi is not None:
            new["phi"] = transitions(tree, "phi", phi, n, _PHI_RULE, check)
        if H is not None:
            new["H"] = self.H.like(matrices(tree, "H", H, m, n, _SAME, check)[0])
        if Q is not None:
            new["Q"] = self.Q.like(covariances(tree, "Q", Q, n, _SAME, self.common.n, check, self.vectors)[0])
        if R is not None:
            new["R"] = self.R.like(covariances(tree, "R", R, m, _SAME, self.common.m, check)[0])
        return self._with(new, self._known("xi", xi), self._known("eta", eta))

    def _with(self, new: dict[str, Blocks], xi: FloatArray | None = None, eta: FloatArray | None = None) -> StateSpace:
        """The same model with blocks that are known to be good."""
        other = StateSpace.__new__(StateSpace)
        changed: dict[str, Any] = {name: blocks.flat for name, blocks in new.items()}
        for flat in changed.values():
            flat.flags.writeable = False
        if "phi" in new:
            changed["phi_at"] = new["phi"].offsets
        values: dict[str, object] = {**new, "_cache": {}, "arrays": self.arrays._replace(**changed)}
        _ = self.address  # made once for all models that are derived from this one
        values["_table"] = self._table.replaced(**changed)
        if self.factors is not None:
            kept = Factors(*(None if name in new else getattr(self.factors, name) for name in ("Q", "R")))
            values["factors"] = None if kept.Q is None and kept.R is None else kept
        if xi is not None:
            values["xi"] = xi
        if eta is not None:
            values["eta"] = eta
        other.__dict__.update(self.__dict__)
        other.__dict__.update(values)
        return other

    def state_blocks(self, flat: FloatArray) -> Blocks:
        """View a stacked state (..., Σn_k) node by node."""
        return Blocks(flat, self.n, offsets=self.arrays.state)

    def output_blocks(self, flat: FloatArray) -> Blocks:
        """View a stacked output (..., Σm_k) node by node."""
        return Blocks(flat, self.m, offsets=self.arrays.output)

    def check_states(self, value: ArrayLike, name: str) -> FloatArray:
        """Value as float64 (..., Σn_k), finite, else an error that names it."""
        return stacked_vector(self.tree, value, name, self.arrays.state, "states")[0]

    def check_outputs(self, value: ArrayLike, name: str, *, allow_nan: bool = False) -> FloatArray:
        """Value as float64 (..., Σm_k), finite (or NaN where allowed), else an error that names it.

        Where all N nodes have m outputs, (..., N, m) is taken as well, a row for each node.
        """
        return self.checked_outputs(value, name, allow_nan)[0]

    def checked_outputs(self, value: ArrayLike, name: str, allow_nan: bool) -> tuple[FloatArray, bool]:
        """Check as :meth:`check_outputs`; return also whether a look has told that all is finite."""
        if not isinstance(value, np.ndarray) or value.ndim != 1:
            N, m = len(self.tree), self.common.m
            if m and N > 1 and np.shape(value)[-2:] == (N, m):  # not where (N, 0) is a batch of nothing
                value = real_array(value, name)
                value = value.reshape(*value.shape[:-2], N * m)
        return stacked_vector(self.tree, value, name, self.arrays.output, "outputs", allow_nan)

    def _known(self, name: str, value: ArrayLike | None) -> FloatArray | None:
        """A known input, checked, as an array of the model's own."""
        if value is None:
            return None
        own = self.check_states(value, name).copy()
        own.flags.writeable = False
        return own

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"StateSpace is immutable; build another to change '{name}'")

    def __reduce__(self) -> tuple[Any, ...]:
        buffers = (self.phi.flat, self.H.flat, self.Q.flat, self.R.flat)
        return _rebuilt, (
            self.tree,
            (self.n, self.m, self.phi.offsets),
            buffers,
            self.xi,
            self.eta,
            self.flat,
            self.factors,
            self.vectors,
        )

    def __len__(self) -> int:
        return len(self.tree)

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    @property
    def address(self) -> int:
        """The address of a table of addresses for compiled sweeps, made when first asked for."""
        if self._table is None:
            with _TABLE_LOCK:
                if self._table is None:
                    from kfdyn.estimation.recursions.state_space import MODEL

                    _, _, n, m = self.common
                    table = MODEL.packed(nodes=len(self), most=n, most_outputs=m, **self.arrays._asdict())
                    self.__dict__["_table"] = table
        return self._table


def _rebuilt(
    tree: Tree,
    sizes: tuple[IntArray, ...],
    buffers: tuple[FloatArray, ...],
    xi: FloatArray | None,
    eta: FloatArray | None,
    flat: IntArray | None = None,
    factors: Factors | None = None,
    vectors: Mask | None = None,
) -> StateSpace:
    """A model that was pickled; its arrays may begin at any byte and have a dtype of their own, so they are copied."""
    n, m, starts = (np.concatenate([np.empty(0, np.int64), array]) for array in sizes)
    phi, H, Q, R = (np.concatenate([np.empty(0), array]) for array in buffers)
    ss = StateSpace.trusted(
        tree, n, m, Blocks(phi, parent_blocks(tree, n)[0], n, starts), H, Q, R, xi, eta, vectors=vectors
    )
    ss.__dict__.update(flat=flat, factors=factors)
    return ss


def as_tree(parent: Tree | ArrayLike, names: Sequence[str] | None) -> Tree:
    """The forest that a parent list stands for; a Tree is taken as it is, unless it is to be named."""
    if not isinstance(parent, Tree):
        return Tree(parent, names)
    return parent if names is None else Tree(parent.parent, names)


def expect_model(ss: Any, name: str = "ss") -> None:
    """Refuse what is no StateSpace; ``name`` is the argument's."""
    if not isinstance(ss, StateSpace):
        cure = "a robot becomes one by kf.as_estimation(system, q)"
        if hasattr(ss, "root_cov"):
            cure = "a tree that branches outward has smooth(y), which returns means, covariances, likelihood and score"
        elif isinstance(getattr(ss, "ss", None), StateSpace):
            cure = "this is a result, whose model is its attribute ss"
        raise ModelError(f"{name} must be a kfdyn.StateSpace, got {described(ss)}; {cure}")


def expect_proper(ss: StateSpace, what: str) -> None:
    """Refuse a model with flat states where an infinite covariance has no meaning."""
    if ss.flat is not None:
        node = int(np.searchsorted(ss.arrays.state, ss.flat[0], side="right")) - 1
        raise ModelError(
            f"{ss.tree.label(node)} has a flat prior, so {what} would be infinite; kalman_filter, bryson_frazier and "
            "score take flat priors, for the rest give the node a finite Q"
        )


def described(value: Any) -> str:
    """A value in a message: its type, and the start of what it looks like in one line."""
    return f"{type(value).__name__} {' '.join(repr(value).split()):.60}"
