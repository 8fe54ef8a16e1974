"""Records, tables and small algebra against NumPy, on compiled lanes, Python's floats and known numbers."""

import numpy as np
import pytest

from kfdyn.sweeps import Checked, Column, Mat3, Record, Sym3, Table, Tag, Vec3, loop, passes, sweep

BODY = Record(mass=float, l=Vec3, R=Mat3, J=Sym3, parent=float)
MODEL = Table(n=int, bodies=(float,), order=(int,))


def full(s):
    return np.array([[s[0], s[1], s[2]], [s[1], s[3], s[4]], [s[2], s[4], s[5]]])


def work(body):
    """What the classes can do, twelve rows of three."""
    l, R, J, m = body.l, body.R, body.J, body.mass
    return [
        R @ l, R.turned_back(l), J @ l, l.cross(R @ l), l * m - (-l), l.plus_cross(R @ l, l), R.plus_applied(l, l),
        J.plus_applied(l, l), (R @ R.T).row(0), (R + R).column(1), J.minus_outer(l, l) @ l, (J + J) @ l,
    ]  # fmt: skip


def expected(row):
    m, l, R, J = row[0], row[1:4], row[4:13].reshape(3, 3), full(row[13:19])
    return [
        R @ l, R.T @ l, J @ l, np.cross(l, R @ l), l * m + l, l + np.cross(R @ l, l), l + R @ l, l + J @ l,
        (R @ R.T)[0], 2 * R[:, 1], (J - np.outer(l, l)) @ l, 2 * J @ l,
    ]  # fmt: skip


@sweep
def compiled(rows, workspace, out, lanes):
    """Rows of bodies in lanes: into the workspace as records, out of it into the algebra."""
    numbers = workspace.aligned().lanes(lanes)
    kept = BODY.rows(numbers)
    for start, step in passes(lanes, 0, rows.shape[0]):
        given = Column(rows.part(0), start * BODY.width, step * BODY.width, lanes)
        for i in loop(BODY.width):
            numbers[BODY.width + i] = given[i]
        answers = Column(out.part(0), start * 36, step * 36, lanes)
        kept[0].l = kept[1].l
        kept[1].l = kept[0].l
        for i, x in enumerate(number for vector in work(kept[1]) for number in vector):
            numbers[2 * BODY.width + i] = x
        answers.copy(numbers.part(2 * BODY.width), 36)


@pytest.mark.parametrize("size", [1, 3, 8, 13])
@pytest.mark.parametrize("lanes", [1, 4, 8])
def test_algebra_in_lanes(lanes, size):
    rows = np.random.default_rng(lanes).normal(size=(size, BODY.width))
    out = np.full((size, 36), np.nan)
    compiled(rows, np.empty(lanes * (2 * BODY.width + 36) + 8), out, Tag(lanes))
    np.testing.assert_allclose(out, [np.concatenate(expected(row)) for row in rows], rtol=0, atol=1e-13)


def test_algebra_on_python_numbers_and_known_ones():
    row = np.random.default_rng(1).normal(size=BODY.width)
    for memory in (Checked(row), Checked(row.tolist())):
        made = [list(vector) for vector in work(BODY.rows(memory)[0])]
        np.testing.assert_allclose(made, expected(row), rtol=0, atol=1e-13)
    with pytest.raises(IndexError):
        BODY.rows(Checked(row))[1].mass  # noqa: B018
    with pytest.raises(IndexError):
        Checked([1.0])[1]
    with pytest.raises(AttributeError, match="has no weight"):
        BODY.rows(Checked(row))[0].weight  # noqa: B018
    with pytest.raises(ValueError, match="l has 3 numbers, not 1"):
        BODY.rows(Checked(row))[0].l = 1.0


def test_symbols_in_the_algebra():
    sympy = pytest.importorskip("sympy")
    x, y, z = sympy.symbols("x y z")
    made = Sym3(x, y, z, x, y, z) @ Vec3(1, y, 0)
    assert [sympy.expand(e) for e in made] == [x + y**2, y + x * y, z + y**2]


@sweep
def total_mass(address, out):
    """Σ mass, over a table behind an address."""
    model = MODEL.at(address)
    bodies = BODY.rows(model.bodies)
    for i in loop(model.n):
        out[0] += bodies[model.order[i]].mass


def test_a_table_behind_an_address():
    bodies = BODY.filled(4, mass=[1, 2, 3, 4], l=np.ones((4, 3)))
    facts = {"n": 3, "bodies": bodies, "order": [3, 1, 0]}
    address, out = MODEL.packed(**facts), np.zeros(1)
    total_mass(address, out)
    assert out[0] == 7
    plain = MODEL.at(address)
    assert sum(BODY.rows(plain.bodies)[plain.order[i]].mass for i in range(plain.n)) == 7
    with pytest.raises(IndexError):
        plain.order[3]
    with pytest.raises(TypeError, match="has no extra"):
        MODEL.packed(**facts, extra=1)
