"""Cross-check a robot: treat it as a random process, filter and smooth it, and test every covariance formula."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.duality.claimed_matrix import Named, beside_exact, take_claims
from kfdyn.duality.dictionary import fill
from kfdyn.duality.hypothesis.detectable_errors import Detectable, Limits, detectable, limits
from kfdyn.duality.hypothesis.hypothesis_tests import judge
from kfdyn.duality.identities import TOLERANCE, identity_residuals, identity_tolerance
from kfdyn.duality.independent_checks import (
    Party,
    closed_form_party,
    dense_party,
    filterpy_party,
    inverse_party,
    mass_matrix_party,
    peer_parties,
)
from kfdyn.duality.monte_carlo import DENSE_OUTPUTS, DENSE_STATES, Plan, collect
from kfdyn.duality.quantities import QUANTITIES, Claim, claims, component_names
from kfdyn.duality.report import Report
from kfdyn.duality.report_render import versions
from kfdyn.duality.tolerance.preconditions import expect_deviations, expect_inverse, expect_range, no_inverse
from kfdyn.duality.tolerance.rounding import EPS, rounding_bound
from kfdyn.dynamics import as_estimation
from kfdyn.dynamics.solving.kinds import own_way
from kfdyn.errors import KfdynError, ModelError, ShapeError, SingularError
from kfdyn.estimation import StateSpace, draw
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import is_system
from kfdyn.multibody.loops.closure import expect_closed


class Client(Protocol):
    """Interface of a Dask ``distributed.Client`` that is used here."""

    def submit(self, function: Any, *args: Any, pure: bool) -> Any:
        """Send a task."""

    def cancel(self, futures: Any) -> Any:
        """Forget tasks."""

    def nthreads(self) -> Mapping[Any, int]:
        """Threads of each worker."""


def cross_check(
    system: System | StateSpace,
    q: ArrayLike | None = None,
    v: ArrayLike | None = None,
    samples: int = 200_000,
    seed: int = 0,
    client: Client | None = None,
    *,
    level: float = 1e-3,
    truth: StateSpace | None = None,
    claimed: Mapping[str, Claim | Named | ArrayLike] | None = None,
    peers: Mapping[str, ArrayLike] | None = None,
    progress: bool | None = None,
) -> Report:
    """Confront every covariance of the theory with samples, every identity with dense algebra.

    The inertias of the robot are taken as covariances of random forces w; the torques T they cause are filtered and
    smoothed; and the sample covariances of x, T, z, x − z, ε, ν, λ, a and x − x̂ are held against their closed
    forms by calibrated tests. The covariance of a = 𝓜⁻¹T must be the inverse mass matrix.

    Parameters
    ----------
    system : System or StateSpace
        The robot, or any model on a tree.
    q : (nq,)
        Its configuration, with its loops closed; not for a StateSpace.
    v : (nv,), optional
        Its velocity: then means are tested that are not zero.
    samples : int
        Number of samples; 1e5 will do. Memory does not depend on it.
    seed : int
        Same seed, same result, on one machine or many.
    client : distributed.Client, optional
        A Dask cluster that draws the samples.
    level : float
        Probability, at most, that a true model is rejected.
    truth : StateSpace, optional
        Draw from this model instead, to see whether an error of the checked one is found.
    claimed : mapping of str to (d, d) array or Claim, optional
        Somebody's covariances, by quantity: ``{"a": Minv}`` or ``{"T": M}``. They are tested by sampling alone, and the
        verdict says how small an error the samples would show, in a variance, an entry off the diagonal,
        one direction. Whole or a triangle, float64 or float32. (A ``Claim`` takes the place of the formula in
        every comparison, those with dense algebra too.)
    peers : mapping of str to (nv, nv), optional
        𝓜⁻¹ as other programs have it, compared with ours entry by entry in units √(𝓜⁻¹ᵢᵢ 𝓜⁻¹ⱼⱼ), without samples: whole
        or a triangle; float32 is allowed its own rounding. Pinocchio (URDF) and MuJoCo (MJCF) are asked about the file
        that the system came from without being named here.
    progress : bool, optional
        Whether to show a progress bar on the standard error stream; by default if that is a terminal.

    Returns
    -------
    Report
        ``passed``, ``table()``, ``plot()``, ``to_json()``. Ctrl-C ends the sampling, not the check: the report is on
        what was done, says PARTIAL, and has not passed.

    Notes
    -----
    O(N) for each sample's sweeps and O(d²) for each scatter matrix. A quantity of more than 640 state dimensions (1024
    of outputs) is tested in 128 random directions, which see all of its covariance, and entry by entry in the blocks
    of nodes and of nodes with their parents. Sources: THEORY section 5, ATBI "key covariance quantities".

    Examples
    --------
    >>> import kfdyn as kf
    >>> arm = kf.models.double_pendulum()
    >>> report = cross_check(arm, [0.3, 0.4], v=[1.0, -2.0], samples=4000)
    >>> report.passed
    True

    An inverse mass matrix from elsewhere, one entry off the diagonal 10 % too large:

    >>> Minv = kf.mass_matrix_inverse(arm, [0.3, 0.4])
    >>> Minv[0, 1] = Minv[1, 0] = 1.1 * Minv[0, 1]
    >>> cross_check(arm, [0.3, 0.4], samples=4000, claimed={"a": Minv}).passed
    False
    """
    ss, robot = (system, None) if isinstance(system, StateSpace) else (_model_of(system, q, v), system)
    if robot is None and (q is not None or v is not None):
        raise KfdynError("a StateSpace has its state inside; leave q and v out, or pass the system")
    title = f"a model of {len(ss)} nodes" if robot is None else str(robot.name)
    claimed, peers = _by_name(claimed, "claimed", "a"), _by_name(peers, "peers", "mine")
    if truth is not None and not isinstance(truth, StateSpace):
        raise ModelError(
            f"truth is a {type(truth).__name__}; give the StateSpace to draw from, such as kf.as_estimation(system, q)"
        )
    if client is not None and not hasattr(client, "submit"):
        raise ModelError(f"client is a {type(client).__name__}; give a distributed.Client, or None to sample here")
    samples, seed = _count(samples, "samples"), _count(seed, "seed", least=0)
    if truth is not None and (truth.tree != ss.tree or (truth.n != ss.n).any() or (truth.m != ss.m).any()):
        raise ShapeError("truth must have the tree and the block sizes of the model that is checked")
    if not 0 < level < 1:
        raise ModelError(f"level is {level}; give the probability of a false alarm, such as 0.001")
    limits = ((ss.n_states, DENSE_STATES), (ss.n_outputs, DENSE_OUTPUTS))
    largest = max((d for d, limit in limits if d <= limit), default=1)
    if samples < largest:
        raise ModelError(
            f"samples = {samples} cannot test a covariance of {largest} dimensions: the sample covariance is "
            f"singular; give at least {largest}, better {20 * largest}"
        )
    expect_range(ss)
    try:
        own, bound = claims(ss), rounding_bound(ss)
    except SingularError as error:
        if error.node is None:
            raise
        raise no_inverse(ss, error.node, "the filter has no digit left there") from None
    own_names = None if robot is None else own_way(robot, "output_names")
    names = component_names(ss) if own_names is None else own_names(robot)
    expect_inverse(ss, bound)
    expect_deviations(own, samples, component_names(ss, outputs=names))
    taken, notes = take_claims(claimed, own, ss, bound, samples, names)
    formulas = {**own, **taken}
    plan = Plan.of(ss, truth or ss, seed)
    moments, convergence = collect(plan, samples, client, formulas["a"], progress)
    judgement = judge(plan, moments, formulas, frozenset(notes), names)
    # what somebody claims is for the samples to judge, not for algebra that knows better
    known = {name: own[name] if name in notes else claim for name, claim in formulas.items()}
    parties, unasked = _parties(robot, q, ss, seed, known, peers, bound, names)
    small, tests = ss.n_states <= DENSE_STATES, len(judgement.tests)
    return Report(
        title,
        moments.n,
        samples,
        seed,
        level,
        judgement.tests,
        judgement.groups,
        tuple(parties),
        identity_residuals(ss) if small else {},
        identity_tolerance(ss) if small else TOLERANCE,
        judgement.findings,
        moments.histogram,
        convergence,
        _detectable(ss, moments.n, tests, level),
        names,
        () if robot is None or q is None else tuple(fill(robot, q, v)),
        q=None if q is None else tuple(np.asarray(q, float).tolist()),
        v=None if v is None else tuple(np.asarray(v, float).tolist()),
        claimed={name: (note, _limits(taken[name], moments.n, tests, level)) for name, note in notes.items()},
        exact={name: _exact(name, own[name], taken[name], ss, bound, names) for name in notes},
        unasked=tuple(unasked),
        versions=versions(),
    )


def _exact(name: str, own: Claim, claim: Claim, ss: StateSpace, bound: float, names: Sequence[str]) -> str:
    """Compare a claimed matrix with the exact one, if that is small enough to be formed."""
    if len(own.mean) > DENSE_OUTPUTS:
        return ""
    quantity = QUANTITIES[name]
    allowed = bound * max(float(np.finfo(getattr(claim.covariance, "dtype", "float64")).eps) / EPS, 1.0)
    called = component_names(ss, quantity.on_states, names)
    return "; ".join(beside_exact(own.matrix, claim.matrix, own.scale, allowed, ss, called, quantity.covariance))


def _model_of(system: Any, q: ArrayLike | None, v: ArrayLike | None) -> StateSpace:
    if not is_system(system):
        raise KfdynError(f"cross_check takes a System or a StateSpace, not {type(system).__name__}")
    if not system.nv:
        raise ModelError(
            f"nothing moves in {system.name!r}: it has no degree of freedom, so there is no mass matrix to check; "
            "is floating_base=True missing?"
        )
    if q is None:
        raise ShapeError(f"system {system.name!r} has {system.nq} coordinates; give its configuration q")

    ss = as_estimation(system, q, v)
    expect_closed(system, np.asarray(q, float))  # of a mechanism that cannot be assembled so nothing is certified
    return ss


def _by_name(given: Any, what: str, name: str) -> Mapping[str, Any]:
    """Check that matrices come by name, as a mapping."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ModelError(
            f"{what} is {type(given).__name__}, not a mapping of names to matrices; "
            f"an inverse mass matrix is given as {what}={{{name!r}: Minv}}"
        )
    return given


