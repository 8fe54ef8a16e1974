"""Derivatives of forward and inverse dynamics: exact, in tangent coordinates, by one more gather."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.dynamics.forward import by_engine as forward_by_engine
from kfdyn.dynamics.mass_matrix_inverse import by_engine as inverse_by_engine
from kfdyn.dynamics.solving.forest import States
from kfdyn.dynamics.solving.kinds import own_way
from kfdyn.dynamics.solving.solver import Solver
from kfdyn.errors import ModelError, ShapeError
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import expect_system, filled, overflow
from kfdyn.multibody.calls.kernel import Answers
from kfdyn.multibody.frame_derivatives import force_derivatives
from kfdyn.multibody.kinds import expect_rigid


class ForwardDerivatives(NamedTuple):
    """``da_dq``, ``da_dv`` and ``da_dtau``: ∂a/∂q, ∂a/∂v and ∂a/∂τ, (..., nv, nv) each.

    Examples
    --------
    >>> import kfdyn as kf
    >>> of = forward_dynamics_derivatives(kf.models.pendulum(length=1.0), [0.0], [0.0], [0.0])
    >>> of.da_dq.round(6)
    array([[-9.81]])
    """

    da_dq: Array
    da_dv: Array
    da_dtau: Array


class InverseDerivatives(NamedTuple):
    """``dtau_dq``, ``dtau_dv`` and ``dtau_da``, (..., nv, nv) each; the last is the mass matrix.

    Examples
    --------
    >>> import kfdyn as kf
    >>> of = inverse_dynamics_derivatives(kf.models.pendulum(length=1.0, mass=2.0), [0.0], [0.0], [0.0])
    >>> of.dtau_dq.round(6), of.dtau_da
    (array([[19.62]]), array([[2.]]))
    """

    dtau_dq: Array
    dtau_dv: Array
    dtau_da: Array


def forward_dynamics_derivatives(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None,
    tau: ArrayLike,
    gravity: ArrayLike | None = None,
    *,
    external_forces: ArrayLike | None = None,
    out: Sequence[Array] | None = None,
) -> ForwardDerivatives:
    """Derivatives of the accelerations a(q, v, τ): what every optimiser of a motion asks for.

    ::

        ∂a/∂q = −𝓜⁻¹ ∂τ/∂q,   ∂a/∂v = −𝓜⁻¹ ∂τ/∂v   at (q, v, a),   ∂a/∂τ = 𝓜⁻¹

    q moves in tangent coordinates: column j is the derivative along ``integrate(system, q, h e_j)`` at h = 0, so that
    quaternions stay unit and every hinge has as many columns as velocities.

    Parameters
    ----------
    system : System
        The robot, with or without couplings, loops and contacts; bodies that bend are refused.
    q, v, tau, gravity
        As for :func:`kfdyn.forward_dynamics`.
    external_forces : (..., n_bodies, 6), optional
        [moment; force] on each body, world orientation, at the body's origin; they stay as they are when q moves.
    out : three (..., nv, nv) arrays of float64, optional
        Where the answer goes, instead of new arrays: an earlier answer, for example. They may overlap arguments, but
        not each other. After an error their numbers mean nothing. For a large batch new memory may take as long as the
        derivatives themselves.

    Returns
    -------
    ForwardDerivatives
        ``da_dq, da_dv, da_dtau``, (..., nv, nv) each: row i is of acceleration i.

    Raises
    ------
    SingularError
        If a hinge has no inertia to move; names the hinge.
    ModelError
        If the system has flexible bodies, or a loop that rolls.

    Notes
    -----
    One filter serves a, 𝓜⁻¹ and every column; between branches an entry is one product of two vectors of six. O(N²).
    Source: Singh, Russell and Wensing, "Efficient analytical derivatives of rigid body dynamics using spatial vector
    algebra", IEEE RA-L 7 (2022); THEORY sections 4 and 16. With couplings: −(X*𝓜X)⁻¹X*(∂τ/∂q)X with the open tree's
    ∂τ/∂q at (X q + offset, X v, X a), and one dense factor of X*𝓜X; where hinges follow functions, derivatives of X
    are beside them. With loops, whose rows J have forces f::

        ∂a = −𝓜c⁻¹ (∂τ − ∂(J*f)) − 𝓜⁻¹J*Ω⁺ ∂(Ja + J̇v),   𝓜c⁻¹ = X(X*𝓜X)⁻¹X*,   Ω = J𝓜⁻¹J*

    They are of the function :func:`forward_dynamics`, which takes q and v as they come. Where rows are dependent this
    function is smooth along motions that the loops allow alone, and so are its derivatives true.

    Examples
    --------
    Without gravity and at rest nothing pulls a pendulum back, and damping it is nobody's affair:

    >>> import kfdyn as kf
    >>> arm = kf.models.double_pendulum()
    >>> da_dq, da_dv, da_dtau = forward_dynamics_derivatives(arm, [0.3, 0.1], None, [0.0, 0.0], gravity=[0, 0, 0])
    >>> bool((da_dq == 0).all() and (da_dv == 0).all())
    True
    >>> bool(np.allclose(da_dtau, kf.mass_matrix_inverse(arm, [0.3, 0.1])))
    True
    """
    return ForwardDerivatives._make(FORWARD.of(system, (q, v, tau, gravity), external_forces, out))


def _by_engine(states: States) -> dict[str, Array]:
    """∂a/∂q = −𝓜⁻¹ ∂τ/∂q, ∂a/∂v = −𝓜⁻¹ ∂τ/∂v and 𝓜⁻¹ (size, nv, nv), with 𝓜 as the engine factorises it."""
    from kfdyn.estimation import innovations_factor

    system, nv = states.system, states.system.nv
    q, v, _, gravity = states.part(slice(None))
    (a,) = forward_by_engine(states).values()  # it names hinges without inertia
    dtau_dq, dtau_dv, _ = inverse_dynamics_derivatives(system, q, v, a, gravity)
    right, columns = -np.concatenate([dtau_dq, dtau_dv], axis=-1), np.empty((states.size, nv, 2 * nv))

    def solve(part: slice) -> None:
        size = part.stop - part.start
        stacked = right[part].transpose(2, 0, 1).reshape(2 * nv, size * nv)
        solved = innovations_factor(states.forest(part).ss).solve(stacked)
        columns[part] = solved.reshape(2 * nv, size, nv).transpose(1, 2, 0)

    states.in_parts(solve)
    return {"∂a/∂q": columns[..., :nv], "∂a/∂v": columns[..., nv:], **inverse_by_engine(states)}


def inverse_dynamics_derivatives(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None,
    a: ArrayLike,
    gravity: ArrayLike | None = None,
    *,
    external_forces: ArrayLike | None = None,
    out: Sequence[Array] | None = None,
) -> InverseDerivatives:
    """Derivatives of the generalised forces τ(q, v, a) of inverse dynamics.

    ::

        ∂τ_i/∂q_j = S_i*(2B Ψ̇_j + ℛ Ψ̈_j)              j inboard of i, or i
        ∂τ_j/∂q_i = S_j*(2B Ψ̇_i + ℛ Ψ̈_i + S_i ×* f)   j inboard of i
        ∂τ_i/∂v_j = S_i*(2B S_j + ℛ (Ψ̇_j + Ṡ_j)),   ∂τ_j/∂v_i likewise,   ∂τ/∂a = 𝓜

    with ℛ, B and f of the composite body outboard of i. q moves in tangent coordinates, as in
    :func:`forward_dynamics_derivatives`.

    Parameters
    ----------
    system, q, v, gravity, external_forces, out
        As for :func:`forward_dynamics_derivatives`.
    a : (..., nv)
        Accelerations.

    Returns
    -------
    InverseDerivatives
        ``dtau_dq, dtau_dv, dtau_da``, (..., nv, nv) each: row i is of force i.

    Raises
    ------
    ModelError
        If the system has flexible bodies, or a loop that rolls.

    Notes
    -----
    O(N depth). Source: Singh, Russell and Wensing (2022); THEORY section 16. With couplings, X* and X stand about the
    matrices of the open tree at (X q + offset, X v, X a); where hinges follow functions, with the derivatives of X.
    With loops τ is the least of all forces that cause a, Πτ with Π = 1 − J⁺J, and ∂(Πτ) = Π(∂τ − ∂(J*f)) − J⁺∂(Jx),
    f the forces of the loops and x = Πτ.

    Examples
    --------
    A pendulum that hangs is pulled back by m g l for each radian:

    >>> import kfdyn as kf
    >>> dtau_dq, dtau_dv, M = inverse_dynamics_derivatives(kf.models.pendulum(length=1.0), [0.0], [0.0], [0.0])
    >>> dtau_dq.round(6), dtau_dv.round(6), M
    (array([[9.81]]), array([[0.]]), array([[1.]]))
    """
    return InverseDerivatives._make(INVERSE.of(system, (q, v, a, gravity), external_forces, out))


def _overflown(states: States) -> NoReturn:
    raise overflow(states.system, "a derivative", **states.arrays)


def forces_that_push(states: States) -> tuple[Array, Array]:
    """Return the push of external forces on the coordinates, (size, nv), and its derivatives in q, (size, nv, nv)."""
    system, q, forces = states.system, states["q"], states.arrays.get("external_forces")
    total, slopes = np.zeros((states.size, system.nv)), np.zeros((states.size, system.nv, system.nv))
    if forces is None:
        return total, slopes
    for k in np.flatnonzero(forces.any(axis=(0, 2))):
        torque, turned = force_derivatives(system.without_loops, q, forces[:, k], system.open_tree.body_names[k])
        total += torque
        slopes += turned
    return total, slopes


class _Derivatives(Solver):
    """Three matrices, of which callers may have arrays; a fourth answer is nobody's concern."""

    def of(
        self, system: System, given: tuple[Any, ...], pushed: ArrayLike | None, out: Sequence[Array] | None
    ) -> Sequence[Array]:
        """The matrices."""
        expect_rigid(system, self.quantity)
        expect_system(system)
        if out is None and pushed is None:
            served = self.variants.get(system.kind)
            found = None if served is None else served.one(system, *given)
            if found:
                return found[:3]
        if out is not None and (not hasattr(out, "__len__") or len(out) != 3):
            raise ShapeError(f"out must be three arrays, one for each matrix, got {type(out).__name__}")
        own_derivatives = own_way(system, f"{self.quantity}_of")
        if pushed is None and own_derivatives is None:
            return self.rows(system, given, out)[:3]
        q, v, last, gravity = given
        states = States.of(system, q, v, pushed, gravity, **{"tau" if self.inverts else "a": last})
        found = (own_derivatives or self.pushed)(states)
        found = [x.reshape(*states.lead, *x.shape[1:]) for x in found]
        return found if out is None else [filled(own, x) for own, x in zip(self._apart(out), found)]

    def pushed(self, states: States) -> Sequence[Array]:
        """The matrices where external forces act: those of the forces that they are to the coordinates, which turn."""
        q, v, _, gravity = states.part(slice(None))
        force, turned = forces_that_push(states)
        if not self.inverts:
            by_q, by_v, by_a = self.rows(states.system, (q, v, states["a"], gravity))[:3]
            return by_q - turned, by_v, by_a
        by_q, by_v, by_tau = self.rows(states.system, (q, v, states["tau"] + force, gravity))[:3]
        return by_q + by_tau @ turned, by_v, by_tau

    def _written(self, out: Any, answers: Answers) -> Any:
        return super()._written(self._apart(out), answers)

    def _apart(self, out: Any) -> Any:
        """Arrays of which none overlaps another."""
        for k, x in enumerate(() if out is None else out):
            if any(isinstance(y, np.ndarray) and isinstance(x, np.ndarray) and np.shares_memory(x, y) for y in out[:k]):
                raise ModelError("out: the three arrays must not overlap; give each matrix one of its own")
        return out


_COUPLED = "kfdyn.dynamics.recursions.coupled.geared"

INVERSE = _Derivatives(
    "inverse_dynamics_derivatives", "kfdyn.dynamics.recursions.slopes.derivatives_inverse", "INVERSE_DERIVATIVES",
    coupled=True, kinds=("geared",), explain=_overflown, inverts=False,
)  # fmt: skip
FORWARD = _Derivatives(
    "forward_dynamics_derivatives", "kfdyn.dynamics.recursions.slopes.derivatives_forward", "FORWARD_DERIVATIVES",
    coupled=_COUPLED, kinds=("geared",), explain=_by_engine,
)  # fmt: skip
