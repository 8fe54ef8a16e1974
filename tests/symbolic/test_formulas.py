"""Formulas against the package's numbers, and what they look like where they can be read."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn import symbolic
from kfdyn.errors import ModelError, ShapeError, SingularError

sympy = pytest.importorskip("sympy")

ROBOTS = {
    "double pendulum": kf.models.double_pendulum,
    "PUMA 560": kf.models.puma560,
    "Stanford arm": kf.models.stanford_arm,
    "free flyer": kf.models.free_flyer,
    "tree": lambda: kf.models.random_tree(5, seed=3, trees=2),
}
FORMULAS = {"mass_matrix": 1, "mass_matrix_inverse": 1, "bias_forces": 2, "forward_dynamics": 3}


def states(system, n=3, seed=0):
    rng = np.random.default_rng(seed)
    q = np.stack([system.random_configuration(rng) for _ in range(n)])
    return q, *rng.normal(size=(2, n, system.nv))


def run(formula, *arguments):
    names = {}
    exec(symbolic.export(formula, "numpy"), names)
    return names[formula.name](*arguments)


def agree(mine, theirs, tolerance=1e-12):
    assert mine.shape == theirs.shape
    assert np.abs(mine - theirs).max(initial=0.0) <= tolerance * np.abs(theirs).max(initial=1e-300)


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("robot", ROBOTS)
def test_formulas_are_the_packages_numbers(robot, name):
    """R86:11-SYM. Every kind of hinge, branches, rotors, quaternions: 1e-12 of the compiled sweeps."""
    system = ROBOTS[robot]()
    arguments = states(system)[: FORMULAS[name]]
    formula = getattr(symbolic, name)(system)
    agree(run(formula, *arguments), getattr(kf, name)(system, *arguments))


def test_elements_of_the_inverse():
    """R86:11-SYM. One element costs less than all, and is the same number."""
    system = kf.models.puma560()
    (q, *_), inverse = states(system), symbolic.mass_matrix_inverse(system)
    theirs = kf.mass_matrix_inverse(system, q)
    for i, j in ((0, 0), (1, 4), (5, 2)):
        one = symbolic.inverse_element(system, i, j)
        agree(run(one, q), theirs[:, i, j], 1e-12 * np.abs(theirs).max() / np.abs(theirs[:, i, j]).max())
        assert sum(one.counts) < sum(inverse.counts)


@pytest.mark.parametrize("letter", ["P", "P_plus", "D", "G"])
def test_quantities_of_the_filter(letter):
    system = kf.models.puma560()
    q = states(system)[0][0]
    theirs = getattr(kf.riccati(kf.as_estimation(system, q)), letter)[2]
    X = np.kron(np.eye(2), kf.frame_pose(system, q, "link_3").rotation)
    turned = {"P": lambda x: X @ x @ X.T, "P_plus": lambda x: X @ x @ X.T, "D": lambda x: x, "G": lambda x: X @ x}
    agree(turned[letter](run(symbolic.filter_quantity(system, letter, "joint_3"), q)), theirs)


def test_expressions_of_sympy_are_the_same_function():
    """Steps and results as SymPy sees them, and expanded, evaluated by SymPy in 30 digits."""
    system = kf.models.double_pendulum(mass=(1.5, 0.7), length=(0.8, 0.6))
    q, v, tau = (x[0] for x in states(system))
    formula = symbolic.forward_dynamics(system)
    at = dict(zip(formula.symbols, map(float, (*q, *v, *tau))))
    theirs = kf.forward_dynamics(system, q, v, tau)
    steps, result = formula.cse()
    known = dict(at)
    for symbol, expression in steps:
        known[symbol] = expression.evalf(30, subs=known)
    agree(np.array([float(x.evalf(30, subs=known)) for x in result]), theirs)
    agree(np.array([float(x.evalf(30, subs=at)) for x in formula.expand()]), theirs)


def test_two_links_can_be_read():
    """With letters for the constants the 2-link inverse is the adjugate over the determinant, as by hand."""
    inverse = symbolic.mass_matrix_inverse(kf.models.double_pendulum(), parameters=True)
    J1, J2, m2, l, c2 = sympy.symbols("J1yy J2yy m2 l2z c2z")
    q1 = sympy.Symbol("q1")
    a = J1 + m2 * l**2 + J2 + 2 * l * c2 * sympy.cos(q1)
    b = J2 + l * c2 * sympy.cos(q1)
    c = sympy.Symbol("c")
    unit = (inverse.expand() * sympy.Matrix([[a, b], [b, J2]])).applyfunc(
        lambda x: sympy.cancel(
            sympy.together(x.subs(sympy.sin(q1) ** 2, 1 - sympy.cos(q1) ** 2).subs(sympy.cos(q1), c))
        )
    )
    assert unit == sympy.eye(2)
    # the elbow alone, the shoulder held: 1/J2, what the filter has as its innovation variance there
    assert symbolic.filter_quantity(kf.models.double_pendulum(), "D", "elbow", parameters=True).expand()[0] == J2


def test_letters_have_the_values_of_the_robot():
    system = kf.models.stanford_arm()
    q = states(system)[0]
    formula = symbolic.mass_matrix_inverse(system, parameters=True)
    values = np.array(list(formula.inputs.parameters.values()))
    agree(run(formula, q, values), kf.mass_matrix_inverse(system, q))
    heavier = values * 2.0  # masses, moments, lengths: another robot, the same formula
    assert np.abs(run(formula, q, heavier) - kf.mass_matrix_inverse(system, q)).max() > 0.1


def test_constants_are_folded():
    """A pendulum needs no operation for its mass matrix; the last hinge of the PUMA divides by a constant."""
    assert sum(symbolic.mass_matrix(kf.models.pendulum()).counts) == 0
    assert symbolic.mass_matrix_inverse(kf.models.puma560()).counts.divide == 5
    counts = symbolic.forward_dynamics(kf.models.puma560()).counts
    assert counts.trigonometric == 10  # five angles: the first is about gravity, and turns nothing
    assert counts.add + counts.multiply < 2000
    # cos² + sin² and the like are the robot's; c + (1 − c) of an axis is not, and is 1 before anything runs on it
    double = symbolic.mass_matrix(kf.models.double_pendulum())
    assert [str(step) for _, step in double.cse()[0]] == ["cos(q1)", "sin(q1)", "x0 + 1"]


def test_errors_name_the_culprit():
    arm = kf.models.puma560()
    with pytest.raises(ShapeError, match="no degree of freedom 6"):
        symbolic.inverse_element(arm, 0, 6)
    with pytest.raises(ModelError, match=r"numbers of degrees of freedom, got 'shoulder'; system\.v_slice"):
        symbolic.inverse_element(kf.models.double_pendulum(), "shoulder", "elbow")
    for formula in (symbolic.mass_matrix_inverse, symbolic.forward_dynamics):
        with pytest.raises(SingularError, match="degree of freedom 0: nothing that it is free to move"):
            formula(kf.models.pendulum(mass=0.0))
    with pytest.raises(ModelError, match="not 'Q'"):
        symbolic.filter_quantity(arm, "Q", "joint_1")
    with pytest.raises(ModelError, match="no hinge 'elbow'"):
        symbolic.filter_quantity(arm, "D", "elbow")
    gimbal = kf.System([kf.Body("b", np.eye(6), kf.Hinge.gimbal())])
    with pytest.raises(ModelError, match="split into single"):
        symbolic.filter_quantity(gimbal, "D", "b")
    with pytest.raises(ModelError, match="not 'fortran'"):
        symbolic.export(symbolic.mass_matrix(arm), "fortran")
    with pytest.raises(ModelError, match="no name for a function"):
        symbolic.export(symbolic.mass_matrix(arm), "c", name="2 links")
    for language, name in (
        ("numpy", "for"), ("numpy", "np"), ("jax", "jnp"), ("c", "double"), ("c", "sinf"), ("c", "größe"),
    ):  # fmt: skip
        with pytest.raises(ModelError, match=f"{name!r} is no name for a function in {language}"):
            symbolic.export(symbolic.mass_matrix(arm), language, name=name)
