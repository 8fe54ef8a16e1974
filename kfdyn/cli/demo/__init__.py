"""``kfdyn demo``: the engine on a time series and on a tree, then a robot's mass matrix against statistics."""

from __future__ import annotations

import argparse
from pathlib import Path

from kfdyn.cli.terminal import make_console, show_table

ABOUT = "the whole story: a time series, a tree, and the PUMA 560 cross-checked"
EXAMPLES = ("kfdyn demo", "kfdyn demo --output figures")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument(
        "--output", type=Path, default=Path("demo-output"), metavar="DIR", help="where the figures go (%(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Show the examples, write their figures; 0 if every check passed, else 1."""
    from kfdyn.cli.demo.arm import show_arm
    from kfdyn.cli.demo.nile import show_nile
    from kfdyn.cli.demo.robot import show_robot

    args.output.mkdir(parents=True, exist_ok=True)
    figures = [args.output / name for name in ("nile.png", "arm.png", "puma560")]
    console = make_console()
    console.print(
        "One engine, a Kalman filter and smoother on trees, shown on a time series, on a\ntree and on a robot. "
        "The first run compiles it, which takes a minute.\n"
    )
    checks = show_nile(console, figures[0]) + show_arm(console, figures[1])
    show_table(
        console,
        "Checks",
        ("claim", "found", ""),
        [(c.claim, c.found, "holds" if c.passed else "FAILS") for c in checks],
    )
    report = show_robot(console, figures[2])
    console.print("\nFigures: " + ", ".join(map(str, figures)), soft_wrap=True)
    return 0 if report.passed and all(check.passed for check in checks) else 1
