"""Newick text: what is read, and what is refused with the place."""

import numpy as np
import pytest

from kfdyn.errors import TreeError
from kfdyn.estimation.branching.newick import read_newick


def test_names_lengths_and_parents():
    parent, length, names = read_newick("((A:1,B:2e-1):0.5,'C d':3)root;")
    assert names == ["A", "B", "", "C d", "root"]
    assert parent.tolist() == [2, 2, 4, 4, -1]
    np.testing.assert_array_equal(length, [1.0, 0.2, 0.5, 3.0, np.nan])


def test_comments_blanks_quotes_and_nameless_nodes():
    assert read_newick("[a tree](A:1[x], B_b : 2 )'it''s':0.1 ; ").names == ["A", "B_b", "it's"]
    assert read_newick("(,,(,));").parent.tolist() == [5, 5, 4, 4, 5, -1]
    assert read_newick("A;").parent.tolist() == [-1]


def test_depth_is_no_limit():
    text = "(" * 5000 + "A" + "".join(f":1,B{i}:2)" for i in range(5000)) + ";"
    assert len(read_newick(text).names) == 10001


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("((A,B);", "1 '(' not closed"),
        ("(A,B)", "ends without ';'"),
        ("", "ends without ';'"),
        ("A B;", "character 3: 'B' follows a node"),
        ("(A,B);(C,D);", "more text follows"),
        ("(A:x,B);", "'x' is not a number"),
        ("(A:-1,B);", "not a finite number"),
        ("(A:inf,B);", "not a finite number"),
        ("(A:,B);", "a length should stand"),
        ("(A,B)(C);", r"'(' follows a node"),
        ("A,B;", "outside of every"),
        ("(A,B))C;", "outside of every"),
        ("(A)B:1:2;", "has a length already"),
        ("(A,'B);", "cannot be read"),
        ('(A,"B);', "cannot be read"),
        ('(A,"B"C);', "follows a node"),
        ("(A[x[y],B);", "character 3: the comment is not closed"),
    ],
)
def test_what_is_no_tree_is_refused_with_its_place(text, says):
    with pytest.raises(TreeError) as error:
        read_newick(text)
    assert says in str(error.value) and "⟨here⟩" in str(error.value)


def test_underscores_are_no_digits():
    with pytest.raises(TreeError, match="'1_000' is not a number"):
        read_newick("(A:1_000,B:1);")


def test_what_other_programs_write_is_read():
    """A byte-order mark, comments in comments, double quotes, and brackets and quotes that mean nothing in quotes."""
    assert read_newick("\ufeff(A:1,B:2);").names == ["A", "B", ""]
    assert read_newick("[a [b [c]] d](A[&x={[1]}]:1,B:2)[[]];[end [of] file]").names == ["A", "B", ""]
    quoted = read_newick('("A b":1,"say ""C"" twice":2,\'"\':3,"it\'s [x]":4);')
    assert quoted.names == ["A b", 'say "C" twice', '"', "it's [x]", ""]
    assert read_newick('(2":1,B:2);').names == ['2"', "B", ""]  # two inches
