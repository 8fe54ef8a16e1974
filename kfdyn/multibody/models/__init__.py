"""Ready-made systems: pendulums, chains, random trees, published arms, a satellite, a humanoid."""

from kfdyn.multibody.models.chains import chain, double_pendulum, pendulum, uniform_chain
from kfdyn.multibody.models.random_trees import random_tree

__all__ = ["chain", "double_pendulum", "pendulum", "random_tree", "uniform_chain"]
