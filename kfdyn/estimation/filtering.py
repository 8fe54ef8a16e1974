"""The Kalman filter on a tree: one gather from the leaves to the roots."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import ModelError, ShapeError
from kfdyn.estimation.blocks import Blocks, FloatArray
from kfdyn.estimation.lost_digits import warn_of_lost_digits
from kfdyn.estimation.overflow import expect_finite_blocks, finite_likelihood, sum_is_finite
from kfdyn.estimation.riccati import BoolArray, Method, Riccati, riccati
from kfdyn.estimation.state_space import StateSpace
from kfdyn.estimation.sweeps import as_rows, count_rows, over_rows, step_of

#: Results with more numbers than this are not stored on the way but swept again when asked for.
STORED_NUMBERS = 2**22
_LOG_2PI = float(np.log(2.0 * np.pi))
_NOTHING = np.empty(0)
_NOTHING.flags.writeable = False


@dataclass(frozen=True, eq=False)
class Filtered:
    """What the filter knows. Letters are THEORY.md's; the words of estimation are properties.

    Attributes
    ----------
    ss : StateSpace
        The model.
    covariances : Riccati
        P, P⁺, D, G: the part that does not depend on T.
    T : ndarray, shape (..., Σm_k)
        The measurements, NaN where missing.
    xi, eta : ndarray, shape (..., Σn_k), or None
        The known inputs that were used.
    eps : ndarray, shape (..., Σm_k)
        Innovations ε = T − H z; 0 where T is missing.
    nu : ndarray, shape (..., Σm_k)
        Residuals ν = D⁻¹ ε; 0 where T is missing.

    Examples
    --------
    A level measured twice with variance 1, prior variance 2, no drift. The first measurement moves the estimate to 2:

    >>> import kfdyn as kf
    >>> one = [[1.0]]
    >>> ss = kf.StateSpace.chain(one, one, [[0.0]], one, x0=[0.0], P0=[[2.0]], steps=2)
    >>> filt = kf.kalman_filter(ss, [3.0, 4.0])
    >>> filt.z_plus[0].round(9), filt.P_plus[0].round(6), filt.eps
    (array([2.]), array([[0.666667]]), array([3., 2.]))
    """

    def __repr__(self) -> str:
        batch = self.T.shape[:-1]
        missing = f", {int((~self.observed).sum())} missing" if not self.observed.all() else ""
        llf = f"a batch {batch}"
        if not batch:
            try:
                llf = f"llf {float(self.llf):.6g}"
            except ModelError:
                llf = "llf beyond a double"
        return f"Filtered({len(self.ss)} nodes, {self.ss.n_outputs} outputs{missing}, {llf})"

    def _repr_html_(self) -> str:
        """The log-likelihood and a few nodes, for a notebook: measurement, innovation and its deviation."""
        from kfdyn.short_tables import html_table, rows_shown, vector

        starts, first = self.ss.arrays.output, (0,) * (self.T.ndim - 1)

        def row(k: int) -> tuple[object, ...]:
            own = slice(int(starts[k]), int(starts[k]) + int(self.ss.m[k]))
            deviation = self.D[k].diagonal() ** 0.5
            return self.ss.tree.label(k), vector(self.T[first][own]), vector(self.eps[first][own]), vector(deviation)

        title = repr(self) + (": the first of the batch" if first else "")
        return html_table(title, ("node", "T", "ε", "√D"), rows_shown(len(self.ss), row))

    ss: StateSpace
    covariances: Riccati
    T: FloatArray = field(repr=False)
    xi: FloatArray | None = field(repr=False)
    eta: FloatArray | None = field(repr=False)
    eps: FloatArray = field(repr=False)
    nu: FloatArray = field(repr=False)

    @property
    def observed(self) -> BoolArray:
        """Which outputs were measured, (Σm_k,)."""
        return self.covariances.observed

    @property
    def P(self) -> Blocks:
        """Prediction covariance P(k), (n_k, n_k)."""
        return self.covariances.P

    @property
    def P_plus(self) -> Blocks:
        """Updated covariance P⁺(k), (n_k, n_k)."""
        return self.covariances.P_plus

    @property
    def D(self) -> Blocks:
        """Innovations covariance D(k), (m_k, m_k)."""
        return self.covariances.D

    @property
    def G(self) -> Blocks:
        """Kalman gain G(k), (n_k, m_k)."""
        return self.covariances.G

    @property
    def K(self) -> Blocks:
        """Gain on the parent K(k) = φ(p,k) G(k), (n_parent, m_k)."""
        return self.covariances.K

    @cached_property
    def _states(self) -> tuple[Blocks, Blocks]:
        _, _, z, z_plus = sweep(self.covariances, self.T, self.xi, self.eta, states=True)
        return self.ss.state_blocks(z), self.ss.state_blocks(z_plus)

    @property
    def z(self) -> Blocks:
        """Predicted state z(k), (..., n_k): from all outputs outboard of k, its own excluded."""
        return self._states[0]

    @property
    def z_plus(self) -> Blocks:
        """Updated state z⁺(k), (..., n_k): its own output included."""
        return self._states[1]

    @cached_property
    def eps_centered(self) -> FloatArray:
        """Innovations with mean zero, ε − HPφ*η: these are white, with covariance D, for any η (THEORY section 3)."""
        if self.eta is None:
            return self.eps
        from kfdyn.estimation.operators import Operators

        op = Operators(self.covariances)
        rows = self.eta.reshape(-1, self.ss.n_states)
        mean = (op.H @ op.P @ op.phi.H).forward(rows).reshape(*self.eta.shape[:-1], self.ss.n_outputs)
        return np.where(self.observed, self.eps - mean, 0.0)

    @cached_property
    def nu_centered(self) -> FloatArray:
        """D⁻¹ of :attr:`eps_centered`."""
        if self.eta is None:
            return self.nu
        from kfdyn.estimation.factor import solve_D

        return solve_D(self.covariances, self.eps_centered)

    @cached_property
    def llf(self) -> float | FloatArray:
        """Log-likelihood of T, −½ Σ(log 2π + log det D + ε*D⁻¹ε) over what was observed; one for each batch entry.

        With η ≠ 0 the centred innovations are used. O(N) (SKO "determinant"; THEORY section 4).
        """
        eps, nu = (self.eps, self.nu) if self.eta is None else (self.eps_centered, self.nu_centered)
        # neither of the two warns of an overflow, which is told below
        quadratic = np.vdot(eps, nu) if eps.ndim == 1 else np.einsum("...i,...i->...", eps, nu)
        constant = np.count_nonzero(self.observed) * _LOG_2PI + self.covariances.logdet
        return finite_likelihood(-0.5 * (constant + quadratic))

    @property
    def predicted_state(self) -> Blocks:
        """The word for :attr:`z`."""
        return self.z

    @property
    def predicted_state_cov(self) -> Blocks:
        """The word for :attr:`P`."""
        return self.P

    @property
    def filtered_state(self) -> Blocks:
        """The word for :attr:`z_plus`."""
        return self.z_plus

    @property
    def filtered_state_cov(self) -> Blocks:
        """The word for :attr:`P_plus`."""
        return self.P_plus

    @property
    def kalman_gain(self) -> Blocks:
        """The word for :attr:`G`."""
        return self.G

    @property
    def innovations(self) -> FloatArray:
        """The word for :attr:`eps`."""
        return self.eps

    @property
    def innovations_cov(self) -> Blocks:
        """The word for :attr:`D`."""
        return self.D


def kalman_filter(
    ss: StateSpace,
    T: ArrayLike,
    xi: ArrayLike | None = None,
    eta: ArrayLike | None = None,
    *,
    method: Method = "block",
) -> Filtered:
    """Run the Kalman filter from the leaves to the roots of a tree.

    ::

        z(k)  = Σ_j φ(k,j) z⁺(j) + ξ(k)
        ε(k)  = T − H z,     ν = D⁻¹ ε
        z⁺(k) = z + G ε + P⁺ η(k)

    Parameters
    ----------
    ss : StateSpace
        The model.
    T : array, shape (..., Σm_k)
        Measurements, stacked node by node in node order; NaN marks a missing one (the same ones in every batch
        entry).
    xi, eta : array, shape (..., Σn_k), optional
        Known inputs; these replace the model's own. Batch axes broadcast against those of T.
    method : {"block", "univariate", "square_root"}
        How a vector measurement is processed; same answers. "square_root" keeps its digits where variances differ by
        more than 1e10.

    Returns
    -------
    Filtered
        P, P⁺, D, G, K, z, z⁺, ε, ν and the log-likelihood. Of a model with flat states a FlatFiltered, in which finite
        and infinite parts of a covariance are kept apart.

    Raises
    ------
    SingularError
        If some D(k) is not positive definite.
    ShapeError, ModelError
        If an input has the wrong shape or is not finite.

    Notes
    -----
    Covariances are computed once for each model (and pattern of missing measurements): 3n³ + O(n²m) flops a node;
    each vector then costs 2n² + O(nm) a node. Sources: R86 (8.2)–(8.9), (9.4)–(9.12); ATBI "predict-update".

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> ss = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)))
    >>> filt = kf.kalman_filter(ss, [1.0, 3.0])
    >>> filt.eps
    array([1., 2.])
    >>> filt.z_plus[1]
    array([3.])
    """
    measured, finite = ss.checked_outputs(T, "T", allow_nan=True)
    measured = _owned(T, measured)
    seen = None if finite else _pattern(ss, measured)
    known = (
        _nonzero(ss.xi if xi is None else _owned(xi, ss.check_states(xi, "xi"))),
        _nonzero(ss.eta if eta is None else _owned(eta, ss.check_states(eta, "eta"))),
    )
    if ss.flat is not None:
        from kfdyn.estimation.flat.filtering import flat_filter

        return flat_filter(ss, measured, known[0], known[1], method)  # type: ignore[return-value]
    covariances = riccati(ss, seen, method)
    if method != "square_root" and "loss" not in covariances.__dict__:  # nobody has looked yet
        warn_of_lost_digits(covariances, level=2)
    batch = _batch(measured, *known)
    small = ss.n_states * count_rows(batch) <= STORED_NUMBERS
    eps, nu, z, z_plus = sweep(covariances, measured, known[0], known[1], states=small)
    filt = Filtered(ss, covariances, measured, known[0], known[1], eps, nu)
    if small:
        filt.__dict__["_states"] = (ss.state_blocks(z), ss.state_blocks(z_plus))
    return filt


def _owned(given: ArrayLike, array: FloatArray) -> FloatArray:
    """The array, copied if it is the caller's memory: he may reuse it before a later sweep reads it."""
    if given is array:
        return array.copy()
    fresh = isinstance(given, list | tuple) or (isinstance(given, np.ndarray) and not np.may_share_memory(given, array))
    return array if fresh else array.copy()


