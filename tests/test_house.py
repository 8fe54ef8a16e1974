"""No import cycles inside a room, imports inside functions counted; no folder of more than fifteen files."""

import ast
import re
from pathlib import Path

import kfdyn

ROOT = Path(kfdyn.__file__).parent


def modules():
    """Path of every module by its name, the front doors of the rooms left out."""
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if "." in name:
            found[name] = path
    return found


def imports_of(path, names):
    """Names of modules that a file imports, but for those that only types are checked with."""
    tree, package = ast.parse(path.read_text(encoding="utf-8")), ROOT.name
    skipped = [node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)]
    typing = {id(inner) for node in skipped for inner in ast.walk(node)}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and id(node) not in typing:
            module = node.module.removeprefix(f"{package}.")
            found |= {module, *(f"{module}.{alias.name}" for alias in node.names)} & names
        elif isinstance(node, ast.Import) and id(node) not in typing:
            found |= {alias.name.removeprefix(f"{package}.") for alias in node.names} & names
    return found


def reached(name, graph):
    """All that a module imports, however far."""
    found, left = set(), [name]
    while left:
        new = graph[left.pop()] - found
        found |= new
        left += new
    return found


def in_cycles():
    """Names of modules that import themselves by way of others in their room."""
    paths = modules()
    names, graph = set(paths), {}
    for name, path in paths.items():
        room = name.partition(".")[0]
        graph[name] = {other for other in imports_of(path, names) if other.partition(".")[0] == room}
    return {name for name in graph if name in reached(name, graph)}


def test_no_import_cycles():
    found = in_cycles()
    assert not found, f"these import themselves by way of others: {sorted(found)}"


def test_a_cycle_by_an_import_inside_a_function_is_found(tmp_path):
    """The test above can fail: it sees imports inside functions, and not those for types alone."""
    names = {"room.one", "room.two", "room.three"}
    file = tmp_path / "one.py"
    file.write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from kfdyn.room.three import C\n"
        "def f():\n    from kfdyn.room import two\n"
    )
    assert imports_of(file, names) == {"room.two"}
    graph = {"room.one": {"room.two"}, "room.two": {"room.one"}, "room.three": {"room.one"}}
    assert [name for name in graph if name in reached(name, graph)] == ["room.one", "room.two"]


def test_no_folder_has_more_than_fifteen_files():
    counts = {folder: len(list(folder.glob("*.py"))) for folder in {path.parent for path in ROOT.rglob("*.py")}}
    assert not {folder.name for folder, count in counts.items() if count > 15}


#: Where a file may ask which kind of system it has: the files of the kinds. Sensors are to follow.
KINDS = ("multibody/kinds", "multibody/system", "multibody/coordinates/", "multibody/flexible/", "dynamics/loops/")
LEFT = ("dynamics/sensors/",)
ASKS = re.compile(
    r"\bis_tree\b|isinstance\([^)]*\b(?:Flexible)?System\b|type\(\w+\) is (?:not )?System\b"
    r"|\b(?:if|and|or|not)\b[^#\n]*\bsystem\.(?:loops|couplings)\b"
)


def test_only_kinds_of_systems_know_their_kind():
    """A function that asks has to be found and changed for every new kind; give systems a member instead.

    Refusals are in ``multibody/kinds.py``; what a kind does in its own way, ``dynamics/solving/kinds.py`` finds.
    """
    asking = {
        str(path.relative_to(ROOT)): found.group()
        for path in ROOT.rglob("*.py")
        for found in [ASKS.search(path.read_text(encoding="utf-8"))]
        if found and not str(path.relative_to(ROOT)).startswith(KINDS + LEFT)
    }
    assert not asking


def test_an_ask_is_found():
    """The test above can fail."""
    assert ASKS.search("    if system.loops:") and ASKS.search("x = 1 if not system.is_tree else 2")
    assert ASKS.search("if isinstance(system, FlexibleSystem):") and not ASKS.search("loops = system.loops")