def _count(value: Any, name: str, least: int = 1) -> int:
    """Return a whole number; 1e4 is one as well."""
    number = isinstance(value, int | np.integer) or (isinstance(value, float | np.floating) and value.is_integer())
    if isinstance(value, bool) or not number or value < least:
        raise ModelError(f"{name} is {value!r}; give a whole number, {least} or more")
    return int(value)


def _parties(
    robot: System | None,
    q: ArrayLike | None,
    ss: StateSpace,
    seed: int,
    formulas: Mapping[str, Claim],
    peers: Mapping[str, ArrayLike],
    tolerance: float,
    names: tuple[str, ...],
) -> tuple[list[Party], list[str]]:
    given = [inverse_party(name, inverse, formulas, tolerance, names) for name, inverse in peers.items()]
    T = draw(ss, np.random.default_rng(seed)).T
    parties = filterpy_party(ss, T, formulas, tolerance)
    unasked: list[str] = []
    if ss.n_states <= DENSE_STATES:
        parties += closed_form_party(formulas, tolerance) + dense_party(ss, formulas, tolerance)
    if robot is not None and q is not None:
        parties += mass_matrix_party(robot, q, formulas, tolerance)
        answers, unasked = peer_parties(robot, q, formulas, tolerance, names)
        parties += answers
    return parties + given, unasked


def _detectable(ss: StateSpace, n: int, tests: int, level: float) -> Detectable | None:
    d = ss.n_outputs
    return detectable(d, n, tests, level) if 0 < d <= min(n, DENSE_OUTPUTS) else None


def _limits(claim: Claim, n: int, tests: int, level: float) -> Limits | None:
    """Return the smallest detectable errors in a claimed covariance; None if it is singular or no covariance."""
    matrix, d = claim.matrix, len(claim.mean)
    if not 0 < d <= min(n, DENSE_OUTPUTS) or np.abs(matrix - matrix.T).max() > 0:
        return None
    unit = matrix / np.outer(claim.scale, claim.scale)
    return limits(matrix, n, tests, level) if np.linalg.eigvalsh(unit)[0] > 1e-9 else None
