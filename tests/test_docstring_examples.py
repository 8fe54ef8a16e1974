"""Every public function and class has an example that runs (pytest --doctest-modules runs them)."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

API = Path(__file__).parents[1] / "docs" / "api.md"


def public_names():
    """(dotted name, object) of every entry of the reference."""
    room = ""
    for line in API.read_text(encoding="utf-8").splitlines():
        if heading := re.fullmatch(r"\.\. currentmodule:: ([\w.]+)", line):
            room = heading[1]
        elif entry := re.fullmatch(r"   ([\w.]+)", line):
            *modules, name = entry[1].split(".")
            yield f"{room}.{entry[1]}", getattr(importlib.import_module(".".join([room, *modules])), name)


def has_example(thing):
    """Whether its own docstring (not one it inherits) has an Examples section with code that computes something."""
    text = inspect.cleandoc(thing.__dict__.get("__doc__") or "" if inspect.isclass(thing) else thing.__doc__ or "")
    _, _, section = text.partition("\nExamples\n--------\n")
    return any(example.want for example in doctest.DocTestParser().get_examples(section))


def test_every_public_name_has_an_example():
    names = dict(public_names())
    assert len(names) > 150
    lacking = {name for name, thing in names.items() if not has_example(thing)}
    assert lacking == set()


def test_the_audit_can_fail():
    class Silent:
        """Examples are for others."""

    class Idle:
        """Has one that shows nothing.

        Examples
        --------
        >>> x = 1
        """

    class Shown:
        """Has one.

        Examples
        --------
        >>> 1 + 1
        2
        """

    class Heir(Shown):
        pass

    assert [has_example(thing) for thing in (Silent, Idle, Shown, Heir)] == [False, False, True, False]


@pytest.mark.parametrize("room", ["spatial", "multibody", "io", "viz", "dynamics", "duality", "estimation", "errors"])
def test_the_rooms_are_in_the_reference(room):
    assert any(name.startswith(f"kfdyn.{room}.") for name, _ in public_names())
