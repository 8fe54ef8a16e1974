"""``kfdyn dictionary``: estimation, multibody dynamics and control, a column each."""

from __future__ import annotations

import argparse

from kfdyn.cli.robots import add_robot, add_state, naming_hinges, open_robot, read_state
from kfdyn.cli.terminal import complain, make_console
from kfdyn.errors import ModelError

ABOUT = "the dictionary of estimation, dynamics and control, with a robot's numbers if one is given"
EXAMPLES = (
    "kfdyn dictionary",
    "kfdyn dictionary builtin:puma560 --q neutral",
    "kfdyn dictionary robot.urdf --body forearm",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_robot(parser, "")
    add_state(parser)
    parser.add_argument("--body", metavar="NAME", help="body whose numbers are shown (default: one amid the tree)")


def run(args: argparse.Namespace) -> int:
    """Print the table."""
    from kfdyn.duality.dictionary import dictionary_table, fill

    console = make_console()
    if not args.file:
        if args.body is not None:
            raise ModelError(f"--body {args.body}: name the robot too, as in: kfdyn dictionary robot.urdf --body NAME")
        console.print(dictionary_table())
        return 0
    loaded = open_robot(args)
    for note in loaded.warnings:
        complain(f"warning: {note}")
    system = loaded.system
    if not system.n_bodies:
        raise ModelError(f"{args.file}: nothing moves in {system.name!r}, so there are no numbers to fill in")
    q, v = read_state(system, args)
    with naming_hinges(system, q):
        rows = fill(system, q, v, body=args.body)
    console.print(dictionary_table(rows, title=f"The dictionary of {system.name}"))
    return 0
