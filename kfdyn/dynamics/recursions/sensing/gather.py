"""The gather: from the tips to the base, body by body."""

from kfdyn.dynamics.recursions.articulated import everything
from kfdyn.dynamics.recursions.sensing.elimination import general, pair
from kfdyn.dynamics.recursions.sensing.message import arrive, leave, pass_unknown
from kfdyn.dynamics.recursions.sensing.tables import PAIR, QUIET
from kfdyn.multibody.recursions.outward import axis_of, sweep_outward
from kfdyn.multibody.recursions.robot import REVOLUTE, inward
from kfdyn.sweeps.control import either, when
from kfdyn.sweeps.values import local, now


def gather(s):
    """Eliminate every node's unknowns; the least that a pivot is above what it may not fall below."""
    sweep_outward(s.robot, s.row, s.work, s.H, moving=s.means)
    s.least = local(everything(s.robot, 1e300))
    for body in inward(s.robot):
        node = s.nodes[body.t]
        for _ in when(body.kind == REVOLUTE):
            for c, x in enumerate((*axis_of(body.t, s.work), 0.0, 0.0, 0.0)):
                s.H[6 * body.v + c] = x
        for quiet in either(node.way >= QUIET):
            arrive(s, body, quiet)
            if not quiet:
                for _ in when(node.seen_end > node.seen):
                    s.inform(body, node)
            s.spread(body, node)
            for simple in (True,) if quiet else either(node.way == PAIR):
                if simple:
                    _of_one_dof(s, body, node, quiet)
                else:
                    general(s, body, node)
            for _ in when(body.parent != 0):
                leave(s, body, quiet)
                if quiet:
                    for _ in when(node.way == QUIET):
                        pass_unknown(s, body)
    return now(s.least)


def _of_one_dof(s, body, node, quiet):
    """Of a revolute hinge half of the row of H is zero, which pays where only means are wanted."""
    for turns in either(body.kind == REVOLUTE) if s.means else (False,):
        pair(s, body, node, [*axis_of(body.t, s.work), 0.0, 0.0, 0.0] if turns else s.row_of_H(body.v), quiet)
