"""The dictionary: estimation, multibody dynamics, optimal control; one source for docs, CLI and tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.arrays import Array
from kfdyn.dynamics import as_estimation
from kfdyn.dynamics.solving.kinds import own_way
from kfdyn.errors import KfdynError
from kfdyn.estimation import (
    Covariances,
    Filtered,
    InnovationsFactor,
    Smoothed,
    StateSpace,
    bryson_frazier,
    kalman_filter,
)
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import expect_system
from kfdyn.viz.text import printable

if TYPE_CHECKING:
    from rich.table import Table


class Robot(NamedTuple):
    """A robot in a state, filtered and smoothed, and the body whose numbers are shown."""

    ss: StateSpace
    filt: Filtered
    smooth: Smoothed
    k: int


Number = Callable[[Robot], str]
Row = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class Entry:
    """One row: the same thing three times.

    Attributes
    ----------
    symbol : str
        Letter of THEORY, if it has one.
    estimation, dynamics, control : str
        Its three names. That of control is for the problem of :func:`kfdyn.lqr`, handed to the engine with φ = A*,
        H = B*, ξ = q, η = c and T = −r.
    code : str
        Where the package has it, as a name that can be imported; empty for what it does not have.
    number : callable or None
        Its value for a robot, in words.

    Examples
    --------
    >>> from kfdyn.duality import DICTIONARY
    >>> next((entry.estimation, entry.dynamics) for entry in DICTIONARY if entry.symbol == "G")
    ('Kalman gain', 'acceleration influence of the hinge')
    """

    symbol: str
    estimation: str
    dynamics: str
    control: str
    code: str
    number: Number | None = None

    @property
    def names(self) -> tuple[str, str, str, str]:
        """Symbol, and the names in estimation, dynamics and control."""
        return self.symbol, self.estimation, self.dynamics, self.control


def _block(matrix: Array) -> str:
    """Describe a spatial inertia: rotational part and mass part of its trace."""
    if matrix.shape != (6, 6):
        return _matrix(matrix)
    return f"tr/3: {np.trace(matrix[:3, :3]) / 3:.4g} kg m², {np.trace(matrix[3:, 3:]) / 3:.4g} kg"


def _matrix(matrix: Array) -> str:
    if matrix.size == 0:
        return "none"
    return f"{matrix.item():.4g}" if matrix.size == 1 else f"diagonal {_vector(np.diagonal(matrix))}"


def _vector(vector: Array) -> str:
    return "(" + ", ".join(f"{value:.3g}" for value in vector) + ")"


def _output(flat: Array, robot: Robot) -> str:
    values = robot.ss.output_blocks(flat)[robot.k]
    return "none" if values.size == 0 else f"{values[0]:.4g}" if values.size == 1 else _vector(values)


def _state(flat: Array | None, robot: Robot) -> str:
    return _vector(np.zeros(robot.ss.n[robot.k]) if flat is None else robot.ss.state_blocks(flat)[robot.k])


def _composite(robot: Robot) -> str:
    return _block(Covariances(robot.filt.covariances).x.diagonal[robot.k])


def _shift(robot: Robot) -> str:
    phi = robot.ss.phi[robot.k]
    return "root" if not phi.size else f"by l = {_vector(np.array([phi[2, 4], phi[0, 5], phi[1, 3]]))} m"


def _inverse(robot: Robot) -> str:
    return _matrix(InnovationsFactor(robot.filt.covariances).inverse_blocks()[robot.k])


def _energy(robot: Robot) -> str:
    """Return −½ log det 𝓜 − ½ T*𝓜⁻¹T of the generalised forces given."""
    return f"{float(robot.filt.llf):.4g}"


DICTIONARY: tuple[Entry, ...] = (
    Entry("k", "time, chain → tree", "body index, tip to base",
          "step; the filter runs back in time", "kfdyn.Tree", lambda r: r.ss.tree.label(r.k)),
    Entry("x(k)", "state", "spatial force between body k and its parent",
          "slope of the cost in x(k), any controls", "kfdyn.draw"),
    Entry("φ(p,k)", "transition", "rigid body transformation (force shift)",
          "dynamics A*", "kfdyn.StateSpace", _shift),
    Entry("Q(k)", "process covariance", "spatial inertia M(k)",
          "weight of the state", "kfdyn.StateSpace", lambda r: _block(r.ss.Q[r.k])),
    Entry("ξ(k)", "process mean", "bias force: gyroscopic − external",
          "linear weight q of the state", "kfdyn.as_estimation", lambda r: _state(r.ss.xi, r)),
    Entry("H(k)", "output map", "hinge map (projection on hinge axes)",
          "input map B*", "kfdyn.StateSpace", lambda r: f"{r.ss.m[r.k]} of {r.ss.n[r.k]} directions"),
    Entry("T(k)", "measurement", "generalised force at hinge k",
          "linear weight of the control, −r", "kfdyn.inverse_dynamics", lambda r: _output(r.filt.T, r)),
    Entry("R(k)", "measurement noise", "rotor / armature inertia (and h·B in an implicit damping step)",
          "weight of the control", "kfdyn.as_estimation", lambda r: _matrix(r.ss.R[r.k])),
    Entry("P", "prediction covariance", "articulated body inertia, outboard side",
          "Hessian of the value function, in x(k)", "kfdyn.Riccati", lambda r: _block(r.filt.P[r.k])),
    Entry("P⁺", "updated covariance", "articulated body inertia, inboard side",
          "the same before u(k) acts, in Ax(p) + c", "kfdyn.Riccati", lambda r: _block(r.filt.P_plus[r.k])),
    Entry("ℛ", "state covariance", "composite body inertia",
          "Hessian of the cost to go without controls", "kfdyn.composite_inertias", _composite),
    Entry("D", "innovations covariance", "articulated inertia seen by the hinge",
          "Q_uu: curvature of the cost to go in u(k)", "kfdyn.Riccati", lambda r: _matrix(r.filt.D[r.k])),
    Entry("G", "Kalman gain", "acceleration influence of the hinge",
          "feedback gain −G*A", "kfdyn.Riccati", lambda r: f"norm {np.linalg.norm(r.filt.G[r.k]):.4g}"),
    Entry("ε", "innovation", "force not explained outboard",
          "−Q_u where Ax(p) + c = 0", "kfdyn.kalman_filter", lambda r: _output(r.filt.eps, r)),
    Entry("ν", "residual", "free hinge acceleration",
          "feedforward: u = ν − G*(Ax(p) + c)", "kfdyn.kalman_filter", lambda r: _output(r.filt.nu, r)),
    Entry("λ", "co-state", "spatial acceleration",
          "trajectory of states x(k)", "kfdyn.bryson_frazier", lambda r: _vector(r.smooth.costate[r.k])),
    Entry("η", "co-state input", "Coriolis acceleration; −gravity enters at the root",
          "drift c; Ax₀ enters at the root", "kfdyn.as_estimation", lambda r: _state(r.ss.eta, r)),
    Entry("x̂", "smoothed state", "the actual inter-body force",
          "costate of Pontryagin", "kfdyn.bryson_frazier", lambda r: _vector(r.smooth.x[r.k])),
    Entry("z", "predicted state", "force due to outboard generalised forces and biases at zero body acceleration",
          "gradient of the value function at x(k) = 0", "kfdyn.kalman_filter", lambda r: _vector(r.filt.z[r.k])),
    Entry("a", "output co-state 𝓜⁻¹(T − bias)", "joint acceleration",
          "optimal control u(k)", "kfdyn.forward_dynamics", lambda r: _output(r.smooth.a, r)),
    Entry("𝓜", "covariance of the output", "mass matrix",
          "condensed Hessian of the plan, in u alone", "kfdyn.mass_matrix",
          lambda r: f"{r.ss.n_outputs} × {r.ss.n_outputs}, log det {r.filt.covariances.logdet:.4g}"),
    Entry("𝓜⁻¹", "covariance of a", "inverse mass matrix",
          "covariance of controls, exp(−cost) as a density", "kfdyn.mass_matrix_inverse", _inverse),
    Entry("Ω", "covariance of the co-state", "operational space compliance",
          "covariance of states under that density", "kfdyn.operational_space_compliance",
          lambda r: _matrix(r.smooth.Lambda[r.k])),
    Entry("", "missing measurement, its a(k) known", "prescribed / locked hinge → hybrid dynamics",
          "failed actuator", "kfdyn.hybrid_dynamics"),
    Entry("X", "sensors that report only sums: T = X*T of the hinges", "gear, mimic joint, differential",
          "one command for several actuators", "kfdyn.Coupling"),
    Entry("", "one more measurement, of a: gain 𝓜⁻¹J*(Ω + R)⁻¹", "loop cut and closed again; R > 0 if it gives way",
          "exact goal or way point; R > 0 if it may be missed", "kfdyn.cut_joint"),
    Entry("", "information K*K/μ on the co-state", "contact with the world",
          "penalty ½‖Kx‖²/μ on a state", "kfdyn.Loop"),
    Entry("", "exact full-state measurement (m_k = n_k)", "6-dof hinge, P⁺ = 0",
          "a free control for each state: deadbeat", "kfdyn.Hinge"),
    Entry("", "scalar-by-scalar processing of a vector measurement", "mass-less-body partitioning of a hinge",
          "controls of one step chosen one by one", "kfdyn.riccati"),
    Entry("", "log-likelihood of T", "−½ p*𝓜⁻¹p − ½ log det 𝓜: kinetic energy and Fixman potential",
          "least cost −½ r*𝓜⁻¹r, less ½ log det 𝓜", "kfdyn.mass_matrix_logdet", _energy),
    Entry("", "whitened innovations D^-½ε of T = p = 𝓜β", "modal (diagonalised) velocities: KE = ½‖·‖²",
          "controls in which the cost is ½‖·‖²", "kfdyn.InnovationsFactor"),
    Entry("", "square-root filter", "square-root articulated body inertia",
          "square-root Riccati recursion of the regulator", "kfdyn.kalman_filter"),
    Entry("", "associative-scan filter", "O(log N)-depth forward dynamics",
          "O(log N)-depth regulator", "kfdyn.textbook.scan.scan"),
    Entry("", "sampling N(0, 𝓜⁻¹)", "thermal velocities, cov kT 𝓜⁻¹, exact and O(N)",
          "draws of plans about the best one", "kfdyn.InnovationsFactor"),
    Entry("", "node with several children", "body that carries several",
          "branch: what may come, a tree of scenarios", "kfdyn.lqr"),
)  # fmt: skip


def fill(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    body: str | None = None,
) -> list[Row]:
    """Fill the dictionary with the numbers of one body of a robot in a state.

    Parameters
    ----------
    system : System
        The robot.
    q : (nq,)
    v, tau : (nv,), optional
        Velocity and generalised forces, zero if not given.
    body : str, optional
        Name of the body; by default the one in the middle of the tree.

    Returns
    -------
    list of (symbol, estimation, dynamics, control, number)
        Numbers in SI units, an empty text where a row has none.

    Notes
    -----
    O(N).

    Examples
    --------
    >>> import kfdyn as kf
    >>> rows = fill(kf.models.double_pendulum(), [0.0, 0.0], body="lower")
    >>> next(row for row in rows if row[0] == "D")[2:]
    ('articulated inertia seen by the hinge', 'Q_uu: curvature of the cost to go in u(k)', '1')
    """
    expect_system(system)
    if body is not None and body not in system.body_names:
        raise KfdynError(f"system {system.name!r} has no body {body!r}; its bodies are {', '.join(system.body_names)}")
    k = system.n_bodies // 2 if body is None else system.body_names.index(body)
    ss = as_estimation(system, q, v)
    node, measured = own_way(system, "node_of_body"), own_way(system, "output_forces")
    k = k if node is None else node(system, k)  # a node may have several bodies
    if tau is not None and measured is not None:
        tau = measured(system, q, v, np.asarray(tau, float))
    filt = kalman_filter(ss, np.zeros(ss.n_outputs) if tau is None else tau)
    robot = Robot(ss, filt, bryson_frazier(ss, filt), k)
    return [(*e.names, e.number(robot) if e.number else "") for e in DICTIONARY]


def dictionary_table(rows: list[Row] | None = None, title: str = "") -> Table:
    """Return the dictionary for a rich console, with a robot's numbers if ``rows`` of :func:`fill` are given.

    Parameters
    ----------
    rows : list of (symbol, estimation, dynamics, control, number), optional
        From :func:`fill`, to show a robot's numbers.
    title : str
        Above the table.

    Returns
    -------
    rich.table.Table
        For ``rich.print``.

    Examples
    --------
    >>> table = dictionary_table()
    >>> [column.header for column in table.columns]
    ['', 'estimation', 'multibody dynamics', 'control']
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(printable(title or "The dictionary")), title_justify="left", title_style="bold")
    for column in ("", "estimation", "multibody dynamics", "control", *(("this robot",) if rows else ())):
        table.add_column(column)
    for row in rows or (entry.names for entry in DICTIONARY):
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table
