"""Results of the Bryson–Frazier smoother, and the smoother itself where no state is flat."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from kfdyn.errors import ModelError
from kfdyn.estimation.inference.batching import count_rows
from kfdyn.estimation.inference.filter_sweep import sweep_back
from kfdyn.estimation.inference.filtered import STORED_NUMBERS, Filtered
from kfdyn.estimation.inference.square_root import RootRiccati
from kfdyn.estimation.model.blocks import Blocks, FloatArray
from kfdyn.estimation.model.state_space import StateSpace


@dataclass(frozen=True, eq=False)
class Smoothed:
    """The smoother's results. Letters are THEORY.md's; the words of estimation are properties.

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
        _, plus, costate, x = sweep_back(filt.covariances, filt.nu, filt.eta, filt.z_plus.flat)
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


def smoothed(filt: Filtered, covariances: bool) -> Smoothed:
    """Smooth what the filter of a model without flat states has found."""
    ss = filt.ss
    small = ss.n_states * count_rows(filt.nu.shape[:-1]) <= STORED_NUMBERS
    a, *states = sweep_back(filt.covariances, filt.nu, filt.eta, filt.z_plus.flat if small else None)
    smooth = Smoothed(filt, a, covariances)
    if small:
        states[2] = _by_roots(filt, states[2], covariances)
        smooth.__dict__["_states"] = tuple(ss.state_blocks(flat) for flat in states)
    if covariances:
        _ = filt.covariances.smoothed
    return smooth


def _by_roots(filt: Filtered, x: FloatArray, covariances: bool) -> FloatArray:
    """x̂ as it is, or by arrays where the filter had roots: z⁺ + P⁺λ⁺ cancels however good the filter is."""
    cov = filt.covariances
    if not isinstance(cov, RootRiccati):
        return x
    if covariances:
        _ = cov.smoothed  # by the same reflections
    return cov.smooth_states(filt.z.flat, filt.z_plus.flat)
