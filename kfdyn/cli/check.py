"""``kfdyn check``: the cross-check of a robot's mass matrix against statistics."""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kfdyn.cli.robots import add_robot, add_state, expect_covariances, naming_hinges, open_robot, positive, read_state
from kfdyn.cli.terminal import complain, make_console
from kfdyn.errors import ModelError

if TYPE_CHECKING:
    from kfdyn.duality.claimed_matrix import Named

_STATUS = {"PASSED": 0, "REJECTED": 1, "PARTIAL": 130}

ABOUT = "confront every covariance formula of a robot with samples"
EXAMPLES = (
    "kfdyn check robot.urdf",
    "kfdyn check talos.urdf --floating-base --samples 1e6 --figures figures",
    "kfdyn check builtin:puma560 --q 0 -0.8 0.3 0 0.5 0 --v zero",
    "kfdyn check robot.urdf --q neutral --minv mine.npy     somebody's inverse mass matrix, by sampling",
    "kfdyn check builtin:random_tree:300 --json > report.json",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_robot(parser)
    add_state(parser)
    parser.add_argument(
        "--samples",
        type=positive,
        default=200_000,
        metavar="N",
        help="number of samples (%(default)s): seconds for an arm, some minutes for 300 bodies",
    )
    for option, what in (("--minv", "inverse mass matrix"), ("--mass-matrix", "mass matrix")):
        parser.add_argument(
            option,
            type=Path,
            metavar="FILE",
            help=f"test this {what} (.npy, or numbers in rows) of the configuration --q by sampling",
        )
    parser.add_argument("--figures", type=Path, metavar="DIR", help="write the figures there")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def run(args: argparse.Namespace) -> int:
    """Print the report; 0 if it passed, 1 if rejected. Ctrl-C ends the sampling: a report on what was done, and 130."""
    from kfdyn.cli.slide import WIDE, show_verdict, slide_table
    from kfdyn.duality import cross_check
    from kfdyn.viz.cross_check_figures import save_figures

    loaded = open_robot(args)
    system = loaded.system
    if not system.nv:
        raise ModelError(f"{args.file}: nothing moves in {system.name!r}; is a --floating-base missing?")
    expect_covariances(system)
    q, v = read_state(system, args)
    if args.figures is not None:  # find out before the work
        args.figures.mkdir(parents=True, exist_ok=True)
    claimed = _claimed(args)
    for note in loaded.warnings:
        complain(f"warning: {note}")
    with naming_hinges(system, q):
        report = cross_check(system, q, v, samples=args.samples, seed=args.seed, claimed=claimed)
    for note in report.unasked:
        complain(f"warning: {note}")
    written = [] if args.figures is None else save_figures(report, args.figures)
    if args.json:
        print(json.dumps({"file": args.file, **json.loads(report.to_json())}, indent=2))
        return _STATUS[report.status]
    console = make_console()
    console.print(report.table() if console.width >= WIDE else slide_table(report, console.width))
    console.print(report.tests_table())
    show_verdict(console, report)
    if written:
        console.print("Figures: " + ", ".join(map(str, written)), soft_wrap=True)
    return _STATUS[report.status]


def _claimed(args: argparse.Namespace) -> dict[str, Named]:
    """Read the matrices that the options name, by the quantity whose covariance they claim to be."""
    from kfdyn.duality.claimed_matrix import Named

    given = {"a": args.minv, "T": args.mass_matrix}
    files = {name: file for name, file in given.items() if file is not None}
    if files and args.q == "random":
        option = "--minv" if args.minv is not None else "--mass-matrix"
        raise ModelError(f"{option} is of one configuration; say which by --q, such as --q neutral")
    return {name: Named(_read_matrix(file), str(file)) for name, file in files.items()}


_MOST = 2**28  # bytes of a matrix, 5,000 dofs as .npy


def _read_matrix(file: Path) -> Any:
    """Read the matrix in a file, with error messages for a user who only named a file."""
    cure = "give a .npy file of one array, or rows of numbers"
    with file.open("rb") as opened:
        data = opened.read(_MOST + 1)  # once, and not for ever: it may be a pipe or a device
    if len(data) > _MOST:
        raise ModelError(f"{file}: larger than {_MOST >> 20} MiB, so that it is no matrix of a robot; {cure}")
    if data[:2] == b"PK":
        raise ModelError(f"{file}: is an archive of arrays (.npz); {cure}")
    try:
        if file.suffix == ".npy" or data[:6] == b"\x93NUMPY":
            return np.asarray(np.load(io.BytesIO(data), allow_pickle=False))
        text = data.decode()
        if not text.strip():
            raise ModelError(f"{file}: is empty; {cure}")
        return np.loadtxt(io.StringIO(text), delimiter="," if "," in text else None, ndmin=2)
    except UnicodeDecodeError:
        raise ModelError(f"{file}: holds no matrix of numbers, nor any text; {cure}") from None
    except (ValueError, EOFError, MemoryError) as error:
        why = "" if file.suffix == ".npy" else f" ({error})"
        raise ModelError(f"{file}: holds no matrix of numbers{why}; {cure}") from None
