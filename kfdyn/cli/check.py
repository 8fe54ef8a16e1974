"""``kfdyn check``: the cross-check of a robot's mass matrix against statistics."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from kfdyn.cli.robots import add_robot, add_state, count, expect_covariances, naming_hinges, open_robot, read_state
from kfdyn.cli.terminal import complain, make_console

ABOUT = "confront every covariance formula of a robot with samples"
EXAMPLES = (
    "kfdyn check robot.urdf",
    "kfdyn check talos.urdf --floating-base --samples 1e6 --figures figures",
    "kfdyn check builtin:puma560 --q 0 -0.8 0.3 0 0.5 0 --v zero",
    "kfdyn check builtin:random_tree:300 --json > report.json",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_robot(parser)
    add_state(parser)
    parser.add_argument(
        "--samples",
        type=count,
        default=200_000,
        metavar="N",
        help="number of samples (%(default)s): seconds for an arm, some minutes for 300 bodies",
    )
    parser.add_argument("--figures", type=Path, metavar="DIR", help="write the figures there")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def run(args: argparse.Namespace) -> int:
    """Print the report; 0 if it passed, 1 if it was rejected. Ctrl-C ends the sampling, not the check."""
    from kfdyn.cli.peers import ask_peers
    from kfdyn.cli.slide import WIDE, show_verdict, slide_table
    from kfdyn.duality import cross_check
    from kfdyn.errors import ModelError
    from kfdyn.viz.cross_check import save_figures

    loaded = open_robot(args)
    system = loaded.system
    if not system.nv:
        raise ModelError(f"{args.file}: nothing moves in {system.name!r}; is a --floating-base missing?")
    expect_covariances(system)
    q, v = read_state(system, args)
    if args.figures is not None:  # find out before the work
        args.figures.mkdir(parents=True, exist_ok=True)
    peers, unasked = ask_peers(args.file, system, q, args.floating_base)
    for note in (*loaded.notes, *unasked):
        complain(f"warning: {note}")
    with naming_hinges(system, q):
        report = cross_check(system, q, v, samples=args.samples, seed=args.seed, peers=peers)
    written = [] if args.figures is None else save_figures(report, args.figures)
    if args.json:
        content = {"file": args.file, "q": q.tolist(), "v": v.tolist(), **json.loads(report.to_json())}
        print(json.dumps(content, indent=2))
        return 0 if report.passed else 1
    console = make_console()
    console.print(report.table() if console.width >= WIDE else slide_table(report, console.width))
    console.print(report.tests_table())
    show_verdict(console, report)
    if written:
        console.print("Figures: " + ", ".join(map(str, written)), soft_wrap=True)
    return 0 if report.passed else 1
