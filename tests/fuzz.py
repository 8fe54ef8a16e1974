"""Run the property tests on new examples for some time: ``make fuzz``, or ``python tests/fuzz.py --seconds 60``.

Round after round draws other examples, each round from a seed that is printed. A failure is printed with the command
that draws it again.
"""

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent


def fuzz_round(seed: int, until: float, where: list[str]) -> tuple[dict[str, int], list[str], str]:
    """Examples of each test, tests that failed, and what pytest said, of one round."""
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "counts"
        told = {"KFDYN_EXAMPLES": "new", "KFDYN_FUZZ_UNTIL": str(until), "KFDYN_FUZZ_COUNTS": str(counts)}
        options = ["-p", "no:xdist", "-p", "no:cacheprovider", "-rf", f"--hypothesis-seed={seed}"]
        command = [sys.executable, "-m", "pytest", *options, *where]
        run = subprocess.run(command, cwd=ROOT, env=os.environ | told, capture_output=True, encoding="utf-8")
        if run.returncode not in (0, 1, 2, 5) or not counts.exists():
            sys.exit(f"fuzz: pytest itself failed:\n{run.stdout}{run.stderr}")
        lines = (line.split(" ", 1) for line in counts.read_text(encoding="utf-8").splitlines())
        examples = {name: int(count) for count, name in lines}
    return examples, re.findall(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.M), run.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=1800.0, help="how long (default: half an hour)")
    parser.add_argument("--seed", type=int, help="seed of the first round (default: a new one)")
    parser.add_argument("where", nargs="*", default=["tests"], help="files or folders of tests (default: all)")
    asked = parser.parse_args()
    begin = time.time()
    until, seed = begin + asked.seconds, random.randrange(10**9) if asked.seed is None else asked.seed
    rounds, examples, tests, failures = 0, 0, set[str](), []
    while not rounds or time.time() < until:  # one at least, however slow the machine
        drawn, failed, said = fuzz_round(seed, until, asked.where)
        rounds, examples, tests = rounds + 1, examples + sum(drawn.values()), tests | drawn.keys()
        print(
            f"fuzz: seed {seed}: {sum(drawn.values())} examples of {len(drawn)} tests, {len(failed)} failed", flush=True
        )
        if failed:
            print(said)
        for name in failed:
            failures.append(f"KFDYN_EXAMPLES=new python -m pytest --hypothesis-seed={seed} '{name}'")
            print(f"fuzz: to repeat it: {failures[-1]}", flush=True)
        seed = (seed + 1) % 10**9
    minutes = (time.time() - begin) / 60
    print(
        f"fuzz: {examples} examples of {len(tests)} tests in {rounds} rounds, {minutes:.1f} min; {len(failures)} failed"
    )
    print("\n".join(failures), end="\n" if failures else "")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
