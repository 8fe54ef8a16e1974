"""Write the exercises as notebooks. Run it after a change of a script; a test holds the two equal.

A notebook needs nothing but kfdyn. It has the question, a cell to be filled in, the check (folded), the verdict, and
the solution, which folds out. Scripts and notebooks are one text: exercise_N.py and solution_N.py.
"""

import ast
import json
import re
from pathlib import Path

HERE = Path(__file__).parent


def parts(path):
    """(docstring, imports, answer, rest): the statements of a script by their kind, as they are written."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    tree = ast.parse(text)
    imports, answer, rest = [], [], []
    for node in tree.body[1:]:
        source = "\n".join(lines[node.lineno - 1 : node.end_lineno])
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(source)
        elif isinstance(node, ast.If):  # what the script does when it is run; a notebook has cells for that
            continue
        elif isinstance(node, ast.FunctionDef) and (
            "raise NotImplementedError(" in source or path.stem.startswith("solution")
        ):
            answer.append(source)
        else:
            rest.append((isinstance(node, ast.FunctionDef), source))
    return ast.get_docstring(tree), imports, answer, rest


def spaced(statements):
    """Functions two lines apart, other statements together."""
    text = ""
    for is_function, source in statements:
        text += ("\n\n\n" if is_function and text else "\n" * bool(text)) + source
    return text


def solution(number):
    """Words and code of a solution; what it takes from another solution is put before it."""
    words, imports, answer, rest = parts(HERE / f"solution_{number}.py")
    borrowed = []
    for line in imports:
        if match := re.fullmatch(r"from (solution_\w+) import \w+", line):
            borrowed += parts(HERE / f"{match[1]}.py")[2]
    kept = [line for line in imports if not re.match(r"from (exercise|solution)_", line)]
    code = spaced([(False, line) for line in kept] + rest + [(True, source) for source in borrowed + answer])
    return words.partition("\n\n")[2], code


def name_of_answer(number):
    """Name of the function that a student writes."""
    return ast.parse(parts(HERE / f"exercise_{number}.py")[2][0]).body[0].name


def notebook(number):
    """The notebook of an exercise, as the dictionary that Jupyter reads."""
    question, imports, answer, rest = parts(HERE / f"exercise_{number}.py")
    title, _, text = question.partition("\n\n")
    words, code = solution(number)
    _, helps, _, says = parts(HERE / "verdict.py")
    judge = spaced([(False, line) for line in helps] + rest + says)
    fold = "<details>\n<summary>A solution (click to unfold)</summary>\n\n"
    cells = [
        ("question", "markdown", f"# {title.rstrip('.')}\n\n{text}", {}),
        ("imports", "code", "\n".join(imports), {}),
        ("answer", "code", answer[0], {}),
        ("check", "code", f"# The check. Run it; there is no need to read it.\n{judge}", folded()),
        ("verdict", "code", f"verdict(check, {name_of_answer(number)})", {}),
        ("solution", "markdown", f"{fold}{words}\n\n```python\n{code}\n```\n\n</details>", {}),
    ]
    return {
        "cells": [cell(*each) for each in cells],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def folded():
    """What JupyterLab and its older sister read to show a cell closed."""
    return {"jupyter": {"source_hidden": True}, "tags": ["hide-input"]}


def cell(name, kind, source, metadata):
    entry = {"cell_type": kind, "id": name, "metadata": metadata, "source": source.splitlines(keepends=True)}
    return entry | {"execution_count": None, "outputs": []} if kind == "code" else entry


def written(number):
    """The notebook as text."""
    return json.dumps(notebook(number), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for path in sorted(HERE.glob("exercise_*.py")):
        number = path.stem.removeprefix("exercise_")
        path.with_suffix(".ipynb").write_text(written(number), encoding="utf-8")
        print(path.with_suffix(".ipynb").name)
