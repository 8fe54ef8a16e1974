"""Cut joints: a loop is cut, and closed again by a Kalman update of the accelerations of the tree.

    Ω = J𝓜⁻¹J*,     a ← a + 𝓜⁻¹J*(Ω + R)⁻¹(c − Ja)                    SKO "cut-joint", THEORY section 12

a ~ N(·, 𝓜⁻¹) is what forward dynamics knows without the loop, c = −J̇v what the loop reports about it: R = 0 is a
rigid loop, R > 0 one that gives way, as MuJoCo's equality constraints do. Ω and 𝓜⁻¹J* come from the filter: a row of a
loop is a force, filtered to the world and smoothed back (``recursions/cut_joint.py``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.dynamics.forward import forward_dynamics
from kfdyn.dynamics.mass_matrix_inverse import mass_matrix_inverse
from kfdyn.dynamics.solving.batched_cholesky import solve_positive, solve_semidefinite
from kfdyn.dynamics.solving.forest import States
from kfdyn.errors import ModelError, SingularError
from kfdyn.multibody import System, kinetic_energy
from kfdyn.multibody.calls.arguments import expect_finite
from kfdyn.multibody.calls.kernel import FINE, Kernel
from kfdyn.multibody.kinds import expect_loops
from kfdyn.multibody.loops.closure import Ranked, column_units, gaps, loop_slices, row_units, rows_that_hold_positions
from kfdyn.multibody.loops.loop_tables import LoopReadings, loop_readings, loop_tables
from kfdyn.multibody.parts.body import as_floats

LOOP_RESPONSES = Kernel("kfdyn.dynamics.recursions.cut_joint", "LOOP_RESPONSES")


def responses(system: System, q: Array, read: LoopReadings) -> tuple[Array, Array, Array]:
    """Ω (B, r, r) of all rows, what its diagonal (B, r) is made of before anything cancels, and J𝓜⁻¹ (B, r, nv).

    With couplings or bodies that bend, or where a hinge has so little inertia that the lanes do not decide, by 𝓜⁻¹,
    which finds the words.
    """
    tables = loop_tables(system)
    rows, base = tables.of[0], system.without_loops
    if base.kind in LOOP_RESPONSES.variants:
        out = np.empty((len(q), rows, rows)), np.empty((len(q), rows)), np.empty((len(q), rows, system.nv))
        if LOOP_RESPONSES(base, len(q), *tables.of, q, tables.ends, *out) == FINE:
            return out
    inverse = mass_matrix_inverse(base, q)
    response = read.J @ inverse
    Omega = response @ np.swapaxes(read.J, -1, -2)
    X = base.expansion(q)
    variance = ((X @ inverse) * X).sum(-1)
    made_of = (read.made_of @ variance[..., None])[..., 0]
    return 0.5 * (Omega + np.swapaxes(Omega, -1, -2)), made_of, response


# Eigenvalues of the scaled Ω + R below this are zero: they are squares, and rounding leaves some 1e-15 of them.
RANK = 1e-12
# Pivots of it beyond this leave ten digits to what is solved with it.
REGULAR = 1e-6
# What dependent rows may ask for differently, as part of what they ask for.
CONSISTENT = 1e-6


class CutJoint(NamedTuple):
    """Accelerations and forces of a system whose loops were cut and closed again.

    Attributes
    ----------
    a : (..., nv)
        Accelerations.
    forces : list of (..., r)
        Of each loop's rows, as they act on frame_b, in the axes of frame_a.
    compliance : (..., Σr, Σr)
        Ω = J𝓜⁻¹J* (+ R) of all rows.
    rank : (...) of int
        How many rows are independent.

    Examples
    --------
    A bob held by a contact in the direction of its only freedom:

    >>> import kfdyn as kf
    >>> held = kf.models.pendulum(mass=2.0).with_loops([kf.Loop(None, "bob", rows=(1,))])
    >>> found = cut_joint(held, [0.5], None, [3.0])
    >>> found.a.round(12) + 0.0, int(found.rank)
    (array([0.]), 1)
    """

    a: Array
    forces: list[Array]
    compliance: Array
    rank: NDArray[np.int64]

    def force_covariance(self) -> Array:
        """Covariance Ω⁺ (..., Σr, Σr) of the forces when the generalised forces have covariance 𝓜."""
        values, vectors = np.linalg.eigh(self.compliance)
        count = values.shape[-1]
        kept = np.arange(count) >= count - self.rank[..., None]
        weights = np.divide(1.0, values, out=np.zeros_like(values), where=kept)
        return np.asarray((vectors * weights[..., None, :]) @ np.swapaxes(vectors, -1, -2))


class Cut:
    """The rows of a system's loops in given states, and what they do to the system they were cut from.

    Parameters
    ----------
    system : System
        With loops.
    q, v : (B, nq), (B, nv) or None
        States; no v is at rest.
    positions_only : bool
        Leave out loops that hold rates alone.
    """

    def __init__(self, system: System, q: Array, v: Array | None = None, positions_only: bool = False) -> None:
        self.system, self.base, self.size = system, system.without_loops, len(q)
        self.held = rows_that_hold_positions(system)
        self.rows = slice(None) if not positions_only or self.held.all() else self.held
        self.move(q, v)
        self._ranked: Ranked | None = None
        self.regular = False  # until some solution found it so
        Omega, made_of, response = responses(system, q, self.read)
        self.Omega, self.W = Omega[:, self.rows][:, :, self.rows], np.swapaxes(response, -1, -2)[..., self.rows]
        self.scale = np.sqrt(np.where(made_of > 0, made_of, 1.0))[:, self.rows]

    def move(self, q: Array, v: Array | None) -> None:
        """Take the rows in other states; Ω and 𝓜⁻¹J* stay as they were, for states that are near."""
        self.q, self.v = q, v
        self.read = loop_readings(self.system, q, v)
        self.J, self.drift = self.read.J[:, self.rows], self.read.drift[:, self.rows]

    def gap(self) -> Array:
        """Return the gaps of the loops that hold positions, (B, Σr); zero for the others."""
        gap = np.where(self.held, self.read.gap, 0.0)
        if np.isnan(gap).any():
            gap[:, self.held] = np.concatenate(gaps(self.system, self.q), axis=-1)
        return gap[:, self.rows]

    def of_rates(self, v: Array) -> Array:
        """J v (B, Σr)."""
        return (self.J @ v[..., None])[..., 0]

    def of_accelerations(self, a: Array) -> Array:
        """J a + J̇v (B, Σr)."""
        return self.of_rates(a) + self.drift

    def magnitude(self, a: Array) -> Array:
        """Return a bound of rows in units of ``scale`` (B,): |J̇v| and, since Ω ≤ 1 in these units, √(a*𝓜a)."""
        return np.asarray((np.abs(self.drift) / self.scale).max(axis=-1, initial=0.0) + self.norm(a))

    def norm(self, a: Array) -> Array:
        """√(a*𝓜a) (B,); in units of a power of two of its own, since a square may be no double where a is one."""
        unit = np.ldexp(1.0, np.frexp(np.abs(a).max(axis=-1, initial=0.0))[1] - 1)
        return np.asarray(unit * np.sqrt(2 * np.abs(kinetic_energy(self.base, self.q, a / unit[..., None]))))

    def response(self, f: Array) -> Array:
        """𝓜⁻¹J*f (B, nv): the accelerations that forces f (B, Σr) cause."""
        return (self.W @ f[..., None])[..., 0]

    @property
    def ranked(self) -> Ranked:
        """The number of independent rows, where this was first asked."""
        if self._ranked is None:
            column = column_units(self.system, self.q, self.read)
            self._ranked = Ranked.of(self.J, row_units(self.system)[self.rows], column)
        return self._ranked

    def independent(self) -> tuple[Array, Array]:
        """Combinations C (B, k, Σr) of rows that say all, and their CΩC* (B, k, k); 1 for those that are none."""
        C = self.ranked.independent()
        Omega = (C @ self.J) @ (self.W @ np.swapaxes(C, -1, -2))
        none = np.logical_not(self.ranked.kept)[..., None] * np.eye(C.shape[1])
        return C, 0.5 * (Omega + np.swapaxes(Omega, -1, -2)) + none

    def expect_consistent(self, reference: Array | None = None) -> None:
        """Refuse dependent rows that ask for different accelerations."""
        if self.regular:
            return
        units, asked = self.ranked, self.drift if reference is None else self.drift - reference
        speed = np.zeros(self.size) if self.v is None else np.abs(units.column * self.v).max(axis=-1, initial=0.0)
        if reference is not None:
            speed = np.maximum(speed, np.sqrt(np.abs(reference / units.row).max(axis=-1, initial=0.0)))
        units.expect_consistent(", ".join(loop.name for loop in self.system.loops), asked, speed)

    def inverse(self) -> Array:
        """A generalised inverse of Ω (B, Σr, Σr), of the rank that the rows have."""
        C, Omega = self.independent()
        return np.asarray(np.swapaxes(C, -1, -2) @ np.linalg.solve(Omega, C))

    def reached(self, b: Array) -> Array:
        """The part of b (B, Σr) that some motion has."""
        return b if self.regular else self.ranked.reached(b)

    def solve(self, b: Array, noise: Array | None = None) -> tuple[Array, Array, NDArray[np.int64]]:
        """Least-norm f with (Ω + R) f = b, what is left of b (B,) in units of ``scale``, and the rank (B,).

        Without R nothing is said to be left: rows that contradict each other are told by :meth:`expect_consistent`.
        """
        count = b.shape[-1]
        scaled = self.Omega / (self.scale[:, :, None] * self.scale[:, None, :])
        if noise is not None:
            scaled = scaled + (noise / self.scale**2)[..., None] * np.eye(count)
        x, fine = solve_positive(scaled, (b / self.scale)[..., None], floor=REGULAR)
        self.regular = bool(fine.all())
        f, left, rank = x[..., 0] / self.scale, np.zeros(self.size), np.full(self.size, count)
        if self.regular:
            return f, left, rank
        rest = ~fine
        if noise is None:
            f[rest], rank[rest] = self._of_rank(b)[rest], self.ranked.rank[rest]
        else:
            own = np.broadcast_to(noise, b.shape)[rest]
            f[rest], left[rest], rank[rest], _ = solve_semidefinite(
                self.Omega[rest], b[rest], self.scale[rest], RANK, own
            )
        return f, left, rank

    def _of_rank(self, b: Array) -> Array:
        """f (B, Σr) by independent combinations of the rows, of least norm in units of ``scale``."""
        C, Omega = self.independent()
        along, Ct = C @ b[..., None], np.swapaxes(C, -1, -2)
        unit = np.sqrt(np.einsum("bii->bi", Omega))[..., None]
        y, fine = solve_positive(Omega / (unit * np.swapaxes(unit, -1, -2)), along / unit)
        if not fine.all():
            raise SingularError(
                f"system {self.system.name!r}: the loops hold some motion that moves next to no inertia, so their "
                "forces are not told; give its bodies mass or the hinges an armature"
            )
        f = (Ct @ (y / unit))[..., 0]
        idle = np.arange(self.J.shape[1]) >= self.ranked.rank[:, None]  # combinations of forces that do nothing
        Z = (self.scale / self.ranked.row)[..., None] * self.ranked.U * idle[:, None]
        Q = np.linalg.qr(Z[..., ::-1])[0] * idle[:, None, ::-1]  # they come first
        scaled = self.scale * f
        return np.asarray((scaled - (Q @ (np.swapaxes(Q, -1, -2) @ scaled[..., None]))[..., 0]) / self.scale)


def cut_joint(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None,
    tau: ArrayLike,
    external_forces: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
    *,
    noise: ArrayLike | None = None,
    reference: ArrayLike | None = None,
) -> CutJoint:
    """Forward dynamics of a system with loops, by a Kalman update of the accelerations without them.

    ::

        Ω = J𝓜⁻¹J*,   f = (Ω + R)⁻¹(c − J a₀),   a = a₀ + 𝓜⁻¹J*f,      c = −J̇v + reference

    Parameters
    ----------
    system : System
        With loops or contacts.
    q, v, tau, external_forces, gravity
        As for :func:`kfdyn.forward_dynamics`.
    noise : (..., Σr), optional
        Measurement noise R of the rows, loop after loop: how far a loop gives way. Zero, a rigid loop, if not given.
    reference : (..., Σr), optional
        Acceleration J a + J̇v that the rows are to have; zero if not given.

    Returns
    -------
    CutJoint
        ``a``, ``forces``, ``compliance``, ``rank``.

    Raises
    ------
    ModelError
        If dependent rows contradict each other; with the residual.

    Notes
    -----
    O(rN + r³) for r rows. Dependent rows are found by the rank of Ω, and share
    their force with the least norm. MuJoCo's ``efc_R`` as noise and ``efc_aref`` as reference give its ``qacc``.
    Source: SKO "cut-joint"; THEORY section 12.

    Examples
    --------
    A pendulum held at its bob by a spring-like measurement falls less than a free one:

    >>> import kfdyn as kf
    >>> held = kf.models.pendulum(length=1.0).with_loops([kf.Loop(None, "bob", rows=(1,))])
    >>> [cut_joint(held, [0.5 * np.pi], None, [0.0], noise=[r]).a.round(3) for r in (0.0, 1.0, 1e9)]
    [array([0.]), array([-4.905]), array([-9.81])]
    """
    expect_loops(system)
    states = States.of(system, q, v, external_forces, gravity, tau=tau)
    state, velocity, force, g = states.part(slice(None))
    cut = Cut(system, state, velocity)
    count = cut.drift.shape[-1]
    R, c = (_of_rows(x, states, count, what) for x, what in ((noise, "noise"), (reference, "reference")))
    if R is not None and (R < 0).any():
        raise ModelError(f"noise must not be negative, got {R.min():.3g}")
    a = forward_dynamics(cut.base, state, velocity, states["tau"], force, g)
    f = np.zeros((states.size, count))
    for turn in range(2):  # the second for what rounding left, where rows are nearly dependent
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused, with words
            rows = cut.of_accelerations(a)
            off = -rows if c is None else c - rows
            if R is not None:
                off = off - R * f
            expect_finite(system, off, "the acceleration of a loop", **states.arrays)
            more, left, rank = cut.solve(off, R)
            if turn == 0 and R is None:
                cut.expect_consistent(c)
            elif turn == 0 and left.any():
                _refuse_contradiction(system, left, cut.magnitude(a))
            f, a = f + more, a + cut.response(more)
        expect_finite(system, a, "the acceleration", **states.arrays)
        expect_finite(system, f, "the force of a loop", **states.arrays)
        if cut.regular:
            break
    lead = states.lead
    forces = [f[:, own].reshape(*lead, own.stop - own.start) for own in loop_slices(system)]
    Omega = cut.Omega if R is None else cut.Omega + R[..., None] * np.eye(count)
    return CutJoint(a.reshape(*lead, system.nv), forces, Omega.reshape(*lead, count, count), rank.reshape(lead))


def _of_rows(x: ArrayLike | None, states: States, count: int, what: str) -> Array | None:
    if x is None:
        return None
    try:
        return np.broadcast_to(as_floats(x, what), (*states.lead, count)).reshape(states.size, count)
    except ValueError:
        raise ModelError(f"{what} must have one number for each of the {count} rows, got {np.shape(x)}") from None


def _refuse_contradiction(system: System, left: Array, size: Array) -> None:
    worst = int(np.argmax(left - CONSISTENT * size))
    if left[worst] > CONSISTENT * size[worst]:
        names = ", ".join(loop.name for loop in system.loops)
        raise ModelError(
            f"the rows of loops {names} contradict each other: {left[worst]:.3g} of {size[worst]:.3g} (accelerations, "
            "in units of their deviation) is left whatever the forces are; bring q and v onto the loops first "
            "(kf.assemble, kf.impact), or leave rows out"
        )
