"""What the atlas claims, measured: does the named test run the named code, and does it fail when that code is wrong?

python tests/duality/atlas_evidence.py [--ids R86:8.1 ...]      writes kfdyn/duality/atlas_evidence.json

The code that an entry names is broken on purpose, in a copy of this process: a sign turned, a factor put in, a term
dropped, a transpose forgotten, in its own lines where it is written in Python, and in what it returns where the work is
done by compiled code. Then the named test is run. A mutant that no test kills is reported as a survivor.

A mutant is killed by an assertion that fails. One that raises another error, hangs or ends the process has crashed:
that says that the code ran, not that the test knows what it should answer. It counts neither as made nor as killed.
"""

from __future__ import annotations

import argparse
import ast
import copy
import dataclasses
import functools
import inspect
import itertools
import json
import os
import random
import signal
import sys
import textwrap
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings

from kfdyn.duality.atlas import Result, atlas
from kfdyn.estimation import StateSpace
from kfdyn.estimation.model.blocks import Blocks
from kfdyn.estimation.operators.operator import Operator

ROOT = Path(__file__).parents[2]
EVIDENCE = ROOT / "kfdyn" / "duality" / "atlas_evidence.json"
PER_KIND, MOST, SECONDS = 2, 6, 240

# No shrinking: that a test fails is enough.
CALM = settings(
    phases=(Phase.explicit, Phase.generate),
    derandomize=True,
    database=None,
    deadline=None,  # a busy machine is not a mutant
    suppress_health_check=list(HealthCheck),
)
settings.register_profile("mutants", CALM)
# Plain numbers are some hundred times as slow as compiled code, and a mutant is dead at the first example that sees it.
settings.register_profile("plain mutants", CALM, max_examples=30)


class Mutant(NamedTuple):
    """One way to break a function, and how to do it in this process."""

    kind: str
    where: str
    apply: Callable[[], None]


# ---- which functions an entry names


def functions(thing: Any) -> list[Any]:
    """Plain functions behind a name: itself, a property's getter, or the methods of a class."""
    thing = getattr(thing, "fget", None) or getattr(thing, "func", None) or thing
    if inspect.isclass(thing):
        own = [
            functions(value) for name, value in vars(thing).items() if name == "__init__" or not name.startswith("__")
        ]
        return [f for found in own for f in found if f.__module__ == thing.__module__]
    thing = inspect.unwrap(getattr(thing, "__func__", thing))
    return [thing] if inspect.isfunction(thing) else []


def named(result: Result) -> list[Any]:
    """Functions that an entry of the atlas names, ``also`` included."""
    return [f for name in (result.code, *result.also) for f in functions(result.resolve(name))]


# ---- mutants of the lines


class _Arithmetic(ast.NodeVisitor):
    """Places in a function where numbers are computed: not in errors, subscripts, tests or messages."""

    def __init__(self) -> None:
        self.found: list[tuple[str, ast.AST]] = []

    def visit_Raise(self, node: ast.Raise) -> None: ...

    def visit_Assert(self, node: ast.Assert) -> None: ...

    def visit_Compare(self, node: ast.Compare) -> None: ...

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None: ...

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        for line in (*node.body, *node.orelse):
            self.visit(line)

    def visit_Call(self, node: ast.Call) -> None:
        if getattr(node.func, "id", "") not in ("range", "slice", "reversed"):
            self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        text = any(isinstance(x, ast.Constant) and isinstance(x.value, str) for x in (node.left, node.right))
        if not text and not any(isinstance(x, ast.List | ast.Tuple) for x in (node.left, node.right)):
            if isinstance(node.op, ast.Add | ast.Sub):
                self.found += [("sign", node), ("dropped term", node)]
            elif isinstance(node.op, ast.Mult | ast.MatMult | ast.Div):
                self.found.append(("factor", node))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
            self.found.append(("sign", node))
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, ast.Load) and node.attr == "T":
            self.found.append(("transpose", node))
        self.generic_visit(node)


