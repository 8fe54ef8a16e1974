"""Flexible bodies: beams against Euler and Bernoulli, reductions against full models, bad input named."""

import numpy as np
import pytest
from scipy.optimize import brentq

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError
from kfdyn.spatial import spatial_inertia

L, RHO, EI = 2.0, 0.5, 8.0
UNIT = np.sqrt(EI / RHO) / L**2


def roots(f, starts):
    return np.array([brentq(f, a, b, xtol=1e-14) for a, b in starts])


CLAMPED = roots(lambda x: np.cos(x) + 1 / np.cosh(x), [(1.5, 2.5), (4, 5.5), (7, 8.5)])
FREE = roots(lambda x: np.cos(x) - 1 / np.cosh(x), [(4, 5.5), (7, 8.5)])
PINNED_FREE = roots(lambda x: np.tan(x) - np.tanh(x), [(3.5, 4.5), (6.5, 7.5)])


def test_cantilever_frequencies():
    rod = kf.beam("rod", L, RHO, bending=(EI, 0.0), modes=3, elements=24)
    np.testing.assert_allclose(rod.frequencies, CLAMPED**2 * UNIT, rtol=1e-5)
    np.testing.assert_allclose(rod.modal_mass, np.eye(3), atol=1e-12)


def test_convergence_is_of_fourth_order():
    errors = []
    for elements in (8, 16, 32):
        rod = kf.beam("rod", L, RHO, bending=(EI, 0.0), modes=3, elements=elements)
        errors.append(abs(rod.frequencies[2] / (CLAMPED[2] ** 2 * UNIT) - 1))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (orders > 3.7).all()
    assert (orders < 4.4).all()


def test_torsion_and_stretch():
    rod = kf.beam(
        "rod", L, RHO, torsion=3.0, stretch=50.0, gyration=0.1, modes={"torsion": 1, "stretch": 1}, elements=40
    )
    wave = np.pi / 2 / L
    np.testing.assert_allclose(
        sorted(rod.frequencies), sorted([wave * np.sqrt(3.0 / (RHO * 0.01)), wave * np.sqrt(50.0 / RHO)]), rtol=2e-4
    )


@pytest.mark.parametrize(("hinge", "wanted"), [(kf.Hinge.revolute([0, 0, 1]), PINNED_FREE), (kf.Hinge.free(), FREE)])
def test_pinned_and_free_frequencies(hinge, wanted):
    """Modes are clamped, the hinge moves: with enough of them the assembly is the pinned or free beam."""
    rod = kf.beam("rod", L, RHO, bending=(EI, 0.0), modes=12, elements=24, gyration=1e-3, hinge=hinge)
    found = kf.modes(kf.FlexibleSystem([rod]), gravity=(0, 0, 0)).frequencies
    found = found[found > 1e-2 * UNIT]
    np.testing.assert_allclose(found[:2], wanted[:2] ** 2 * UNIT, rtol=1e-4)


def test_tip_mass_frequency():
    """(1 + cos x cosh x) = μ x (sin x cosh x − cos x sinh x), μ the tip's mass over the beam's."""
    mass = 0.8
    mu = mass / (RHO * L)
    x = brentq(
        lambda x: 1 + np.cos(x) * np.cosh(x) - mu * x * (np.sin(x) * np.cosh(x) - np.cos(x) * np.sinh(x)), 0.5, 1.8
    )
    tip = kf.Body("tip", np.diag([0, 0, 0, mass, mass, mass]), None, "rod", position=[L, 0, 0])
    errors = []
    for modes in (4, 8, 16):  # clamped modes without the tip's: they converge with the third power of their number
        rod = kf.beam("rod", L, RHO, bending=(EI, 0.0), modes=modes, elements=24)
        found = kf.modes(kf.FlexibleSystem([rod, tip]), gravity=(0, 0, 0)).frequencies[0]
        errors.append(found / (x**2 * UNIT) - 1)
    assert 0 < errors[2] < 5e-6
    assert errors[0] > 6 * errors[1] > 36 * errors[2]


