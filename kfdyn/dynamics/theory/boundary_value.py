"""The two-point boundary-value problem that forces and accelerations satisfy together (R86 section 6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.dynamics.assembly import as_estimation
from kfdyn.errors import ShapeError, SingularError
from kfdyn.estimation import Blocks, StateSpace
from kfdyn.estimation.inference.riccati import riccati
from kfdyn.multibody import System
from kfdyn.multibody.kinds import expect_tree

if TYPE_CHECKING:
    from scipy.sparse import csc_array


class BoundaryValueSolution(NamedTuple):
    """States (forces) x(k) and co-states (accelerations) λ(k), (..., n_k), and the outputs' a, (..., Σm_k)."""

    x: Blocks
    costate: Blocks
    a: Array


class BoundaryValueResidual(NamedTuple):
    """Residual of each equation, relative to its largest term; one number for each batch entry.

    ``state`` is (6.1)-(6.2), ``costate`` (6.3)-(6.4), ``output`` (6.5).
    """

    state: Array
    costate: Array
    output: Array


@dataclass(frozen=True, eq=False)
class BoundaryValueProblem:
    """Forces from tip to base, accelerations from base to tip, joined at the hinges: R86 (6.1)-(6.6), on any tree.

    ::

        x(k) = Σ_{j∈c(k)} φ(k,j) x(j) + Q(k) λ(k) + ξ(k)          forces, 0 beyond the tips
        λ(k) = φ*(p(k),k) λ(p(k)) + H*(k) a(k) + η(k)             accelerations, 0 beyond the roots
        T(k) = H(k) x(k) + R(k) a(k)                              generalised forces

    Three ways to the same answer: :meth:`solve` takes all equations at once, :meth:`sweep` is the filter and
    smoother, and :meth:`residual` judges a solution from anywhere.

    Parameters
    ----------
    ss : StateSpace
        The model, with its ξ and η.
    T : array, shape (..., Σm_k)
        Generalised forces; where NaN, the equation is a = 0 in its place: a locked hinge, a missing measurement.

    Examples
    --------
    >>> import kfdyn as kf
    >>> from kfdyn.dynamics.theory.boundary_value import BoundaryValueProblem
    >>> arm = kf.models.double_pendulum()
    >>> problem = BoundaryValueProblem.of_system(arm, [0.3, 0.4], [1.0, -2.0], [0.5, 0.0])
    >>> whole, swept = problem.solve(), problem.sweep()
    >>> bool(abs(whole.a - swept.a).max() < 1e-12)
    True
    >>> bool(max(problem.residual(*swept)) < 1e-14)
    True
    """

    ss: StateSpace
    T: Array = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "T", self.ss.check_outputs(self.T, "T", allow_nan=True))
        missing, batch = np.isnan(self.T), tuple(range(self.T.ndim - 1))
        if missing.size and (missing.any(axis=batch) != missing.all(axis=batch)).any():
            raise ShapeError("T has NaN at different places in different batch entries; group them by pattern")

    @classmethod
    def of_system(
        cls,
        system: System,
        q: ArrayLike,
        v: ArrayLike | None,
        tau: ArrayLike,
        external_forces: ArrayLike | None = None,
        gravity: ArrayLike | None = None,
    ) -> BoundaryValueProblem:
        """The problem of a robot in one state: q (nq,), v (nv,) or None, tau (..., nv)."""
        expect_tree(system, "BoundaryValueProblem.of_system")
        return cls(as_estimation(system, q, v, external_forces, gravity), np.asarray(tau, float))

    @cached_property
    def observed(self) -> NDArray[np.bool_]:
        """Return where T is given, (Σm_k,)."""
        return np.logical_not(np.isnan(self.T).any(axis=tuple(range(self.T.ndim - 1))))

    @cached_property
    def matrix(self) -> csc_array:
        """The sparse matrix of the whole problem on (x, λ, a), square, Σ(2n_k + m_k) rows.

        ::

            [1 − ℰ_φ   −Q          0 ] [x]   [ξ]
            [0          1 − ℰ_φ*  −H*] [λ] = [η]
            [H          0          R ] [a]   [T]
        """
        from scipy import sparse

        ss, seen = self.ss, self.observed.astype(float)
        state, output = ss.arrays.state, ss.arrays.output
        above = np.where(ss.tree.parent >= 0, state[ss.tree.parent], 0)
        E = _sparse(ss.phi, above, state[:-1], (ss.n_states, ss.n_states))
        Q = _sparse(ss.Q, state[:-1], state[:-1], (ss.n_states, ss.n_states))
        H = _sparse(ss.H, output[:-1], state[:-1], (ss.n_outputs, ss.n_states))
        R = _sparse(ss.R, output[:-1], output[:-1], (ss.n_outputs, ss.n_outputs))
        one, keep = sparse.eye_array(ss.n_states), sparse.diags_array(seen)
        locked = sparse.diags_array(1.0 - seen)  # a = 0 in the place of T = H x + R a
        return sparse.block_array(
            [[one - E, -Q, None], [None, one - E.T, -H.T], [keep @ H, None, keep @ R + locked]], format="csc"
        )

    def solve(self) -> BoundaryValueSolution:
        """Solve for everything at once by one sparse factorisation, which knows nothing of filters.

        Raises
        ------
        SingularError
            If the problem has no unique solution, that is if some D(k) is not positive definite; names the node.

        Notes
        -----
        The fill-in of a tree is small, so this too is O(N) in practice, at some thirty times the cost of the sweeps.
        """
        from scipy.sparse.linalg import splu

        ss = self.ss
        riccati(ss, self.observed)  # well-posed if and only if every D(k) > 0: a clear error, or none
        T, xi, eta = self._inputs()
        rhs = np.concatenate([xi, eta, np.where(self.observed, T, 0.0)], axis=-1)
        try:
            answer = splu(self.matrix).solve(rhs.reshape(-1, rhs.shape[-1]).T).T.reshape(rhs.shape)
        except RuntimeError as error:
            raise SingularError(f"the boundary-value problem is singular to working precision: {error}") from error
        x, costate, a = np.split(answer, [ss.n_states, 2 * ss.n_states], axis=-1)
        a = np.where(self.observed, a, 0.0)  # locked: exactly
        return BoundaryValueSolution(ss.state_blocks(x.copy()), ss.state_blocks(costate.copy()), a)

    def sweep(self) -> BoundaryValueSolution:
        """Solve by the sweep method, x = z + P λ (R86 8.1): one filter gather, one smoother scatter, O(N)."""
        from kfdyn.estimation import Operators, bryson_frazier, kalman_filter

        ss = self.ss
        filt = kalman_filter(ss, self.T)
        smooth = bryson_frazier(ss, filt, covariances=False)
        x = filt.z.flat + Operators(filt.covariances).P.forward(smooth.costate.flat)
        return BoundaryValueSolution(ss.state_blocks(x), smooth.costate, smooth.a)

    def residual(
        self, x: Blocks | ArrayLike | None = None, costate: Blocks | ArrayLike | None = None, a: ArrayLike | None = None
    ) -> BoundaryValueResidual:
        """Put a solution into the equations.

        Parameters
        ----------
        x, costate : Blocks or array (..., Σn_k), optional
            States and co-states. If not given they are made from ``a`` by (6.1)-(6.4), which is inverse
            dynamics; then only (6.5) is at stake.
        a : array (..., Σm_k)
            Joint accelerations: the answer of any forward dynamics.

        Returns
        -------
        BoundaryValueResidual
            max |left − right| of each equation over the largest of its terms; batch axes are kept. An acceleration
            where T is NaN counts against (6.5), relative to the accelerations of (6.4).

        Examples
        --------
        >>> import kfdyn as kf
        >>> problem = BoundaryValueProblem(kf.StateSpace([-1], [None], [[[2.0]]], [[[1.0]]]), [4.0])
        >>> problem.residual(a=[1.0]).output, problem.residual(a=[1.5]).output
        (array(0.), array(0.33333333))
        """
        from kfdyn.estimation import Operators

        ss = self.ss
        if a is None:
            raise ShapeError("residual needs the joint accelerations a, shape (..., Σm_k)")
        op, (T, xi, eta) = Operators(ss), self._inputs()
        accel = ss.check_outputs(a, "a")
        pushed = op.H.H.forward(accel)
        lam = op.phi.H.forward(pushed + eta) if costate is None else _flat(ss, costate, "costate")
        inertial = op.Q.forward(lam)
        force = op.phi.forward(inertial + xi) if x is None else _flat(ss, x, "x")
        seen = self.observed
        measured = [np.where(seen, u, 0.0) for u in (T, -op.H.forward(force), -op.R.forward(accel))]
        dynamic = (force, -op.E_phi.forward(force), -inertial, -xi)
        kinematic = (lam, -op.E_phi.H.forward(lam), -pushed, -eta)
        locked = op.H.H.forward(np.where(seen, 0.0, accel))  # should be 0, and is no force: judged as an acceleration
        return BoundaryValueResidual(
            _relative(sum(dynamic), *dynamic),
            _relative(sum(kinematic), *kinematic),
            np.asarray(np.maximum(_relative(sum(measured), *measured), _relative(locked, *kinematic))),
        )

    def _inputs(self) -> tuple[Array, Array, Array]:
        """T, ξ and η, broadcast to one batch."""
        zero = np.zeros(self.ss.n_states)
        xi, eta = (zero if u is None else u for u in (self.ss.xi, self.ss.eta))
        lead = np.broadcast_shapes(self.T.shape[:-1], xi.shape[:-1], eta.shape[:-1])
        T, xi, eta = (np.broadcast_to(u, (*lead, u.shape[-1])) for u in (self.T, xi, eta))
        return T, xi, eta