class _Formulas(_Arithmetic):
    """The same in a recursion, where algebra is written in calls, too: ``x.dot(y)``, ``P.less(g, u)``.

    Algebra in memory says its formula in arguments: base − A x is ``multiply(A, x, base=base, sign=-1.0)``.
    """

    PRODUCTS, SUMS = ("dot", "applied"), ("plus", "less", "plus_cross", "less_symmetric", "plus_body")

    def visit_Call(self, node: ast.Call) -> None:
        method = getattr(node.func, "attr", None)
        if method in self.PRODUCTS:
            self.found.append(("factor", node))
        elif method in self.SUMS:
            self.found.append(("dropped term", node))
        super().visit_Call(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg == "sign" and isinstance(node.value, ast.UnaryOp):
            self.found.append(("sign", node))
        elif node.arg == "base" and not isinstance(node.value, ast.Constant):
            self.found.append(("dropped term", node))
        self.generic_visit(node)


def _broken(kind: str, node: Any) -> ast.AST:
    """The node with one thing wrong in it."""
    if kind == "refusal":
        return ast.Pass()
    if isinstance(node, ast.keyword):
        return ast.keyword(node.arg, node.value.operand if kind == "sign" else ast.Constant(None))
    if kind == "sign":
        if isinstance(node, ast.UnaryOp):
            return node.operand
        return ast.BinOp(node.left, ast.Sub() if isinstance(node.op, ast.Add) else ast.Add(), node.right)
    if kind == "dropped term":
        return node.func.value if isinstance(node, ast.Call) else node.left
    if kind == "factor":
        return ast.BinOp(node, ast.Mult(), ast.Constant(1.01))
    return node.value  # the transpose forgotten


class _Replace(ast.NodeTransformer):
    def __init__(self, at: int, kind: str) -> None:
        self.at, self.kind = at, kind

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        return _broken(self.kind, node) if getattr(node, "mark", None) == self.at else node


def places(function: Any) -> tuple[Any, list[tuple[str, Any]]]:
    """The tree of a function, and what could be broken in it."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError, TypeError):
        return None, []
    body = tree.body[0]
    if not isinstance(body, ast.FunctionDef):
        return None, []
    body.decorator_list = []
    arithmetic = _Formulas() if ".recursions." in function.__module__ else _Arithmetic()
    for line in body.body:
        arithmetic.visit(line)
    return tree, arithmetic.found


def line_mutants(function: Any, wanted: Callable[[Any], bool] = lambda node: True) -> Iterator[Mutant]:
    """A few of each kind, spread over those of the function's own lines that are wanted."""
    tree, found = places(function)
    by_kind = defaultdict(list)
    for i, (kind, node) in enumerate(found):
        if wanted(node):
            by_kind[kind].append((i, node))
    rng = random.Random(function.__qualname__)
    for kind, found in by_kind.items():
        for i, node in rng.sample(found, min(PER_KIND, len(found))):
            node.mark = i
            changed = _Replace(i, kind).visit(copy.deepcopy(tree))
            del node.mark
            where = f"{function.__qualname__}, line {node.lineno}"
            yield from _with_code(kind, where, function, changed)


def _with_code(kind: str, where: str, function: Any, changed: Any) -> Iterator[Mutant]:
    """The mutant whose code is that of the changed tree, if it fits where the old one was."""
    if "__class__" in function.__code__.co_freevars:  # a method that says super()
        changed.body = [ast.ClassDef("Whole", [], [], changed.body, [])]
    code = compile(ast.fix_missing_locations(changed), f"<mutant of {function.__qualname__}>", "exec")
    while code.co_name != function.__name__:
        code = next(c for c in code.co_consts if inspect.iscode(c) and c.co_name in ("Whole", function.__name__))
    if code.co_freevars == function.__code__.co_freevars:
        yield Mutant(kind, where, functools.partial(setattr, function, "__code__", code))


# ---- mutants of what is returned


def _altered(kind: str, value: Any, depth: int = 0) -> Any:
    """A result with its numbers broken, as deep as results are nested."""
    if isinstance(value, float | np.floating):
        return {"sign": -value, "factor": value * 1.01, "dropped term": 0.0 * value, "transpose": value * 1.01}[kind]
    if isinstance(value, bool | np.bool_):
        return not value
    if isinstance(value, np.ndarray) and value.dtype.kind == "b":
        return ~value
    if isinstance(value, np.ndarray):
        return _altered_array(kind, value) if value.dtype.kind == "f" else value
    if isinstance(value, Operator):
        return {"sign": -1.0, "factor": 1.01}.get(kind, 0.99) * value
    if isinstance(value, Blocks):
        return value.like(_altered_array("factor" if kind == "transpose" else kind, value.flat))
    if depth > 2:
        return value
    if hasattr(value, "_fields"):
        return value._replace(**{name: _altered(kind, getattr(value, name), depth + 1) for name in value._fields})
    if isinstance(value, list | tuple):
        return type(value)(_altered(kind, x, depth + 1) for x in value)
    if isinstance(value, StateSpace):
        known = {
            name: _altered(kind, getattr(value, name)) for name in ("xi", "eta") if getattr(value, name) is not None
        }
        return value.replace(H=[_altered(kind, block) for block in value.H], **known)
    if dataclasses.is_dataclass(value) and type(value).__name__ not in ("System", "Tree"):
        wrong = copy.copy(value)
        for field in dataclasses.fields(value):
            object.__setattr__(wrong, field.name, _altered(kind, getattr(value, field.name), depth + 1))
        return wrong
    return value


def _altered_array(kind: str, x: Any) -> Any:
    if kind == "sign":
        return -x
    if kind == "transpose" and x.ndim > 1 and x.shape[-1] == x.shape[-2] and not np.allclose(x, np.swapaxes(x, -1, -2)):
        return np.swapaxes(x, -1, -2)
    if kind == "dropped term" and x.size:
        out = np.array(x)
        out.reshape(-1)[np.argmax(np.abs(np.nan_to_num(out)).reshape(-1))] = 0.0
        return out
    return x * 1.01


def result_mutants(function: Any) -> Iterator[Mutant]:
    """Every result of the function sign-turned, one per cent off, or short of its largest number."""
    if function.__code__.co_freevars:
        return
    for kind in ("sign", "factor", "dropped term"):

        def apply(kind: str = kind) -> None:
            whole = type(function)(
                function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
            )
            whole.__kwdefaults__ = function.__kwdefaults__
            function.__globals__["_atlas_mutant"] = lambda *a, **k: _altered(kind, whole(*a, **k))
            function.__defaults__, function.__kwdefaults__ = None, None
            function.__code__ = (lambda *a, **k: _atlas_mutant(*a, **k)).__code__  # noqa: F821

        yield Mutant(kind, f"result of {function.__qualname__}", apply)


def refusal_mutants(function: Any) -> Iterator[Mutant]:
    """Every refusal left out, one at a time: for results that say what is impossible."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    tree.body[0].decorator_list = []  # type: ignore[attr-defined]
    for i, node in enumerate(node for node in ast.walk(tree) if isinstance(node, ast.Raise)):
        node.mark = i  # type: ignore[attr-defined]
        changed = _Replace(i, "refusal").visit(copy.deepcopy(tree))
        del node.mark  # type: ignore[attr-defined]
        yield from _with_code("refusal", f"{function.__qualname__}, line {node.lineno}", function, changed)


def mutants(result: Result) -> list[Mutant]:
    """At most MOST mutants of what an entry names; of results only where its own lines compute little."""
    everything = named(result)
    lines = [m for f in everything for m in line_mutants(f)]
    if len(lines) > MOST:
        lines = random.Random(result.id).sample(lines, MOST)
    if len(lines) >= 3 and not result.broken:
        return lines
    if result.broken == "refusal":
        return [m for f in everything for m in refusal_mutants(f)]
    return [] if "identities" in (result.code or "") else [m for f in everything[:2] for m in result_mutants(f)]


# ---- running tests


def test_of(nodeid: str) -> str:
    """The test function of one of its cases."""
    return nodeid.partition("[")[0]


def is_assertion(error: BaseException | None) -> bool:
    """Whether a test failed because it looked: an assertion, or ``pytest.raises`` that met no error or another text."""
    if isinstance(error, BaseExceptionGroup):  # several examples of Hypothesis
        return any(map(is_assertion, error.exceptions))
    return isinstance(error, AssertionError | pytest.fail.Exception)


class _Outcome:
    """Which test functions failed by an assertion, which crashed, and which code ran in each, fixtures included."""

    def __init__(self, watched: dict[Any, str]) -> None:
        self.watched, self.ran = watched, defaultdict(set)
        self.failed, self.crashed, self.passed = set(), set(), set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        test = test_of(item.nodeid)
        if not self.watched:
            return (yield)
        seen = self.ran[test]

        def profile(frame: Any, event: str, _: Any) -> None:
            if event == "call" and frame.f_code in self.watched:
                seen.add(self.watched[frame.f_code])

        sys.setprofile(profile)
        try:
            return (yield)
        finally:
            sys.setprofile(None)

    def pytest_runtest_setup(self, item: Any) -> None:
        if test_of(item.nodeid) in self.failed:
            pytest.skip("failed already for another parameter")

    def fates(self, tests: list[str]) -> dict[str, str]:
        """Of a mutant, by test: "killed", "crashed" or "survived"."""
        return {
            test: "killed" if test in self.failed else "crashed" if test in self.crashed else "survived"
            for test in tests
        }

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        report, test = (yield), test_of(item.nodeid)
        if report.failed:
            (self.failed if is_assertion(call.excinfo.value) else self.crashed).add(test)
        elif report.passed and report.when == "call":
            self.passed.add(test)
        return report


def run(tests: list[str], watched: dict[Any, str] | None = None, plugins: Sequence[Any] = ()) -> _Outcome:
    """Run the tests in this process, silently."""
    outcome = _Outcome(watched or {})
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-m",
        "not slow",
        "--assert=plain",
        "--no-header",
        "--tb=no",
        "--show-capture=no",
    ]
    silent = os.open(os.devnull, os.O_WRONLY)
    kept = [os.dup(1), os.dup(2)]
    os.dup2(silent, 1), os.dup2(silent, 2)
    try:
        pytest.main(
            [*options, "--rootdir", str(ROOT), *(str(ROOT / test) for test in tests)], plugins=[outcome, *plugins]
        )
    finally:
        os.dup2(kept[0], 1), os.dup2(kept[1], 2)
        for fd in (*kept, silent):
            os.close(fd)
    return outcome


def in_a_copy(work: Callable[[], Any], seconds: int) -> Any:
    """What ``work`` returns in a fork of this process; None if it takes too long or dies.

    Seconds of the processor count: the machine may have more to do.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.alarm(8 * seconds)  # for one that waits for ever
        try:
            answer = json.dumps(work()).encode()
            os.write(write, answer)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return json.loads(answer) if answer else None


# ---- the evidence


def measure(results: list[Result], tell: Callable[[str], None] = lambda line: None) -> dict[str, dict[str, Any]]:
    """Evidence by id: whether the test passes and runs the code, mutants made, mutants killed, survivors."""
    os.environ["KFDYN_EXAMPLES"] = "mutants"  # conftest.py loads this profile
    codes = {f.__code__: f.__qualname__ for r in results for f in named(r)}
    tests = sorted({r.test for r in results})
    start = time.perf_counter()
    baseline = run(tests, codes)
    tell(f"{len(tests)} tests as they are ({time.perf_counter() - start:.0f} s)")
    out: dict[str, dict[str, Any]] = {}
    for name, group in itertools.groupby(
        sorted(results, key=lambda r: (r.code, r.also)), key=lambda r: (r.code, r.also)
    ):
        entries = list(group)
        start = time.perf_counter()
        wanted = sorted({r.test for r in entries})
        for r in entries:
            seen = baseline.ran[r.test]
            executed = any(f.__qualname__ in seen for f in functions(r.resolve()))
            passes = r.test in baseline.passed and r.test not in baseline.failed | baseline.crashed
            out[r.id] = {
                "passes": passes,
                "executed": executed,
                "mutants": 0,
                "killed": 0,
                "crashed": 0,
                "survivors": [],
            }
        for mutant in mutants(entries[0]):

            def work(mutant: Mutant = mutant, wanted: list[str] = wanted) -> dict[str, str]:
                mutant.apply()
                return run(wanted).fates(wanted)

            fates = in_a_copy(work, SECONDS) or {}
            for r in entries:
                tally(out[r.id], fates.get(r.test, "crashed"), f"{mutant.kind}: {mutant.where}")
        tell(f"{name[0]}: " + ", ".join(f"{r.id} {out[r.id]['killed']}/{out[r.id]['mutants']}" for r in entries)
             + f"  ({time.perf_counter() - start:.0f} s)")  # fmt: skip
    return out


def tally(one: dict[str, Any], fate: str, what: str) -> None:
    """Count a mutant that was killed, has survived or has crashed."""
    if fate == "crashed":
        one["crashed"] += 1
        return
    one["mutants"] += 1
    if fate == "killed":
        one["killed"] += 1
    else:
        one["survivors"].append(what)


def _proven(one: dict[str, Any]) -> bool:
    return one["passes"] and one["executed"] and one["mutants"] > 0 and not one["survivors"]


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ids", nargs="*", help="only these, kept beside what was measured before")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if something is not proven")
    arguments = parser.parse_args()
    chosen = arguments.ids
    results = [r for r in atlas().values() if not r.is_open and (not chosen or r.id in chosen)]
    before = json.loads(EVIDENCE.read_text(encoding="utf-8")) if EVIDENCE.exists() else {}
    new = measure(results, lambda line: print(line, flush=True))
    if arguments.check:
        weak = {key: one for key, one in new.items() if not _proven(one)}
        sys.exit(f"not proven: {json.dumps(weak, indent=1, ensure_ascii=False)}" if weak else 0)
    for key, one in new.items():  # what sweep_evidence.py has measured stays
        one |= {name: before[key][name] for name in ("recursions",) if name in before.get(key, {})}
    found = (before if chosen else {}) | new
    known = {r.id: found[r.id] for r in atlas().values() if r.id in found and not r.is_open}
    EVIDENCE.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    weak = [
        key for key, e in known.items() if not (e["passes"] and e["executed"]) or e["survivors"] or not e["mutants"]
    ]
    print(f"{len(known)} measured, {sum(e['mutants'] for e in known.values())} mutants, weak: {weak}")


if __name__ == "__main__":
    main()
