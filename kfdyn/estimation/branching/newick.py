"""Phylogenies from Newick text: ``((A:1,B:1):0.5,C:1.5);``."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from kfdyn.errors import TreeError
from kfdyn.estimation.model.blocks import FloatArray, IntArray

_TOKEN = re.compile(r"""([(),;:])|'((?:[^']|'')*)'|"((?:[^"]|"")*)"|((?!")[^\s()\[\],;:']+)""")
_BLANK = re.compile(r"\s*")
_BRACKET = re.compile(r"[\[\]]")


class Newick(NamedTuple):
    """A tree as read: parents (−1 at the root), lengths of the branches to them (NaN if not given), names ('')."""

    parent: IntArray
    length: FloatArray
    names: list[str]


def read_newick(text: str) -> Newick:
    """Read one tree; children come before their parents in the text, but nodes are numbered as their names appear.

    Comments in brackets are skipped, also nested ones, as is a byte-order mark; names in single or double quotes may
    hold anything, a doubled quote being a quote. Names may repeat, as support values do. Underscores stay as they are.

    Raises
    ------
    TreeError
        With the place where the text stops being a tree.

    Examples
    --------
    >>> read_newick("((A:1,B:2):0.5,'C d':3)root;").names
    ['A', 'B', '', 'C d', 'root']
    """
    if not isinstance(text, str):
        raise TreeError(f"Newick text must be a str, not {type(text).__name__}; read a file first")
    parent: list[int] = []
    length: list[float] = []
    names: list[str] = []
    above: list[list[int]] = []  # for each open parenthesis the children found so far
    done: list[int] | None = None  # children of the node whose name and length come next; None before a node
    node = -1  # the node just finished, or −1
    at, want_length = int(text.startswith("\ufeff")), False

    def finish(children: list[int], name: str) -> int:
        for child in children:
            parent[child] = len(parent)
        parent.append(-1)
        length.append(np.nan)
        names.append(name)
        return len(parent) - 1

    while True:
        at = _skip(text, at)
        match = _TOKEN.match(text, at)
        if match is None:
            rest = text[at:].strip()
            raise _error(text, at, f"{rest[:12]!r} cannot be read" if rest else "the tree ends without ';'")
        sign, single, double, word = match.groups()
        if sign is None:
            value = word
            if value is None:
                value = double.replace('""', '"') if single is None else single.replace("''", "'")
            if want_length:
                length[node] = _number(text, at, value)
                want_length = False
            elif node >= 0:
                raise _error(text, at, f"{value!r} follows a node that has its name already; ',' or ')' is missing")
            else:
                node, done = finish(done or [], value), None
        elif want_length:
            raise _error(text, at, f"a length should stand between ':' and {sign!r}")
        elif sign == "(":
            if node >= 0 or done is not None:
                raise _error(text, at, "'(' follows a node; ',' is missing before it")
            above.append([])
        else:
            if node < 0:  # a node without a name
                node, done = finish(done or [], ""), None
            if sign == ":":
                if not np.isnan(length[node]):
                    raise _error(text, at, "the node has a length already")
                want_length = True
            elif sign == ";":
                if above:
                    raise _error(text, at, f"{len(above)} '(' not closed")
                end = _skip(text, match.end())
                if end < len(text):
                    raise _error(text, end, "more text follows the tree; give one tree at a time")
                return Newick(np.array(parent), np.array(length), names)
            else:
                if not above:
                    raise _error(text, at, f"{sign!r} outside of every '('")
                above[-1].append(node)
                node = -1
                if sign == ")":
                    done = above.pop()
        at = match.end()


def _skip(text: str, at: int) -> int:
    """Return the position after blanks and comments; comments may be nested."""
    while True:
        at = _BLANK.match(text, at).end()  # type: ignore[union-attr]
        if not text.startswith("[", at):
            return at
        begin, depth = at, 0
        while depth or at == begin:
            bracket = _BRACKET.search(text, at)
            if bracket is None:
                raise _error(text, begin, "the comment is not closed; each '[' in it needs a ']'")
            depth += 1 if bracket.group() == "[" else -1
            at = bracket.end()


def _number(text: str, at: int, value: str) -> float:
    try:
        number = float(value if "_" not in value else "")  # Python reads 1_000 as a number; Newick has no such digits
    except ValueError:
        raise _error(text, at, f"the length {value!r} is not a number") from None
    if not 0.0 <= number < np.inf:
        raise _error(text, at, f"the length {value} is not a finite number of 0 or more")
    return number


def _error(text: str, at: int, what: str) -> TreeError:
    shown = text[max(0, at - 20) : at] + "⟨here⟩" + text[at : at + 12]
    return TreeError(f"Newick text, character {at + 1}: {what}: …{shown}…")
