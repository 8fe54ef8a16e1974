"""Forward dynamics (ABA): an outward sweep, a gather and a scatter, on a configuration in every lane."""

from kfdyn.dynamics.recursions.articulated import Filter
from kfdyn.multibody.recursions.given import FORCES, GRAVITY, TAU, A, Q, V
from kfdyn.multibody.recursions.robot_entry import entry


def forward_dynamics(f):
    """a: THEORY (2)–(4) with scalar measurements in succession. About 600 flops for a body on one dof.

    Where the least d of a row's dofs is not more than rounding, some hinge has no inertia, and the row has no answer.
    """
    f.sweep_outward()
    least = f.gather()
    f.scatter()
    return least


FORWARD = entry(forward_dynamics, Filter, [Q, V, TAU, FORCES, GRAVITY], [A], unroll=24)
