"""Mutants of the recursions behind what the atlas names: run on plain numbers, and one of each function compiled.

python tests/duality/sweep_evidence.py [--ids R86:12-NUM ...]      adds to kfdyn/duality/atlas_evidence.json

What the atlas names often hands its work to a recursion in the language of sweeps (``atlas_sweeps.toml`` says which).
There its lines are broken as those of other code are, where the named test runs them. Plain numbers need no compiler,
so that every mutant runs as it stands; one a function is compiled besides, without what a cache has kept of the sound
code. A recursion in which the test runs nothing that could be broken proves nothing: that is an error.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from atlas_evidence import EVIDENCE, SECONDS, Mutant, in_a_copy, line_mutants, run, tally
from atlas_trace import Texts, traced

from kfdyn.duality.atlas import Result, atlas
from kfdyn.sweeps import Checks

PER_FUNCTION = 4


# ---- the evidence


def prepare(kind: str) -> None:
    """Let this process, which has run nothing yet, use plain numbers or compile."""
    os.environ["KFDYN_EXAMPLES"] = "plain mutants" if kind == "plain" else "mutants"  # conftest.py loads this profile
    Checks.on = kind == "plain"


def formulas(results: list[Result], test: str) -> dict[str, list[Any]]:
    """Where the recursions that are named have formulas that the test runs on plain numbers, by name."""

    def work() -> dict[str, list[Any]]:
        prepare("plain")
        texts = Texts()
        named = {name: texts.behind(r, name) for r in results for name in r.sweeps}
        with traced(texts):
            run([test])
        return {name: [sorted(text.ran) for text in some] for name, some in named.items()}

    found = in_a_copy(work, 2 * SECONDS)
    if found is None:
        sys.exit(f"{test} does not end on plain numbers")
    for r in results:
        for name in r.sweeps:
            if not any(found[name]):
                sys.exit(f"{r.id}: {test} runs nothing of {name} that could be broken")
    return found


def chosen(result: Result, name: str, kind: str, ran: list[Any]) -> Iterator[Mutant]:
    """A few mutants of every function that runs, the same ones every time; of code that is compiled one a function."""
    for text, seen in zip(Texts().behind(result, name), ran):
        text.ran = {tuple(place) for place in seen}
        made = list(line_mutants(text.function, text.was_run))
        count = min(len(made), PER_FUNCTION if kind == "plain" else 1)
        yield from random.Random(text.function.__qualname__).sample(made, count)


def passes(test: str, kind: str) -> None:
    """Fail with words if a test proves nothing as it is, in a copy: this process must not hold compiled code."""

    def work() -> float:
        prepare(kind)
        outcome = run([test])
        sound = test in outcome.passed and outcome.fates([test])[test] == "survived"
        return time.process_time() if sound else -1.0

    before = time.process_time()
    spent = in_a_copy(work, SECONDS)
    if spent is None or spent < 0:
        sys.exit(f"{test} does not pass within {SECONDS} s as {kind} code, so it can prove nothing")
    if spent - before > SECONDS / 4:
        sys.exit(f"{test} takes {spent - before:.0f} s as {kind} code: a slow mutant could not be told from a dead one")


def fate(mutant: Mutant, test: str, kind: str) -> str:
    """Whether an assertion of the test kills it, it survives, or it crashes or hangs."""

    def work() -> str:
        prepare(kind)
        with tempfile.TemporaryDirectory() as empty:
            os.environ["KFDYN_CACHE_DIR"] = empty  # the sound code is not to be found there
            mutant.apply()
            return run([test]).fates([test])[test]

    return in_a_copy(work, SECONDS) or "crashed"


def measure(results: list[Result]) -> dict[str, dict[str, dict[str, Any]]]:
    """Survivors and counts by id and kind; this process runs no recursion itself."""
    out: dict[str, dict[str, dict[str, Any]]] = {r.id: {} for r in results}
    for test, group in groupby(sorted(results, key=lambda r: r.test or ""), key=lambda r: r.test or ""):
        entries = list(group)
        start = time.perf_counter()
        ran = formulas(entries, test)
        for kind in ("plain", "compiled"):
            passes(test, kind)
            found = {}
            for r in entries:
                for name in r.sweeps:  # several entries may ask for the same one
                    if name not in found:
                        mutants = list(chosen(r, name, kind, ran[name]))
                        if not mutants:
                            sys.exit(f"{r.id}: nothing of {name} can be broken")
                        found[name] = [(fate(m, test, kind), f"{m.kind}: {m.where} ({kind})") for m in mutants]
                out[r.id][kind] = {"mutants": 0, "killed": 0, "crashed": 0, "survivors": []}
                for name in r.sweeps:
                    for end, what in found[name]:
                        tally(out[r.id][kind], end, what)
        for r in entries:
            told = ", ".join(
                f"{one['killed']}/{one['mutants']} {kind}, {one['crashed']} crashed {one['survivors'] or ''}"
                for kind, one in out[r.id].items()
            )
            print(f"{r.id}: {told}  ({time.perf_counter() - start:.0f} s)", file=sys.stderr, flush=True)
    return out


def main() -> None:
    """Measure and write, or fail if something survives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ids", nargs="*", help="only these")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if something survives")
    asked = parser.parse_args()
    results = [r for r in atlas().values() if r.sweeps and (not asked.ids or r.id in asked.ids)]
    found = measure(results)
    left = [text for of_entry in found.values() for one in of_entry.values() for text in one["survivors"]]
    if asked.check:
        sys.exit(f"not noticed: {left}" if left else 0)
    known = json.loads(Path(EVIDENCE).read_text(encoding="utf-8"))
    for key, of_entry in found.items():
        known[key]["recursions"] = of_entry
    Path(EVIDENCE).write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(found)} entries have recursions behind them; not noticed: {left}")


if __name__ == "__main__":
    main()