def test_chain_of_rigid_segments_converges_to_the_beam():
    wanted = CLAMPED[0] ** 2 * UNIT
    errors = []
    for n in (8, 16, 32):
        h = L / n
        bodies = [
            kf.Body(
                f"s{k}", spatial_inertia(RHO * h, [h / 2, 0, 0], RHO * h**3 / 12 * np.diag([1e-6, 1, 1])),
                kf.Hinge.revolute([0, 0, 1]), None if k == 0 else f"s{k - 1}", position=[0 if k == 0 else h, 0, 0],
                stiffness=EI / h * (2 if k == 0 else 1),
            )
            for k in range(n)
        ]  # fmt: skip
        errors.append(abs(kf.modes(kf.System(bodies), gravity=(0, 0, 0)).frequencies[0] / wanted - 1))
    assert errors[-1] < 2e-3
    assert errors[0] > 1.8 * errors[1] > 3.2 * errors[2]


def test_craig_bampton_keeps_the_lowest_frequencies():
    """A lattice of springs: the reduced model against all of its dofs."""
    rng = np.random.default_rng(0)
    nodes = np.stack(np.meshgrid(np.arange(6.0), np.arange(2.0), np.arange(2.0), indexing="ij"), -1).reshape(-1, 3)
    N = len(nodes)
    K = np.zeros((3 * N, 3 * N))
    for i in range(N):
        for j in range(i):
            d = nodes[i] - nodes[j]
            if 0 < np.linalg.norm(d) < 1.8:
                e = np.outer(d, d) / (d @ d) * rng.uniform(50, 150)
                for a, b, s in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
                    K[3 * a : 3 * a + 3, 3 * b : 3 * b + 3] += s * e
    M = np.kron(np.diag(rng.uniform(0.5, 1.0, N)), np.eye(3))
    clamped = [0, 1, 2, 3]
    free = np.arange(12, 3 * N)
    from scipy.linalg import eigh

    whole = np.sqrt(eigh(K[np.ix_(free, free)], M[np.ix_(free, free)], eigvals_only=True)[:4])
    plain = kf.from_finite_elements("lattice", nodes, M, K, clamped=clamped, modes=6)
    np.testing.assert_allclose(plain.frequencies[:4], whole, rtol=1e-9)
    with_interface = kf.from_finite_elements("lattice", nodes, M, K, clamped=clamped, modes=12, interface=[N - 1])
    np.testing.assert_allclose(with_interface.frequencies[:3], whole[:3], rtol=1e-3)


def test_a_joint_split_in_two_is_spongs_model():
    """Two masses and a spring: ω² = k (1/R + 1/J)."""
    link = kf.Body("link", np.diag([0.2, 0.2, 0.4, 1, 1, 1]), kf.Hinge.revolute([0, 0, 1]))
    joint = kf.FlexibleJoint(rotor_inertia=2e-4, ratio=50.0, stiffness=300.0)
    found = kf.modes(kf.System(joint.split(link), gravity=(0, 0, 0))).frequencies
    R = 50.0**2 * 2e-4
    np.testing.assert_allclose(found[-1], np.sqrt(300.0 * (1 / R + 1 / 0.4)), rtol=1e-9)
    assert abs(found[0]) < 1e-3


@pytest.mark.parametrize("stiffening", [False, True])
def test_rotation_stiffens_a_beam_only_with_the_quadratic_term(stiffening):
    """Spinning at Ω, out-of-plane: ω² ≈ ω₀² + 1.193 Ω² with shortening (Southwell); without it ω² = ω₀²."""
    rod = kf.beam(
        "rod",
        L,
        RHO,
        bending=(0.0, EI),
        modes=6,
        elements=16,
        stiffening=stiffening,
        hinge=kf.Hinge.revolute([0, 0, 1]),
    )
    system = kf.FlexibleSystem([rod], gravity=(0, 0, 0))
    spin = 3 * UNIT
    v = np.zeros(system.nv)
    v[0] = spin
    h = 1e-5
    K = np.zeros((6, 6))
    for i in range(6):
        steps = np.zeros((2, system.nq))
        steps[:, 1 + i] = [h, -h]
        forth, back = kf.bias_forces(system, steps, v)
        K[:, i] = (forth - back)[1:] / (2 * h)
    from scipy.linalg import eigh

    lowest = eigh(0.5 * (K + K.T), rod.modal_mass, eigvals_only=True)[0]
    wanted = rod.frequencies[0] ** 2 + (1.193 * spin**2 if stiffening else 0.0)
    assert lowest == pytest.approx(wanted, rel=1e-2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"shapes": [[[1.0]], [[0.0]], [[1.0]]] * 1}, "shapes"),
        ({"stiffness": [-1.0]}, "positive definite"),
        ({"stiffness": [0.0]}, "rigid-body mode"),
        ({"mass": [0.0, 0.0]}, "modal mass"),
        ({"mass": [1.0, -1.0]}, "negative mass"),
        ({"mass": [1.0]}, "mass must have shape"),
        ({"shapes": np.full((2, 3, 1), 1.0)}, "clamped"),
        ({"damping": -0.1}, "damping ratio"),
        ({"damping": [[-1.0]]}, "feed the motion"),
        ({"points": [[0, 0, 0], [1, 0, np.nan]]}, "not finite"),
        ({"turns": np.full((2, 3, 1), 1.0)}, "clamped"),
        ({"mass": [[1.0, 2.0], [2.0, 1.0]]}, "mass is not positive semi-definite.*negative energy"),
        ({"mass": [[1.0, 2.0], [0.0, 1.0]]}, "mass is not symmetric"),
        ({"stiffness": [[np.nan]]}, "stiffness has entries that are not finite"),
    ],
)
def test_bad_bodies_are_named(change, words):
    shapes = np.zeros((2, 3, 1))
    shapes[1, 2] = 1.0
    good = {"mass": [1.0, 1.0], "points": [[0.0, 0, 0], [1, 0, 0]], "shapes": shapes, "stiffness": [10.0]}
    kf.FlexibleBody("leaf", **good)
    with pytest.raises((ModelError, ShapeError), match=words):
        kf.FlexibleBody("leaf", **{**good, **change})


