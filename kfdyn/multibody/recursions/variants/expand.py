"""Positions of all hinges of a robot with couplings."""

from kfdyn.multibody.recursions.given import Q
from kfdyn.multibody.recursions.robot_entry import entry
from kfdyn.multibody.recursions.variants.geared import GEARED, Expansion, own
from kfdyn.multibody.recursions.workspace import Workspace
from kfdyn.sweeps.entry import Given


def expand(sweep):
    """X q + offset."""
    return Expansion(sweep.robot).positions(sweep.row.q, sweep.row.positions)


GEARED_EXPAND = entry(expand, Workspace, [own(Q)], [Given("positions", ("nq",))], table=GEARED)