def _nonzero(u: FloatArray | None) -> FloatArray | None:
    """A known input, or None for zeros; but zeros may carry batch axes."""
    return None if u is None or (u.ndim == 1 and not np.count_nonzero(u)) else u


def _pattern(ss: StateSpace, T: FloatArray) -> BoolArray | None:
    """Which outputs are measured, None for all: the same in every batch entry, or an error."""
    missing = np.isnan(T)
    if not missing.any():
        return None
    missing = missing.reshape(-1, T.shape[-1])
    if not (missing == missing[0]).all():
        at = int(np.flatnonzero((missing != missing[0]).any(axis=0))[0])
        node = int(np.searchsorted(ss.arrays.output, at, side="right")) - 1
        raise ShapeError(
            f"output {at} ({ss.tree.label(node)}) is missing in some batch entries of T and present in others; "
            "one call takes one pattern of missing measurements: group the entries by pattern, or call smooth_batch"
        )
    return ~missing[0]


def _batch(*arrays: FloatArray | None) -> tuple[int, ...]:
    if all(a is None or a.ndim == 1 for a in arrays):
        return ()
    try:
        return np.broadcast_shapes(*(a.shape[:-1] for a in arrays if a is not None))
    except ValueError as error:
        shapes = ", ".join(f"{name} {a.shape}" for name, a in zip(("T", "xi", "eta"), arrays) if a is not None)
        raise ShapeError(f"the batch axes do not broadcast: {shapes} (the last axis is the stacked one)") from error