def test_bad_beams_and_attachments_are_named():
    with pytest.raises(ModelError, match="gyration"):
        kf.beam("rod", 1.0, 1.0, torsion=1.0)
    with pytest.raises(ModelError, match="no stiffness"):
        kf.beam("rod", 1.0, 1.0)
    with pytest.raises(ModelError, match="more than 2 elements"):
        kf.beam("rod", 1.0, 1.0, bending=1.0, modes=9, elements=2)
    rod = kf.beam("rod", 1.0, 1.0, bending=1.0)
    with pytest.raises(ModelError, match="axis of beam 'rod'"):
        kf.FlexibleSystem([rod, kf.Body("tip", np.eye(6), None, "rod", position=[0.5, 0.2, 0])])
    leaf = kf.FlexibleBody("leaf", [1.0], [[1.0, 0, 0]], [[[0.0], [0], [1]]], [1.0])
    with pytest.raises(ModelError, match="none of its points"):
        kf.FlexibleSystem([leaf, kf.Body("tip", np.eye(6), None, "leaf", position=[0.5, 0, 0])])
    with pytest.raises(ModelError, match="no node is clamped"):
        kf.from_finite_elements("f", np.eye(3), np.eye(9), np.eye(9), clamped=[])
    with pytest.raises(kf.errors.SingularError, match="moves no mass"):  # a line has no inertia about itself
        kf.modes(kf.FlexibleSystem([kf.beam("rod", 1.0, 1.0, bending=1.0, hinge=kf.Hinge.free())]))
    with pytest.raises(ShapeError, match=r"q must have shape"):
        kf.forward_dynamics(kf.FlexibleSystem([rod]), [0.0], None, np.zeros(4))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"modes": -1}, "modes must be a whole number, 0 or more, got -1"),
        ({"modes": 2.5}, "modes must be a whole number, 0 or more, got 2.5"),
        ({"modes": {"y": 1.5}}, "modes must be a whole number, 0 or more, got 1.5"),
        ({"modes": 0}, "has no modes; ask for some"),
        ({"elements": 4.0}, "elements must be a whole number, 1 or more"),
        ({"bending": (1.0, 2.0, 3.0)}, r"bending is one stiffness, or two.*got \(1.0, 2.0, 3.0\)"),
        ({"bending": 0.0}, "no stiffness to bend against"),
    ],
)
def test_bad_counts_and_stiffnesses_of_beams_are_named(change, words):
    with pytest.raises(ModelError, match=words):
        kf.beam("rod", 1.0, 1.0, **{"bending": 1.0, **change})


def test_counts_and_stiffnesses_may_be_numpys():
    rod = kf.beam("rod", 1.0, 1.0, bending=np.array([1.0, 2.0]), modes=np.int64(1))
    same = kf.beam("rod", 1.0, 1.0, bending=(1.0, 2.0), modes=1)
    np.testing.assert_array_equal(rod.frequencies, same.frequencies)


