"""Mutants of the recursions behind what the atlas names: run on plain numbers, and one of each function compiled.

python tests/duality/sweep_evidence.py [--ids R86:12-NUM ...]      adds to kfdyn/duality/atlas_evidence.json

What the atlas names often hands its work to a recursion in the language of sweeps (``atlas_sweeps.toml`` says which).
There its lines are broken as those of other code are. Plain numbers need no compiler, so that every mutant runs as it
stands; one a function is compiled besides, without what a cache has kept of the sound code.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from atlas_evidence import EVIDENCE, ROOT, SECONDS, Mutant, functions, in_a_copy, line_mutants, run
from hypothesis import Phase, settings

from kfdyn.duality.atlas import Result, atlas

PER_FUNCTION = 4
# Plain numbers are some hundred times as slow as compiled code, and a mutant is dead at the first example that sees it.
settings.register_profile(
    "plain mutants", phases=(Phase.explicit, Phase.generate), derandomize=True, database=None, max_examples=5
)


class Found(NamedTuple):
    """What became of the mutants of one entry of the atlas."""

    mutants: int
    killed: int
    survivors: list[str]


def chosen(result: Result, kind: str) -> Iterator[Mutant]:
    """A few mutants of every function, the same ones every time; of code that is compiled one a function."""
    for name in result.sweeps:
        for function in functions(result.resolve(name)):
            made = list(line_mutants(function))
            count = min(len(made), PER_FUNCTION if kind == "plain" else 1)
            yield from random.Random(function.__qualname__).sample(made, count)


def measure(results: list[Result], kind: str) -> dict[str, Any]:
    """Survivors and counts by id, in this process, which has run nothing yet."""
    settings.load_profile("plain mutants" if kind == "plain" else "mutants")
    out: dict[str, Any] = {}
    for tests, group in groupby(sorted(results, key=lambda r: (r.test, r.code)), key=lambda r: r.test):
        entries = list(group)
        start = time.perf_counter()

        def sound(test: str = tests) -> list[bool]:
            outcome = run([test])
            return [test in outcome.passed and test not in outcome.failed]

        # in a copy as well: this process must not hold compiled code that a mutant would then not change
        if in_a_copy(sound, SECONDS) != [True]:
            sys.exit(f"{tests} does not pass within {SECONDS} s as {kind} code, so it can prove nothing")
        spent = time.perf_counter() - start
        if spent > SECONDS / 4:
            sys.exit(f"{tests} takes {spent:.0f} s as {kind} code: a slow mutant could not be told from a dead one")
        for r in entries:
            killed, survivors, count = 0, [], 0
            for mutant in chosen(r, kind):

                def work(mutant: Mutant = mutant, test: str = tests) -> bool:
                    with tempfile.TemporaryDirectory() as empty:
                        os.environ["KFDYN_CACHE_DIR"] = empty  # the sound code is not to be found there
                        mutant.apply()
                        return test in run([test]).failed

                count += 1
                if in_a_copy(work, SECONDS) is False:
                    survivors.append(f"{mutant.kind}: {mutant.where} ({kind})")
                else:
                    killed += 1
            out[r.id] = Found(count, killed, survivors)
        told = ", ".join(f"{r.id} {out[r.id].killed}/{out[r.id].mutants}" for r in entries)
        print(f"{kind}: {told}  ({time.perf_counter() - start:.0f} s)", file=sys.stderr, flush=True)
    return out


def in_its_own_process(kind: str, ids: list[str]) -> dict[str, Any]:
    """Measure where KFDYN_CHECK is set from the start, or nowhere."""
    told = os.environ | {"KFDYN_CHECK": "1" if kind == "plain" else "", "PYTHONPATH": str(ROOT), "KFDYN_QUIET": "1"}
    done = subprocess.run(
        [sys.executable, __file__, "--here", kind, "--ids", *ids], cwd=ROOT, env=told, stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        sys.exit(done.returncode)
    return json.loads(done.stdout)


def main() -> None:
    """Measure and write, or fail if something survives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ids", nargs="*", help="only these")
    parser.add_argument("--here", choices=("plain", "compiled"), help="in this process; print what was found")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if something survives")
    asked = parser.parse_args()
    results = [r for r in atlas().values() if r.sweeps and (not asked.ids or r.id in asked.ids)]
    if asked.here:
        print(json.dumps(measure(results, asked.here)))
        return
    ids = [r.id for r in results]
    found = {kind: in_its_own_process(kind, ids) for kind in ("plain", "compiled")}
    left = [text for of_kind in found.values() for one in of_kind.values() for text in Found(*one).survivors]
    if asked.check:
        sys.exit(f"not noticed: {left}" if left else 0)
    known = json.loads(Path(EVIDENCE).read_text(encoding="utf-8"))
    for key in ids:
        known[key]["recursions"] = {kind: dict(zip(Found._fields, found[kind][key])) for kind in found}
    Path(EVIDENCE).write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(ids)} entries have recursions behind them; not noticed: {left}")


if __name__ == "__main__":
    main()