def _sparse(blocks: Blocks, row: NDArray[np.int64], col: NDArray[np.int64], shape: tuple[int, int]) -> Any:
    """The blocks at the given places of a sparse matrix."""
    from scipy.sparse import coo_array

    blocks = blocks.packed()
    assert blocks.cols is not None
    node = np.repeat(np.arange(len(blocks)), blocks.rows * blocks.cols)
    within = np.arange(blocks.flat.size) - blocks.offsets[node]
    i, j = np.divmod(within, np.maximum(blocks.cols[node], 1))
    return coo_array((blocks.flat, (row[node] + i, col[node] + j)), shape=shape)


def _flat(ss: StateSpace, value: Blocks | ArrayLike, name: str) -> Array:
    return ss.check_states(value.flat if isinstance(value, Blocks) else value, name)


def _relative(error: ArrayLike, *terms: Array) -> Array:
    """max |error| over max |term| along the last axis, 0 where all terms are 0."""
    size = np.abs(np.stack(np.broadcast_arrays(*terms))).max(axis=(0, -1), initial=0.0, keepdims=True)[0, ..., 0]
    worst = np.abs(error).max(axis=-1, initial=0.0)
    return np.divide(worst, size, out=np.zeros(np.broadcast_shapes(worst.shape, size.shape)), where=size > 0)
