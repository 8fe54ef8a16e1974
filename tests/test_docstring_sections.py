"""Docstrings in the reference style: every parameter of a public function, what it returns, every field of a result.

Parameters that all functions of a package have are explained once, in the docstring of the package.
"""

import dataclasses
import inspect
import re
import sys

from test_docstring_examples import public_names


def section(thing, heading):
    """Lines of a section of a docstring."""
    text = inspect.getdoc(thing) or ""
    found = re.search(rf"^{heading}\n-+\n(.*?)(?=^\S[^\n]*\n-{{3,}}\n|\Z)", text, re.DOTALL | re.MULTILINE)
    return found[1].splitlines() if found else []


def documented(thing, heading):
    """Names that begin the entries of a section."""
    entries = [line.partition(" :")[0] for line in section(thing, heading) if line[:1].strip()]
    return {name.strip().lstrip("*") for entry in entries for name in entry.split(",")}


def shared(thing):
    """Parameters that a package explains once, for all of its functions."""
    names = set()
    package = thing.__module__
    while package := package.rpartition(".")[0]:
        names |= documented(sys.modules[package], "Parameters")
    return names


def says_its_result(thing):
    """Whether a function has a section on what it returns, or a package of few arguments gives its shape in a line."""
    first = (inspect.getdoc(thing) or "").partition("\n")[0]
    return section(thing, "Returns") or (shared(thing) and re.search(r"\([\w,Σ ]*\)", first))


def fields(thing):
    """Public fields of a named tuple or of a dataclass; those it inherits are told where they come from."""
    names = getattr(thing, "_fields", None) or [field.name for field in dataclasses.fields(thing)]
    return [name for name in names if name in inspect.get_annotations(thing) and not name.startswith("_")]


def test_every_parameter_is_documented():
    for name, thing in public_names():
        if not inspect.isclass(thing):
            lacking = set(inspect.signature(thing).parameters) - documented(thing, "Parameters") - shared(thing)
            assert not lacking, f"{name}: {lacking}"


def test_no_parameter_is_documented_that_is_not_there():
    for name, thing in public_names():
        if not inspect.isclass(thing):
            invented = documented(thing, "Parameters") - set(inspect.signature(thing).parameters)
            assert not invented, f"{name}: {invented}"


def test_every_function_says_what_it_returns():
    for name, thing in public_names():
        if not inspect.isclass(thing) and inspect.signature(thing).return_annotation != "None":
            assert says_its_result(thing), name


def test_every_field_of_a_result_is_documented():
    """In the docstring of the class, or in a string below the field."""
    for name, thing in public_names():
        if inspect.isclass(thing) and (dataclasses.is_dataclass(thing) or hasattr(thing, "_fields")):
            told = (inspect.getdoc(thing) or "") + " ".join(
                re.findall(r"(\w+): [^\n]+\n\s+\"\"\"", inspect.getsource(thing))
            )
            lacking = [field for field in fields(thing) if not re.search(rf"\b{field}\b", told)]
            assert not lacking, f"{name}: {lacking}"


def test_the_reader_of_sections_can_fail():
    def short(a, b):
        """One.

        Parameters
        ----------
        a : int
            First.

        Examples
        --------
        >>> short(1, 2)
        """

    assert documented(short, "Parameters") == {"a"}
    assert section(short, "Returns") == [] and not says_its_result(short)
    assert not shared(short)