@cache
def _gather() -> Any:
    """The module of the gather: an import at each call would take as long as a short filter."""
    from kfdyn.estimation.recursions import states

    return states


def sweep(
    cov: Riccati, T: FloatArray, xi: FloatArray | None, eta: FloatArray | None, *, states: bool
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """ε, ν, z, z⁺ of a batch; z and z⁺ are empty unless asked for."""
    gather, ss = _gather(), cov.ss
    batch = _batch(T, xi, eta)
    rows = count_rows(batch)
    T_rows = as_rows(T if T.shape[:-1] == batch else np.broadcast_to(T, (*batch, ss.n_outputs)))
    xi_rows = _NOTHING if xi is None else as_rows(xi, batch)
    eta_rows = _NOTHING if eta is None else as_rows(eta, batch)
    size = rows * ss.n_outputs
    stored = rows * ss.n_states if states else 0
    found = np.empty(2 * (size + stored))  # in one buffer, so that one look tells whether all is finite
    eps, nu = found[:size], found[size : 2 * size]
    z, z_plus = found[2 * size : 2 * size + stored], found[2 * size + stored :]
    xi_step = -1 if xi is None else step_of(xi_rows, ss.n_states, rows)
    eta_step = -1 if eta is None else step_of(eta_rows, ss.n_states, rows)
    swept = gather.FilteredRows(T_rows, xi_rows, eta_rows, xi_step, eta_step, int(states), eps, nu, z, z_plus)
    work = gather.filter_work(ss.n_states, ss.n_outputs, ss.common.most_states)
    over_rows(
        rows,
        lambda lanes, first, last: gather.filter_states(
            lanes, cov.sizes, ss.address, cov.flats, swept, first, last, np.empty(lanes * work)
        ),
    )
    finite = sum_is_finite(found)
    if batch or not states:
        outputs, inner = (*batch, ss.n_outputs), (*(batch if states else (0,)), ss.n_states)
        eps, nu, z, z_plus = eps.reshape(outputs), nu.reshape(outputs), z.reshape(inner), z_plus.reshape(inner)
    if not finite:
        expect_finite_blocks(ss.tree, "z⁺", ss.state_blocks(z_plus), ss.tree.order)
        expect_finite_blocks(ss.tree, "ν", ss.output_blocks(nu), ss.tree.order)
    return eps, nu, z, z_plus