def two_modes(**change):
    """Three points, two modes; what is given instead of what is right."""
    shapes = np.zeros((3, 3, 2))
    shapes[1:, 2, 0], shapes[1:, 1, 1] = [0.5, 1.0], [0.3, 1.0]
    good = {
        "mass": np.ones(3), "points": [[0.0, 0, 0], [0.5, 0, 0], [1, 0, 0]], "shapes": shapes, "stiffness": [10.0, 20],
    }  # fmt: skip
    return kf.FlexibleBody("leaf", **{**good, **change})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"stiffness": [[10.0, 20], [20, 10]]}, "stiffness is not positive definite.*from -10"),
        ({"stiffness": [10.0, 0.0]}, "rigid-body mode"),
        ({"stiffness": [[10.0, 1], [0, 10]]}, "stiffness is not symmetric"),
        ({"mass": [1.0, 0.0, 0.0]}, "modal mass is not positive definite.*too few points"),
        ({"damping": [[1.0, 5], [5, 1]]}, "feed the motion"),
    ],
)
def test_bad_matrices_of_two_modes_are_named(change, words):
    two_modes()
    with pytest.raises(ModelError, match=words):
        two_modes(**change)


def test_modes_that_depend_on_each_other_are_named():
    shapes = np.zeros((3, 3, 2))
    shapes[1:, 2, 0], shapes[1:, 2, 1] = [0.5, 1.0], [1.0, 2.0]
    with pytest.raises(ModelError, match="depend on each other"):
        two_modes(shapes=shapes)


def test_too_few_points_for_the_modes_are_named():
    with pytest.raises(ModelError, match="4 modes need at least 2 points, there are 1"):
        kf.FlexibleBody("leaf", [1.0], [[1.0, 0, 0]], np.ones((1, 3, 4)), np.ones(4))
    with pytest.raises(ModelError, match="no modes; a rigid one is a Body"):
        kf.FlexibleBody("leaf", [1.0], [[1.0, 0, 0]], np.ones((1, 3, 0)), np.ones((0, 0)))


def springs():
    """Nodes, M and K of three masses on springs, of which the first is to be held."""
    K = np.kron([[2.0, -1, -1], [-1, 2, -1], [-1, -1, 2]], np.eye(3))
    return np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0]]), np.eye(9), K


def test_bad_finite_elements_are_named():
    nodes, M, K = springs()
    kf.from_finite_elements("f", nodes, M, K, clamped=[0], modes=3)
    skew = K.copy()
    skew[0, 3] += 1.0
    for change, words in (
        ((nodes, M, skew), "stiffness is not symmetric"),
        ((nodes, M, -K), "not positive definite|no modes"),
        ((nodes, np.where(np.eye(9) > 0, -1.0, 0.0), K), "negative mass|no modes"),
        ((nodes, np.diag([1.0, 2, 1] * 3), K), "differs between directions"),
        ((nodes, M, np.zeros((9, 9))), "not positive definite|no modes"),  # nothing but rigid-body modes
        ((nodes, M, K * np.nan), "not finite"),
    ):
        with pytest.raises(ModelError, match=words):
            kf.from_finite_elements("f", *change, clamped=[0], modes=3)
    with pytest.raises(ModelError, match="clamped names node 7"):
        kf.from_finite_elements("f", nodes, M, K, clamped=[7])
    with pytest.raises(ModelError, match="node 0 is both clamped and interface"):
        kf.from_finite_elements("f", nodes, M, K, clamped=[0], interface=[0])
    for modes in (-1, 1.5):
        with pytest.raises(ModelError, match=f"modes must be a whole number, 0 or more, got {modes}"):
            kf.from_finite_elements("f", nodes, M, K, clamped=[0], modes=modes)
    with pytest.raises(ModelError, match="only 6 dofs are free"):
        kf.from_finite_elements("f", nodes, M, K, clamped=[0], modes=7)


def test_modes_of_finite_elements_are_the_same_at_every_call():
    """The sparse solver starts from a vector of its own, not from a drawn one."""
    rng = np.random.default_rng(0)
    nodes = rng.normal(size=(40, 3))
    A = rng.normal(size=(120, 120))
    first, second = (
        kf.from_finite_elements("f", nodes, np.eye(120), A @ A.T + np.eye(120), clamped=[0, 1], modes=4)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.shapes, second.shapes)


