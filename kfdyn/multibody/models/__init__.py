"""Ready-made systems: pendulums, chains, random trees, published arms, a satellite, a humanoid."""

from kfdyn.multibody.models.chains import chain, double_pendulum, pendulum, uniform_chain
from kfdyn.multibody.models.puma import puma560
from kfdyn.multibody.models.random_trees import random_tree
from kfdyn.multibody.models.stanford import stanford_arm
from kfdyn.multibody.models.vehicles import free_flyer, humanoid

__all__ = [
    "chain",
    "double_pendulum",
    "free_flyer",
    "humanoid",
    "pendulum",
    "puma560",
    "random_tree",
    "stanford_arm",
    "uniform_chain",
]
