"""Forward dynamics (ABA): the joint acceleration is the smoother's output co-state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.dynamics.assembly import as_estimation
from kfdyn.dynamics.solving.forest import DENSE, States, expect_method, singular
from kfdyn.dynamics.solving.kinds import own_way
from kfdyn.dynamics.solving.solver import Solver
from kfdyn.errors import ShapeError, SingularError
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import expect_system, filled
from kfdyn.multibody.parts.body import as_floats

if TYPE_CHECKING:
    from kfdyn.estimation import Filtered, Smoothed


def forward_dynamics(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None,
    tau: ArrayLike,
    external_forces: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
    *,
    method: Literal["filter", "engine", "mass_matrix", "embedding", "cut", "proximal"] = "filter",
    out: Array | None = None,
) -> Array:
    """Return a = 𝓜⁻¹(tau − c) by Kalman filter and Bryson–Frazier smoother: the articulated-body algorithm (ABA).

    ::

        P = Σ φP⁺φ* + M,   D = HPH* + R,   G = PH*D⁻¹,   P⁺ = P − GDG*     R86 (8.4), (8.5), (8.9)
        z = Σ φz⁺ + ξ,     ε = tau − Hz,   ν = D⁻¹ε,     z⁺ = z + Gε + P⁺η R86 (8.3), (8.6)–(8.8)
        λ⁺ = φ*λ(p),       a = ν − G*(λ⁺ + η),           λ = λ⁺ + η + H*a  R86 (8.10)–(8.13)

    Parameters
    ----------
    system : System
        The robot.
    q : (..., nq)
        Configurations; leading axes of all arguments broadcast.
    v : (..., nv) or None
        Velocities; None is at rest.
    tau : (..., nv)
        Generalised forces.
    external_forces : (..., n_bodies, 6), optional
        [moment; force] on each body, world orientation, at the body's origin.
    gravity : (..., 3), optional
        ``system.gravity`` if not given.
    method : {"filter", "engine", "mass_matrix", "embedding", "cut", "proximal"}
        The filter is O(N); its sweeps are fused and carry several configurations side by side. "engine" assembles
        the model and runs the generic engine on it: the same recursions from other code. "mass_matrix" forms 𝓜 by
        composite inertias, and c by inverse dynamics, and solves by Cholesky factors: O(N³) in general, a cross-check
        that shares no recursion with the filter.
        The last three are for couplings and loops: "embedding" makes one node of the bodies of a gear or a loop
        (minimal coordinates, O(N) for local loops, refuses a dead centre), "cut" updates the accelerations without
        loops through Ω (what "filter" does with loops), "proximal" gives the loops as information, little by little.
    out : (..., nv) array of float64, optional
        Where the answer goes, instead of a new array; returned. It may overlap arguments. After an error its numbers
        mean nothing.

    Returns
    -------
    (..., nv) array
        Accelerations a.

    Raises
    ------
    SingularError
        If a hinge has no inertia to move; names the hinge.

    Notes
    -----
    With loops, q and v are taken as they are given: a loop that is open keeps its gap from accelerating, so that what
    comes out is of no mechanism that can be assembled. :func:`kfdyn.assemble` closes loops.
    Sources: R86 section 8; SKO "fd-gather-scatter", "fd-quadratic".

    Examples
    --------
    >>> import kfdyn as kf
    >>> forward_dynamics(kf.models.pendulum(length=1.0), [0.5 * np.pi], [0.0], [0.0])
    array([-9.81])
    """
    if method != "filter":
        return filled(out, _by_method(system, (q, v, tau, external_forces, gravity), method))
    answer: Array = FORWARD.solve(system, q, v, tau, external_forces, gravity, out)
    return answer


def by_engine(states: States) -> dict[str, Array]:
    """Accelerations (size, nv) by the generic filter and smoother on the assembled forest."""
    from kfdyn.estimation import bryson_frazier, kalman_filter

    a = np.empty((states.size, states.system.nv))

    def solve(part: slice) -> None:
        forest = states.forest(part)
        filt = kalman_filter(forest.ss, forest.stack(states["tau"][part]))
        a[part] = forest.by_dof(bryson_frazier(forest.ss, filt, covariances=False).a)

    states.in_parts(solve)
    return {"the acceleration": a}


def _by_method(system: System, given: tuple[Any, ...], method: Any) -> Array:
    """Another way than the compiled filter; kinds of systems may have more ways than trees."""
    expect_system(system)
    own = own_way(system, "forward_dynamics_by")
    if own is not None:
        return np.asarray(own(system, given, method))
    expect_method(method, ("filter", "engine", "mass_matrix"), "forward_dynamics")
    if method == "engine":
        return FORWARD.explained(system, given)
    states = FORWARD.bound(system, given)
    return states.shaped(_by_mass_matrix(states))


FORWARD = Solver(
    "forward_dynamics",
    "kfdyn.dynamics.recursions.forward",
    "FORWARD",
    coupled="kfdyn.dynamics.recursions.coupled.geared",
    explain=by_engine,
    bending="kfdyn.dynamics.recursions.flexible.flexible_filter",
    most=DENSE,
)


def dynamics_filter(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None,
    tau: ArrayLike,
    external_forces: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
) -> tuple[Filtered, Smoothed]:
    """Forward dynamics of one configuration with everything the filter and smoother know.

    Parameters
    ----------
    system : System
        The robot.
    q, v : (nq,), (nv,) or None
        One state.
    tau : (..., nv)
        Generalised forces; leading axes are so many measurements of the same model. NaN, a missing measurement,
        locks a dof: its a is 0.
    external_forces : (n_bodies, 6), optional
        [moment; force] on each body, world orientation, at the body's origin.
    gravity : (3,), optional
        ``system.gravity`` if not given.

    Returns
    -------
    filt : Filtered
        ``P[k]`` articulated body inertia, ``D[k]`` inertia seen by the hinge, ``G[k]`` its influence, ``eps`` the
        force not explained outboard, ``z[k]``, ...
    smooth : Smoothed
        ``a`` joint accelerations, ``costate[k]`` acceleration of body k (less g), ``x[k]`` force at hinge k,
        ``Lambda[k]`` operational space compliance of body k.

    With couplings or loops k is a node of several bodies, and T and a are those of its independent coordinates; no
    entry of tau may then be NaN.

    Notes
    -----
    O(N). Source: R86 (8.2)–(8.13).

    Examples
    --------
    >>> import kfdyn as kf
    >>> filt, smooth = dynamics_filter(kf.models.pendulum(length=1.0, mass=2.0), [0.5 * np.pi], None, [0.0])
    >>> filt.D[0], smooth.a
    (array([[2.]]), array([-9.81]))
    """
    from kfdyn.estimation import bryson_frazier, kalman_filter

    ss = as_estimation(system, q, v, external_forces, gravity)
    T = as_floats(tau, "tau")
    if T.shape[-1:] != (system.nv,):
        raise ShapeError(f"tau must have shape (..., {system.nv}) for system {system.name!r}, got {T.shape}")
    locked = np.asarray(np.isnan(T).any(axis=tuple(range(T.ndim - 1))))
    measured = own_way(system, "output_forces")
    try:
        filt = kalman_filter(ss, T if measured is None else measured(system, q, v, T))
    except SingularError as error:
        raise singular(system, error) from None
    States.of(system, q).expect_invertible(~locked if locked.any() else None)
    return filt, bryson_frazier(ss, filt)


def _by_mass_matrix(states: States) -> Array:
    """Accelerations (size, nv): 𝓜 by composite inertias, c by Newton–Euler, a Cholesky solve (SKO "fd-quadratic")."""
    from scipy.linalg import solve_triangular

    from kfdyn.dynamics.bias import bias_forces
    from kfdyn.dynamics.mass_matrix import mass_matrix

    system = states.system
    c, M = bias_forces(system, *states.part(slice(None))), mass_matrix(system, states["q"])
    states.expect_invertible()  # entries of 𝓜 may be rounding themselves, so that its pivots do not tell
    try:
        L = np.linalg.cholesky(M)
        pivots = np.einsum("...ii->...i", L) ** 2 / np.einsum("...ii->...i", M)
        singular = pivots.size > 0 and pivots.min() <= 4 * system.nv * np.finfo(float).eps
    except np.linalg.LinAlgError:
        singular = True
    if singular:
        raise SingularError(
            f"system {system.name!r}: the mass matrix is singular, so some hinge has no inertia to move; "
            'forward_dynamics with method="filter" names the hinge'
        )
    a = np.empty((states.size, system.nv))
    for b, rhs in enumerate(states["tau"] - c if system.nv else ()):  # older releases of SciPy solve no empty equations
        a[b] = solve_triangular(L[b], solve_triangular(L[b], rhs, lower=True), lower=True, trans=1)
    return a
