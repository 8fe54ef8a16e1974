"""The gather: from the tips to the base, body by body."""

from kfdyn.dynamics.recursions.articulated import everything
from kfdyn.dynamics.recursions.sensing.elimination import general, pair, quiet_pair
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
            if quiet:
                _quiet(s, body, node)
            else:
                _informed(s, body, node)
    return now(s.least)


def _quiet(s, body, node):
    arrive(s, body, informed=False)
    s.spread(body, node)
    for h in _hinge(s, body):
        quiet_pair(s, body, node, h)
    for _ in when(body.parent != 0):
        leave(s, body, informed=False)
        for _ in when(node.way == QUIET):
            pass_unknown(s, body)


def _informed(s, body, node):
    arrive(s, body, informed=True)
    for _ in when(node.seen_end > node.seen):
        s.inform(body, node)
    s.spread(body, node)
    for simple in either(node.way == PAIR):
        if simple:
            for h in _hinge(s, body):
                pair(s, body, node, h)
        else:
            general(s, body, node)
    for _ in when(body.parent != 0):
        leave(s, body, informed=True)


def _hinge(s, body):
    """The row of H of a hinge of one dof; of a revolute one half is zero, which pays where only means are wanted."""
    for turns in either(body.kind == REVOLUTE) if s.means else (False,):
        yield [*axis_of(body.t, s.work), 0.0, 0.0, 0.0] if turns else s.row_of_H(body.v)
