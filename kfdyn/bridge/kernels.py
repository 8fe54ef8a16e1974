"""Which compiled recursions answer an operation, so that a framework can call them without Python on the way."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from kfdyn.bridge.operations import WEIGHTLESS, Operation
from kfdyn.dynamics import derivatives
from kfdyn.dynamics.forward import FORWARD
from kfdyn.dynamics.inverse import INVERSE
from kfdyn.dynamics.logdet_gradient import LOGDET_GRADIENT
from kfdyn.dynamics.mass_matrix import MASS_MATRIX, VARIANCES
from kfdyn.dynamics.mass_matrix_inverse import MASS_MATRIX_INVERSE
from kfdyn.multibody.calls.kernel import Kernel
from kfdyn.multibody.calls.packed_model import frame_of
from kfdyn.multibody.energy import POTENTIAL
from kfdyn.multibody.kinematics import JACOBIAN, POSE

#: Kernels by the operations that they answer one after the other; of each, which of its results are wanted.
_ANSWERED_BY: dict[str, list[tuple[Kernel, tuple[int, ...]]]] = {
    "forward_dynamics": [(FORWARD, (0,))],
    "derivatives_of_forward_dynamics": [(derivatives.FORWARD, (3, 0, 1, 2))],
    "inverse_dynamics": [(INVERSE, (0,))],
    "derivatives_of_inverse_dynamics": [(INVERSE, (0,)), (derivatives.INVERSE, (0, 1, 2))],
    "mass_matrix": [(MASS_MATRIX, (0,))],
    "mass_matrix_inverse": [(MASS_MATRIX_INVERSE, (0,))],
    "mass_matrix_logdet_gradient": [(LOGDET_GRADIENT, (0,))],
    "innovation_variances": [(VARIANCES, (0,))],
    "potential_energy": [(POTENTIAL, (0,))],
    "jacobian": [(JACOBIAN, (0,))],
    "frame_pose": [(POSE, (0, 1))],
}


class Part(NamedTuple):
    """A compiled recursion with all that it is told beforehand.

    Attributes
    ----------
    entry, model : Entry, Model
        The recursion, and the tables of the system.
    parameters : tuple
        What is the same for all rows.
    own : dict of str to array
        Arrays that the system has itself, by name.
    results : tuple of int
        Which of its results are wanted, in order.
    shapes : list of tuple of int
        Of a row of each result.
    """

    entry: Any
    model: Any
    parameters: tuple[Any, ...]
    own: dict[str, np.ndarray[Any, Any]]
    results: tuple[int, ...]
    shapes: list[tuple[int, ...]]


@lru_cache(maxsize=256)
def parts_of(operation: Operation) -> tuple[Part, ...]:
    """The recursions that answer an operation; none if only Python has the answer."""
    system, found = operation.model, []
    for kernel, results in _ANSWERED_BY.get(operation.name, ()):
        served = kernel.serving(system)
        if served is None or system.robots:
            return ()
        entry = served.entry
        parameters = frame_of(system, operation.more)[: len(entry.parameters)] if entry.parameters else ()
        sizes = {"nq": system.nq, "nv": system.nv, "n": system.n_bodies, "own_nq": system.nq, "own_nv": system.nv}
        shapes = [tuple(sizes.get(x, x) for x in about.tail) for about in entry.results]
        own = {"gravity": np.zeros(3) if operation.more == WEIGHTLESS else system.gravity}
        found.append(Part(entry, served.model(system), parameters, own, results, shapes))
    return tuple(found)
