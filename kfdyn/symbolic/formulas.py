"""Mass matrix, its inverse, forward dynamics and the filter's quantities of a robot as formulas (R86 section 11)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kfdyn.errors import ModelError, ShapeError
from kfdyn.extras import needed
from kfdyn.multibody import System
from kfdyn.multibody.calls.arguments import expect_system
from kfdyn.symbolic.symbolic_nodes import solve
from kfdyn.symbolic.symbolic_robot import Inputs, Robot, robot, values
from kfdyn.symbolic.tape import Tape, Term, operands
from kfdyn.textbook import sko

if TYPE_CHECKING:
    import sympy


class Counts(NamedTuple):
    """Operations that a formula does.

    Attributes
    ----------
    add, multiply, divide, trigonometric : int
        How many of each.

    Examples
    --------
    >>> import kfdyn as kf
    >>> kf.symbolic.mass_matrix(kf.models.pendulum()).counts
    Counts(add=0, multiply=0, divide=0, trigonometric=0)
    """

    add: int
    multiply: int
    divide: int
    trigonometric: int


@dataclass(frozen=True, eq=False)
class Formula:
    """A formula in symbols: steps that are shared, and results in terms of them.

    Attributes
    ----------
    name, says : str
        What it is called in exported code, and what it is.
    shape : tuple of int
        Of the result.
    inputs : Inputs
        Names of the symbols: ``q``, ``v``, ``tau``, and ``parameters`` with their values, if they are letters.
    tape, entries, results
        The steps as they were written down, which of them are needed, and the results.

    Examples
    --------
    >>> import kfdyn as kf
    >>> inverse = kf.symbolic.mass_matrix_inverse(kf.models.double_pendulum(), parameters=True)
    >>> inverse.shape, [str(s) for s in inverse.symbols]
    ((2, 2), ['q0', 'q1', 'm1', 'c1z', 'J1xx', 'J1yy', 'l2z', 'm2', 'c2z', 'J2xx', 'J2yy'])
    """

    name: str
    says: str
    shape: tuple[int, ...]
    inputs: Inputs
    tape: Tape
    results: list[Any]

    @cached_property
    def entries(self) -> list[int]:
        """Entries of the tape that the results need, in order."""
        return self.tape.needed(self.results)

    @cached_property
    def symbols(self) -> list[sympy.Symbol]:
        """Every symbol that may occur: q, v, tau, parameters."""
        inputs, sympy = self.inputs, _sympy()
        return [sympy.Symbol(x) for x in (*inputs.q, *inputs.v, *inputs.tau, *inputs.parameters)]

    @cached_property
    def shared(self) -> list[int]:
        """Entries worth a name of their own: used more than once and more than an input."""
        uses: dict[int, int] = {}
        for at in self.entries:
            for i in operands(self.tape.entries[at]):
                uses[i] = uses.get(i, 0) + 1
        for x in self.results:
            if isinstance(x, Term):
                uses[x.at] = uses.get(x.at, 0) + 1
        return [at for at in self.entries if uses.get(at, 0) > 1 and self.tape.entries[at][0] != "leaf"]

    @cached_property
    def counts(self) -> Counts:
        """Operations, common subexpressions once; what is done to constants alone is done."""
        add = multiply = divide = trigonometric = 0
        for at in self.entries:
            entry = self.tape.entries[at]
            if entry[0] == "add":
                add += 1
                multiply += sum(
                    abs(c) != 1 and self.tape.entries[i] != ("leaf", "1") for c, i in (entry[1:3], entry[3:])
                )
            multiply += entry[0] == "mul"
            divide += entry[0] == "recip"
            trigonometric += entry[0] in ("cos", "sin")
        return Counts(
            add,
            multiply + sum(isinstance(x, Term) and abs(x.coefficient) != 1 for x in self.results),
            divide,
            trigonometric,
        )

    def cse(self) -> tuple[list[tuple[sympy.Symbol, sympy.Expr]], sympy.Matrix]:
        """Return steps (symbol, expression) and the results in their terms, as ``sympy.cse`` does."""
        sympy = _sympy()
        named = {at: sympy.Symbol(f"x{i}") for i, at in enumerate(self.shared)}
        made: dict[int, Any] = {}
        steps = []
        for at in self.entries:
            made[at] = self._expression(at, made)
            if at in named:
                steps.append((named[at], made[at]))
                made[at] = named[at]
        return steps, self._matrix(made)

    def expand(self) -> sympy.Matrix:
        """Return the results in terms of the inputs alone, readable for two or three links."""
        made: dict[int, Any] = {}
        for at in self.entries:
            made[at] = self._expression(at, made)
        return self._matrix(made)

    def _expression(self, at: int, made: dict[int, Any]) -> Any:
        sympy, entry = _sympy(), self.tape.entries[at]
        kind = entry[0]
        if kind == "leaf":
            return sympy.Integer(1) if entry[1] == "1" else sympy.Symbol(entry[1])
        if kind == "add":
            return _coefficient(entry[1]) * made[entry[2]] + _coefficient(entry[3]) * made[entry[4]]
        if kind == "mul":
            return made[entry[1]] * made[entry[2]]
        if kind == "recip":
            return 1 / made[entry[1]]
        return getattr(sympy, kind)(made[entry[1]])

    def _matrix(self, made: dict[int, Any]) -> Any:
        flat = [
            _coefficient(x.coefficient) * made[x.at] if isinstance(x, Term) else _coefficient(x) for x in self.results
        ]
        rows, columns = (*self.shape, 1, 1)[:2]
        return _sympy().Matrix(rows, columns, flat)


def _sympy() -> Any:
    return needed("sympy", "symbolic", "a formula as an expression")


def _coefficient(x: float) -> Any:
    sympy = _sympy()
    return sympy.Integer(int(x)) if x == int(x) else sympy.Float(x)


def mass_matrix(system: System, *, parameters: bool = False) -> Formula:
    """Write the mass matrix 𝓜(q) (nv, nv) as a formula: composite bodies (CRBA) run on symbols.

    Notes
    -----
    The recursion is that of :func:`kfdyn.textbook.sko.mass_matrix`. Source: R86 section 11.

    Examples
    --------
    >>> import kfdyn as kf
    >>> kf.symbolic.mass_matrix(kf.models.double_pendulum()).expand()[0, 1]
    cos(q1) + 1
    """
    found = robot(system, moving=False, parameters=parameters)
    return _formula(found, sko.mass_matrix(found.model), "mass_matrix", f"mass matrix of {system.name}")


def mass_matrix_inverse(system: System, *, parameters: bool = False) -> Formula:
    """Write 𝓜⁻¹(q) (nv, nv) as a formula, by filter and smoother: (1 − HψK)* D⁻¹ (1 − HψK), column by column.

    Notes
    -----
    Each column is the forward dynamics of a unit force, of which all share the articulated inertias. Source: R86
    sections 10 and 11: "a symbolic manipulation program could be set up to conduct the operations in Eq. (10.1)
    symbolically".

    Examples
    --------
    >>> import kfdyn as kf
    >>> inverse = kf.symbolic.mass_matrix_inverse(kf.models.double_pendulum()).expand()
    >>> inverse.subs("q1", 0).applyfunc(lambda x: round(x, 9))
    Matrix([
    [ 1, -2],
    [-2,  5]])
    """
    found = robot(system, moving=False, parameters=parameters)
    return _formula(found, _inverse(found.model), "mass_matrix_inverse", f"inverse of the mass matrix of {system.name}")


def inverse_element(system: System, i: int, j: int, *, parameters: bool = False) -> Formula:
    """Write one element of 𝓜⁻¹ as a formula (): what a unit force at dof j does to dof i. R86 (10.2)-(10.3).

    Parameters
    ----------
    i, j : int
        Which element.

    Examples
    --------
    >>> import kfdyn as kf
    >>> one = kf.symbolic.inverse_element(kf.models.puma560(), 0, 0)
    >>> one.counts.divide
    5
    """
    expect_system(system)
    for index in (i, j):
        if not isinstance(index, int | np.integer):
            raise ModelError(
                f"i and j are numbers of degrees of freedom, got {index!r}; system.v_slice(hinge).start is "
                "the first of a hinge"
            )
        if not 0 <= index < system.nv:
            raise ShapeError(f"there is no degree of freedom {index}; {system.name!r} has 0 to {system.nv - 1}")
    found = robot(system, moving=False, parameters=parameters)
    value = _inverse(found.model, [j])[i, 0]
    return _formula(found, np.array(value, dtype=object), f"inverse_element_{i}_{j}", f"𝓜⁻¹[{i}, {j}] of {system.name}")


def forward_dynamics(system: System, *, parameters: bool = False) -> Formula:
    """Write accelerations a(q, v, tau) (nv,) as a formula: filter and smoother (ABA) run on symbols, with gravity.

    Notes
    -----
    The recursions are those of the engine and of compiled dynamics, run on symbols. Source: R86 sections 8 and 11.

    Examples
    --------
    >>> import kfdyn as kf
    >>> kf.symbolic.forward_dynamics(kf.models.pendulum()).expand()
    Matrix([[tau0 - 9.81*sin(q0)]])
    """
    found = robot(system, moving=True, forced=True, parameters=parameters)
    tau = np.array([found.tape.leaf(name) for name in found.inputs.tau], dtype=object)
    return _formula(found, solve(found.model, tau), "forward_dynamics", f"joint accelerations of {system.name}")


def bias_forces(system: System, *, parameters: bool = False) -> Formula:
    """Write c(q, v) (nv,) of 𝓜a + c = tau as a formula: Newton-Euler run on symbols, gravity included.

    Examples
    --------
    >>> import kfdyn as kf
    >>> kf.symbolic.bias_forces(kf.models.pendulum()).expand()
    Matrix([[9.81*sin(q0)]])
    """
    found = robot(system, moving=True, parameters=parameters)
    return _formula(
        found, sko.bias(found.model), "bias_forces", f"Coriolis, centrifugal and gravity forces of {system.name}"
    )


def filter_quantity(system: System, letter: str, hinge: str, *, parameters: bool = False) -> Formula:
    """Write P, P⁺, D or G of one hinge as a formula of q: what the filter knows there. R86 (8.4)-(8.9).

    Parameters
    ----------
    system : System
        The robot; the hinge must have one degree of freedom or be a ball, a free or a custom hinge.
    letter : {"P", "P_plus", "D", "G"}
        Which.
    hinge : str
        Name of the hinge. P, P⁺ and G are in the frame of the body it carries.

    Returns
    -------
    Formula
        Of shape (6, 6), (m, m) or (6, m).

    Examples
    --------
    The shoulder of a double pendulum does not feel the free elbow when the arm is stretched:

    >>> import kfdyn as kf
    >>> D = kf.symbolic.filter_quantity(kf.models.double_pendulum(), "D", "shoulder").expand()[0]
    >>> D.subs("q1", 0)
    1
    """
    expect_system(system)
    if letter not in ("P", "P_plus", "D", "G"):
        raise ModelError(f"the filter has P, P_plus, D and G, not {letter!r}")
    start = system.v_slice(hinge)
    found = robot(system, moving=False, parameters=parameters)
    nodes = [len(H) for H in found.model.H]
    ends = np.cumsum([0, *nodes])
    at = [k for k in range(len(nodes)) if ends[k] == start.start and ends[k + 1] == start.stop and nodes[k]]
    if not at:
        raise ModelError(f"hinge {hinge!r} is split into single degrees of freedom here, or has none; ask for another")
    value = getattr(sko.articulated(found.model), letter)[at[0]]
    return _formula(found, value, f"{letter}_of_{hinge}", f"{letter} of hinge {hinge} of {system.name}")


def _inverse(model: sko.Model, columns: list[int] | None = None) -> Any:
    """Return 𝓜⁻¹, or some columns of it: unit forces filtered and smoothed with one set of gains."""
    size = sum(len(H) for H in model.H)
    wanted = list(range(size)) if columns is None else columns
    unit = np.zeros((size, len(wanted)), dtype=object)
    for c, j in enumerate(wanted):
        unit[j, c] = 1
    full = solve(model, unit)
    if columns is None:  # symmetric: written once
        for i in range(size):
            for j in range(i):
                full[i, j] = full[j, i]
    return full


def _formula(found: Robot, array: Any, name: str, says: str) -> Formula:
    return Formula(name, says, np.shape(array), found.inputs, found.tape, values(array))
