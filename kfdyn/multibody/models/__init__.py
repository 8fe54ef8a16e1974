"""Ready-made systems: pendulums, chains, random trees, published arms, a satellite, a humanoid."""

from kfdyn.multibody.models.chains import chain, double_pendulum, pendulum, uniform_chain
from kfdyn.multibody.models.linkages import four_bar, four_bar_chain, peaucellier, slider_crank
from kfdyn.multibody.models.linkages import four_bar_configuration as four_bar_configuration
from kfdyn.multibody.models.linkages import peaucellier_configuration as peaucellier_configuration
from kfdyn.multibody.models.parallel import delta_configuration as delta_configuration
from kfdyn.multibody.models.parallel import delta_robot, stewart_platform
from kfdyn.multibody.models.parallel import stewart_configuration as stewart_configuration
from kfdyn.multibody.models.puma import puma560
from kfdyn.multibody.models.random_trees import random_tree
from kfdyn.multibody.models.stanford import stanford_arm
from kfdyn.multibody.models.vehicles import free_flyer, humanoid

__all__ = [
    "chain",
    "delta_robot",
    "double_pendulum",
    "four_bar",
    "four_bar_chain",
    "free_flyer",
    "humanoid",
    "peaucellier",
    "pendulum",
    "puma560",
    "random_tree",
    "slider_crank",
    "stanford_arm",
    "stewart_platform",
    "uniform_chain",
]
