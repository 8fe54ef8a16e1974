"""``kfdyn info``: what is in a file."""

from __future__ import annotations

import argparse

from kfdyn.cli.robots import add_robot, count, open_robot
from kfdyn.cli.terminal import clean

ABOUT = "describe a robot: its tree, hinges, masses, and what may surprise you"
EXAMPLES = ("kfdyn info robot.urdf", "kfdyn info robot.urdf --floating-base", "kfdyn info builtin:humanoid")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_robot(parser)
    parser.add_argument("--bodies", type=count, default=80, metavar="N", help="bodies to list at most (%(default)s)")


def run(args: argparse.Namespace) -> int:
    """Print the description."""
    from kfdyn.io import describe

    print(clean(describe(open_robot(args), most=args.bodies)))
    return 0
