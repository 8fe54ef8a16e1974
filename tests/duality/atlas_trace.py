"""What a test runs of the code that the atlas names; and whether that is anything at all, without breaking it.

python tests/duality/atlas_trace.py code|recursions [--ids R86:8.1 ...]      fails if something is named in vain

A refactoring may move a formula elsewhere, and then the entry that named its old place proves nothing. So every test
is run until it has come by what its entries name, and no further: a formula of each recursion, on plain numbers, and a
call of the code.
"""

from __future__ import annotations

import argparse
import inspect
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

import pytest
from atlas_evidence import functions, mutants, places, run, test_of

from kfdyn.duality.atlas import Result, atlas
from kfdyn.sweeps import Checks


class Text:
    """A function: which of its formulas could be broken, where they are in its compiled code, and what was run."""

    def __init__(self, function: Any) -> None:
        lines, first = inspect.getsourcelines(function)
        self.function, self.is_entered, self.ran = function, False, set()
        self._shift = first - 1, len(lines[0]) - len(lines[0].lstrip())
        self.wanted = {self.place(node) for _, node in places(function)[1]}
        self.codes = {code: list(code.co_positions()) for code in _codes(function.__code__)}

    def place(self, node: Any) -> tuple[int, ...]:
        """Where a node is in its file: first and last line, first and last column."""
        down, right = self._shift
        at = getattr(node, "value", node) if hasattr(node, "arg") else node  # of an argument its value is computed
        return at.lineno + down, at.end_lineno + down, at.col_offset + right, at.end_col_offset + right

    def was_run(self, node: Any) -> bool:
        """Whether the test came by."""
        return self.place(node) in self.ran


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code and that of what is defined in it: comprehensions are functions."""
    yield code
    for inner in code.co_consts:
        if inspect.iscode(inner):
            yield from _codes(inner)


class Texts(dict[Any, Text]):
    """Functions that one test is to run, each of them once."""

    def __missing__(self, function: Any) -> Text:
        self[function] = Text(function)
        return self[function]

    def behind(self, result: Result, name: str | None) -> list[Text]:
        """The functions behind a name."""
        return [self[function] for function in functions(result.resolve(name))]


@contextmanager
def traced(texts: Texts, enough: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Note what is run of some functions; once that is ``enough`` the test that runs is skipped."""
    by_code = {code: (text, positions) for text in texts.values() for code, positions in text.codes.items()}

    def enter(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code not in by_code:
            return None
        text, positions = by_code[frame.f_code]
        text.is_entered = True
        look()
        if text.wanted <= text.ran:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False

        def step(frame: Any, event: str, _: Any) -> Any:
            if event == "opcode":
                place = positions[frame.f_lasti // 2]
                if place in text.wanted and place not in text.ran:
                    text.ran.add(place)
                    look()
            return step

        return step

    def look() -> None:
        if enough():
            pytest.skip("it has come by all that is named")

    sys._getframe().f_trace_opcodes = True  # Python 3.12 asks for it before it begins to trace
    sys.settrace(enter)
    try:
        yield
    finally:
        sys.settrace(None)


class Until:
    """Ends every test as soon as it has come by what its entries name."""

    def __init__(self, results: list[Result], kind: str) -> None:
        self.kind = kind
        self.named: dict[str, dict[str, list[Text]]] = defaultdict(dict)
        self.texts: dict[str, Texts] = defaultdict(Texts)
        for r in results:
            for name in r.sweeps if kind == "recursions" else [r.code or ""]:
                test = r.test or ""
                self.named[test][f"{r.id}: {name}"] = self.texts[test].behind(r, name)

    def left(self, test: str) -> list[str]:
        """What a test has not come by."""
        return [name for name, texts in self.named[test].items() if not any(map(self._is_seen, texts))]

    def _is_seen(self, text: Text) -> bool:
        return bool(text.ran) if self.kind == "recursions" else text.is_entered

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        test = test_of(item.nodeid)
        with traced(self.texts[test], lambda: not self.left(test)):
            return (yield)

    def pytest_runtest_setup(self, item: Any) -> None:
        if not self.left(test_of(item.nodeid)):
            pytest.skip("another case has done so")


def named_in_vain(results: list[Result], kind: str) -> list[str]:
    """What entries name and their tests do not run, or what cannot be broken; this process has run nothing yet."""
    os.environ["KFDYN_EXAMPLES"] = "plain mutants" if kind == "recursions" else "mutants"
    Checks.on = kind == "recursions"
    until = Until(results, kind)
    run(list(until.named), plugins=[until])
    idle = [f"{name} (in {test})" for test in until.named for name in until.left(test)]
    return idle + [f"{r.id}: {r.code} cannot be broken" for r in results if kind == "code" and not mutants(r)]


def main() -> None:
    """Fail with words if there is any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("code", "recursions"))
    parser.add_argument("--ids", nargs="*", help="only these")
    asked = parser.parse_args()
    found = named_in_vain([r for r in atlas().values() if not asked.ids or r.id in asked.ids], asked.kind)
    sys.exit("named, but not run:\n" + "\n".join(found) if found else 0)


if __name__ == "__main__":
    main()
