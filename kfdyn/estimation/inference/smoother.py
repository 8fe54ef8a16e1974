"""The Bryson–Frazier smoother on a tree: one scatter from the roots to the leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.estimation.inference.batching import as_rows, count_rows, over_rows, step_of
from kfdyn.estimation.inference.filter import STORED_NUMBERS
from kfdyn.estimation.inference.filtered import Filtered, expect_filtered
from kfdyn.estimation.inference.riccati import Riccati
from kfdyn.estimation.model.blocks import Blocks, FloatArray
from kfdyn.estimation.model.overflow import expect_finite_blocks
from kfdyn.estimation.model.state_space import StateSpace


@dataclass(frozen=True, eq=False)
class Smoothed:
    """What the smoother knows. Letters are THEORY.md's; the words of estimation are properties.

    Attributes
    ----------
    filt : Filtered
        The filter's results.
    a : ndarray, shape (..., Σm_k)
        Output co-state a = 𝓜⁻¹(T − bias), 0 where T is missing. In dynamics: the joint acceleration.
    with_covariances : bool
        Whether Λ and S were asked for.

    Examples
    --------
    A level that does not drift is the same at both times, smoothed; the filter's first estimate was 2.

    >>> import kfdyn as kf
    >>> one = [[1.0]]
    >>> ss = kf.StateSpace.chain(one, one, [[0.0]], one, x0=[0.0], P0=[[2.0]], steps=2)
    >>> smooth = kf.bryson_frazier(ss, kf.kalman_filter(ss, [3.0, 4.0]))
    >>> smooth.x.flat.round(9), smooth.S.flat.round(9)
    (array([2.8, 2.8]), array([0.4, 0.4]))
    """

    def __repr__(self) -> str:
        batch = self.a.shape[:-1]
        size = f", a batch {batch}" if batch else ""
        told = "with covariances" if self.with_covariances else "without covariances"
        return f"{type(self).__name__}({len(self.ss)} nodes, {self.ss.n_states} states{size}, {told})"

    def _repr_html_(self) -> str:
        """A few nodes, for a notebook: smoothed state, its deviation if known, output co-state."""
        from kfdyn.short_tables import html_table, rows_shown, vector

        starts, first = self.ss.arrays.output, (0,) * (self.a.ndim - 1)

        def row(k: int) -> tuple[object, ...]:
            own = slice(int(starts[k]), int(starts[k]) + int(self.ss.m[k]))
            deviation = (vector(self.S[k].diagonal().clip(0.0) ** 0.5),) if self.with_covariances else ()
            return self.ss.tree.label(k), vector(self.x[k][first]), *deviation, vector(self.a[first][own])

        head = ("node", "x̂", *(("√S",) if self.with_covariances else ()), "a")
        title = repr(self) + (": the first of the batch" if first else "")
        return html_table(title, head, rows_shown(len(self.ss), row))

    filt: Filtered = field(repr=False)
    a: FloatArray = field(repr=False)
    with_covariances: bool = True

    @property
    def ss(self) -> StateSpace:
        """The model."""
        return self.filt.ss

    @cached_property
    def _states(self) -> tuple[Blocks, Blocks, Blocks]:
        filt = self.filt
        _, plus, costate, x = sweep(filt.covariances, filt.nu, filt.eta, filt.z_plus.flat)
        x = _by_roots(filt, x, self.with_covariances)
        return self.ss.state_blocks(plus), self.ss.state_blocks(costate), self.ss.state_blocks(x)

    @property
    def costate_plus(self) -> Blocks:
        """λ⁺(k) = φ*(p,k) λ(p), (..., n_k); 0 at a root."""
        return self._states[0]

    @property
    def costate(self) -> Blocks:
        """λ(k) = λ⁺ + η + H*a, (..., n_k)."""
        return self._states[1]

    @property
    def x(self) -> Blocks:
        """Smoothed state x̂(k) = z⁺ + P⁺ λ⁺, (..., n_k): the mean of x given every measurement."""
        return self._states[2]

    @property
    def Lambda(self) -> Blocks:
        """Covariance Λ(k) of the co-state λ(k), (n_k, n_k): Υ of PART."""
        self._expect_covariances()
        return self.filt.covariances.smoothed.Lambda

    @property
    def S(self) -> Blocks:
        """Covariance S(k) = P⁺ − P⁺Λ⁺P⁺ of the smoothed error, (n_k, n_k)."""
        self._expect_covariances()
        return self.filt.covariances.smoothed.S

    def _expect_covariances(self) -> None:
        if not self.with_covariances:
            raise ModelError("the covariances were switched off; call bryson_frazier with covariances=True")

    @property
    def smoothed_state(self) -> Blocks:
        """The word for :attr:`x`."""
        return self.x

    @property
    def smoothed_state_cov(self) -> Blocks:
        """The word for :attr:`S`."""
        return self.S

    @property
    def costate_cov(self) -> Blocks:
        """The word for :attr:`Lambda`."""
        return self.Lambda


def bryson_frazier(ss: StateSpace | Filtered, filt: Filtered | None = None, covariances: bool = True) -> Smoothed:
    """Run the Bryson–Frazier smoother from the roots to the leaves of a tree.

    ::

        λ⁺(k) = φ*(p(k),k) λ(p(k))         (0 at a root)
        a(k)  = ν − G*(λ⁺ + η)
        λ(k)  = λ⁺ + η + H* a
        x̂(k)  = z⁺ + P⁺ λ⁺
        Λ(k)  = τ̄* Λ⁺ τ̄ + H* D⁻¹ H,   S(k) = P⁺ − P⁺ Λ⁺ P⁺

    No covariance is inverted, so P may be singular (R = 0, Q = 0), where the Rauch–Tung–Striebel smoother fails.

    Parameters
    ----------
    ss : StateSpace
        The model that was filtered; it may be left out, as in ``bryson_frazier(filt)``.
    filt : Filtered
        Result of :func:`kalman_filter` on that model.
    covariances : bool
        Whether to compute Λ and S (about 7n³ flops a node, once for each model).

    Returns
    -------
    Smoothed
        Co-states λ, λ⁺, smoothed states x̂, output co-state a, Λ and S.

    Notes
    -----
    O(N). Stacked, a = 𝓜⁻¹(T − Hφ(ξ + Qφ*η)): forward dynamics is this smoother. Sources: R86 (8.10)–(8.13),
    (9.13)–(9.21).

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> ss = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)))
    >>> smooth = kf.bryson_frazier(kf.kalman_filter(ss, [1.0, 3.0]))
    >>> smooth.a, smooth.x[0]
    (array([-1.,  2.]), array([1.]))
    """
    if not isinstance(ss, StateSpace):
        expect_filtered(ss, "bryson_frazier")
        filt, ss, covariances = ss, ss.ss, covariances if filt is None else bool(filt)
    if filt is None:
        raise ModelError("bryson_frazier smooths what a filter has found: bryson_frazier(kalman_filter(ss, T))")
    expect_filtered(filt, "bryson_frazier")
    if filt.ss is not ss:
        raise ModelError("filt was computed from another model; pass the StateSpace that kalman_filter was given")
    if ss.flat is not None:
        from kfdyn.estimation.flat.smoothing import flat_smoother

        return flat_smoother(filt, covariances)  # type: ignore[arg-type]
    small = ss.n_states * count_rows(filt.nu.shape[:-1]) <= STORED_NUMBERS
    a, *states = sweep(filt.covariances, filt.nu, filt.eta, filt.z_plus.flat if small else None)
    smooth = Smoothed(filt, a, covariances)
    if small:
        states[2] = _by_roots(filt, states[2], covariances)
        smooth.__dict__["_states"] = tuple(ss.state_blocks(flat) for flat in states)
    if covariances:
        _ = filt.covariances.smoothed
    return smooth


def _by_roots(filt: Filtered, x: FloatArray, covariances: bool) -> FloatArray:
    """x̂ as it is, or by arrays where the filter had roots: z⁺ + P⁺λ⁺ cancels however good the filter is."""
    from kfdyn.estimation.inference.square_root import RootRiccati

    cov = filt.covariances
    if not isinstance(cov, RootRiccati):
        return x
    if covariances:
        _ = cov.smoothed  # by the same reflections
    return cov.smooth_states(filt.z.flat, filt.z_plus.flat)


def sweep(
    cov: Riccati, nu: FloatArray, eta: FloatArray | None, z_plus: FloatArray | None
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """a, λ⁺, λ, x̂ of a batch of residuals ν; the last three are empty where the filter's z⁺ is not given."""
    from kfdyn.estimation.recursions.vector_pass import Scatter, SmoothedRows, smooth_costates

    ss = cov.ss
    batch = nu.shape[:-1]
    rows = count_rows(batch)
    nu_rows = as_rows(nu)
    eta_rows = np.empty(0) if eta is None else as_rows(eta, batch)
    z_rows = as_rows(np.empty(0) if z_plus is None else z_plus)
    a = np.empty(nu_rows.size)
    plus, costate, x = (np.empty(z_rows.size) for _ in range(3))
    eta_step = -1 if eta is None else step_of(eta_rows, ss.n_states, rows)
    swept = SmoothedRows(nu_rows, eta_rows, eta_step, int(z_plus is not None), z_rows, a, plus, costate, x)
    over_rows(
        rows,
        Scatter.size(ss.n_states, ss.n_outputs, ss.common.most_states),
        lambda lanes, share: smooth_costates(lanes, cov.sizes, ss.address, cov.flats, swept, share),
    )
    stored = (*((0,) if z_plus is None else batch), ss.n_states)
    result = a.reshape(nu.shape), plus.reshape(stored), costate.reshape(stored), x.reshape(stored)
    for name, flat in (("λ", result[2]), ("x̂", result[3])):
        expect_finite_blocks(ss.tree, name, ss.state_blocks(flat), ss.tree.order[::-1])
    expect_finite_blocks(ss.tree, "a", ss.output_blocks(result[0]), ss.tree.order[::-1])
    return result