def test_coordinates_follow_the_hinge_and_have_names():
    rod = kf.beam("rod", 1.0, 1.0, bending=1.0, modes=1, hinge=kf.Hinge.ball(), hinge_name="shoulder")
    tip = kf.Body("tip", np.eye(6), kf.Hinge.revolute([0, 0, 1]), "rod", position=[1.0, 0, 0], hinge_name="wrist")
    system = kf.FlexibleSystem([rod, tip])
    wanted = ("shoulder/1", "shoulder/2", "shoulder/3", "rod/mode_1", "rod/mode_2", "wrist")
    assert system.dof_names == wanted
    assert (system.nq, system.nv) == (7, 6)
    assert system.q_slice("shoulder") == slice(0, 4)
    assert system.mode_slice("rod") == slice(4, 6)
    assert system.mode_slice("rod", velocity=True) == slice(3, 5)
    assert system.v_slice("wrist") == slice(5, 6)
    assert system.elastic.tolist() == [False, False, False, True, True, False]
    with pytest.raises(ModelError, match="no hinge 'rod'"):
        system.v_slice("rod")


def test_condensed_points_weigh_as_all_of_them():
    """Fine beams have few condensed points, and 𝓜 of any deformation is the same."""
    rod = kf.beam(
        "rod", 1.0, 2.0, bending=(30.0, 50.0), torsion=4.0, gyration=0.05, modes=2, elements=8, stiffening=True
    )
    few = rod.condensed
    assert len(rod.points) > 100 > 30 > len(few.weight)
    plane = kf.beam("plane", 1.0, 2.0, bending=(0.0, 50.0), modes=2, elements=32)
    assert len(plane.condensed.weight) == 4
    for body in (rod, plane):
        few = body.condensed
        eta = 0.1 * np.random.default_rng(0).normal(size=body.n_modes)
        sums = []
        for r, psi, bends, one in (
            (few.points, few.shapes, few.bends, few.weight),
            (body.points, body.shapes, body.bends, np.ones(len(body.mass))),
        ):
            bend = np.zeros_like(psi) if bends is None else bends @ eta
            s = r + psi @ eta + 0.5 * bend @ eta
            sums.append(np.concatenate([psi + bend, s[..., None], one[:, None, None] * np.eye(3)], axis=2))
        weighed = np.einsum("iak,i,ibl->akbl", sums[1], body.mass, sums[1])
        np.testing.assert_allclose(
            np.einsum("iak,ibl->akbl", sums[0], sums[0]), weighed, atol=1e-13 * abs(weighed).max()
        )


@pytest.mark.parametrize("change", ["none", "loops", "couplings"])
def test_a_flexible_system_is_immutable(change):
    """A rotor put on after the first call was in the mass matrix and not in forward dynamics."""
    rod = kf.beam("rod", L, RHO, bending=(EI, 0.0), modes=2, hinge=kf.Hinge.revolute([0, 1, 0]))
    tip = kf.Body(
        "tip", spatial_inertia(0.5, [0, 0, 0], np.eye(3)), kf.Hinge.revolute([0, 1, 0]), "rod", np.eye(3), [L, 0, 0]
    )
    system = kf.FlexibleSystem(
        [rod, tip], couplings=[kf.Coupling(["rod", "tip"], [1, 2])] if change == "couplings" else ()
    )
    if change == "loops":
        system = system.with_loops([kf.Loop(None, "tip", rows="point")])
    for key in ("gravity", "armature", "name", "loops", "model"):
        with pytest.raises(AttributeError, match=f"a FlexibleSystem is immutable; build a new one to change '{key}'"):
            setattr(system, key, None)
    with pytest.raises(AttributeError, match="immutable"):
        del system.gravity
    body = system.flexible["rod"]
    for array in (system.gravity, system.parent, system.lower, system.q_start, body.mass, body.stiffness, body.shapes):
        assert not array.flags.writeable
    if change != "couplings":
        assert not system.armature.flags.writeable


def test_a_flexible_body_keeps_its_own_copy():
    stiffness, shapes = np.diag([100.0]), np.array([[[0.0], [0.0], [1.0]]])
    leaf = kf.FlexibleBody("leaf", [1.0], [[2.0, 0, 0]], shapes, stiffness)
    stiffness[:], shapes[:] = 5.0, 0.0
    np.testing.assert_array_equal(leaf.frequencies, 10.0)
