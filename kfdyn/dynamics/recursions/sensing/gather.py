"""The gather: from the tips to the base, body by body."""

from kfdyn.dynamics.recursions.articulated import everything
from kfdyn.dynamics.recursions.sensing.elimination import general, pair
from kfdyn.dynamics.recursions.sensing.message import arrive, leave, pass_unknown
from kfdyn.dynamics.recursions.sensing.tables import PAIR, QUIET
from kfdyn.multibody.recursions.outward import axis_of, sweep_outward
from kfdyn.multibody.recursions.robot import REVOLUTE, inward
from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.algebra import Vec3
from kfdyn.sweeps.control import either, flattened, when
from kfdyn.sweeps.values import local, now


def gather(s):
    """Eliminate every node's unknowns; the least that a pivot is above what it may not fall below."""
    sweep_outward(s.robot, s.row, s.bodies.memory, s.H.memory, moving=s.means)
    s.least = local(everything(s.robot, 1e300))
    for body in inward(s.robot):
        node = s.nodes[body.t]
        for _ in when(body.kind == REVOLUTE):
            s.H[body.v].h = Spatial(axis_of(body.t, s.bodies.memory), Vec3.zero())
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
        h = Spatial(axis_of(body.t, s.bodies.memory), Vec3.zero()) if turns else s.H[body.v].h
        pair(s, body, node, flattened(h), quiet)
