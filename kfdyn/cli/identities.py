"""``kfdyn identities``: the residual of every operator identity on a robot."""

from __future__ import annotations

import argparse
import json

from kfdyn.cli.robots import add_robot, add_state, expect_covariances, naming_hinges, open_robot, read_state
from kfdyn.cli.terminal import clean, complain, make_console
from kfdyn.errors import ModelError

ABOUT = "residual of every operator identity on a robot, by dense algebra"
EXAMPLES = ("kfdyn identities", "kfdyn identities robot.urdf --seed 3", "kfdyn identities builtin:humanoid --json")
MOST_STATES = 3000  # dense matrices of this size are 72 MB, and some thirty of them are kept


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_robot(parser, "builtin:puma560")
    add_state(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print the table; 0 if every residual is rounding, else 1."""
    from kfdyn.duality import IDENTITIES, identity_residuals
    from kfdyn.duality.identities import identity_tolerance
    from kfdyn.dynamics import as_estimation

    loaded = open_robot(args)
    for note in loaded.warnings:
        complain(f"warning: {note}")
    system = loaded.system
    expect_covariances(system)
    q, v = read_state(system, args)
    ss = as_estimation(system, q, v)
    if ss.n_states > MOST_STATES:
        raise ModelError(
            f"{args.file}: dense algebra on {ss.n_states} states is too much; up to {MOST_STATES // 6} bodies will do"
        )
    with naming_hinges(system, q):
        residuals, tolerance = identity_residuals(ss), identity_tolerance(ss)
    passed = all(residual <= tolerance for residual in residuals.values())
    if args.json:
        rows = {
            name: {"statement": one.statement, "source": one.source, "residual": residuals[name]}
            for name, one in IDENTITIES.items()
            if name in residuals
        }
        print(
            json.dumps({"robot": system.name, "passed": passed, "tolerance": tolerance, "identities": rows}, indent=2)
        )
    else:
        _show(system.name, residuals, passed, tolerance)
    return 0 if passed else 1


def _show(name: str, residuals: dict[str, float], passed: bool, tolerance: float) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from kfdyn.duality import IDENTITIES

    console = make_console()
    table = Table(
        title=f"{clean(name)}: operator identities", title_justify="left", title_style="bold", box=SIMPLE_HEAD
    )
    table.add_column("identity")
    table.add_column("source")
    table.add_column("residual", justify="right")
    for key, residual in residuals.items():
        one = IDENTITIES[key]
        table.add_row(one.statement, one.source, f"{residual:.0e}", style="" if residual <= tolerance else "bold red")
    console.print(table)
    skipped = len(IDENTITIES) - len(residuals)
    if skipped:
        console.print(f"{skipped} more hold only without armature (R = 0).")
    failed = [key for key, residual in residuals.items() if not residual <= tolerance]
    console.print(
        f"PASSED: {len(residuals)} identities hold to {max(residuals.values()):.0e}."
        if passed
        else f"REJECTED: residual above {tolerance:g} in {', '.join(failed)}.",
        style="bold green" if passed else "bold red",
    )
