"""``kfdyn bench``: the benchmarks of a checkout."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import kfdyn
from kfdyn.errors import KfdynError

ABOUT = "time kfdyn beside its peers, in a checkout of the sources"
EXAMPLES = ("kfdyn bench --quick", "kfdyn bench engine --output results")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("parts", nargs="*", metavar="part", help="which to run; all by default")
    parser.add_argument("--quick", action="store_true", help="small sizes and few repeats")
    parser.add_argument("--output", type=Path, metavar="DIR", help="where to write the tables and figures")


def checkout() -> Path:
    """Folder that holds both this package and the benchmarks."""
    root = Path(kfdyn.__file__).resolve().parents[1]
    if not (root / "benchmarks" / "__main__.py").is_file():
        raise KfdynError(
            "the benchmarks are in the source repository, not in the installed package; in a checkout: make bench"
        )
    return root


def run(args: argparse.Namespace) -> int:
    """Hand over to ``python -m benchmarks``; its exit status is ours."""
    command = [sys.executable, "-m", "benchmarks", *args.parts]
    command += ["--quick"] * args.quick
    command += ["--output", str(args.output.resolve())] if args.output else []
    return subprocess.run(command, cwd=checkout(), check=False).returncode
