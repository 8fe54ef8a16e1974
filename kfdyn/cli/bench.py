"""``kfdyn bench``: the benchmarks of a checkout."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import kfdyn
from kfdyn.errors import KfdynError

ABOUT = "time kfdyn beside its peers, in a checkout of the sources"
EXAMPLES = (
    "kfdyn bench --quick",
    "kfdyn bench dynamics --output results",
    "kfdyn bench dynamics --recorded          what the last run wrote",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("parts", nargs="*", metavar="part", help="which to run; all by default")
    parser.add_argument("--quick", action="store_true", help="small sizes and few repeats")
    parser.add_argument("--output", type=Path, metavar="DIR", help="where to write the tables and figures")
    parser.add_argument("--recorded", action="store_true", help="run nothing, print the tables of the last full run")


def checkout() -> Path:
    """Return the folder that holds both this package and the benchmarks."""
    root = Path(kfdyn.__file__).resolve().parents[1]
    if not (root / "benchmarks" / "__main__.py").is_file():
        raise KfdynError(
            "the benchmarks are in the source repository, not in the installed package; in a checkout: make bench"
        )
    return root


def recorded(parts: Sequence[str]) -> Iterator[str]:
    """Return the tables of the parts, or of all, as the last full run wrote them."""
    pages = {page.stem: page for page in sorted((checkout() / "benchmarks" / "results").glob("*.md"))}
    for part in parts or pages:
        if part not in pages:
            raise KfdynError(f"no results of {part!r} are recorded; there are {', '.join(pages)}")
        yield pages[part].read_text(encoding="utf-8")


def run(args: argparse.Namespace) -> int:
    """Run ``python -m benchmarks`` and return its exit status; or print what it has written."""
    if args.recorded:
        for text in recorded(args.parts):
            print(text)
        return 0
    command = [sys.executable, "-m", "benchmarks", *args.parts]
    command += ["--quick"] * args.quick
    command += ["--output", str(args.output.resolve())] if args.output else []
    return subprocess.run(command, cwd=checkout(), check=False).returncode
