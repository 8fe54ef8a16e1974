"""The explorer on robots whose hinges are coupled, against dense algebra and the open tree."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.cli import main
from kfdyn.dynamics import with_armature
from kfdyn.explore import Explorer, Mode, Moment, pulled, solve
from kfdyn.explore.moment import movers

COUPLINGS = {  # a gear along one arm, fingers that are siblings, a differential of three hinges
    "gear": [kf.Coupling(["b1", "b2"], [1.0, -2.0], [0.0, 0.3])],
    "siblings": [kf.Coupling(["b2", "b3"], [1.0, -1.0])],
    "differential": [kf.Coupling(["b4", "b2", "b3"], [[1.0, 0.5], [-0.4, 2.0], [0.3, 0.7]])],
    "two": [kf.Coupling(["b3", "b1"], [2.0, 1.0]), kf.Coupling(["b5", "b4"], [1.0, 3.0])],
}


def coupled(kind):
    """A base that turns, and on it two arms: b1 with b2, and b3 with b4 and b5; a ball joint ends the second."""
    rng = np.random.default_rng(3)
    parents = ["", "b0", "b1", "b0", "b3", "b4", "b5"]
    bodies = []
    for k, parent in enumerate(parents):
        points = rng.normal(size=(3, 3))
        spread = points @ points.T
        mass, at = rng.uniform(0.5, 2), rng.normal(size=(2, 3))
        inertia = kf.spatial.spatial_inertia(mass, at[0], np.trace(spread) * np.eye(3) - spread)
        hinge = kf.Hinge.ball() if k == 6 else kf.Hinge.revolute(rng.normal(size=3))
        limits = {} if k == 6 else {"lower": -0.9, "upper": 1.1}
        bodies.append(kf.Body(f"b{k}", inertia, hinge, parent or None, position=at[1], **limits))
    tree = kf.System(bodies, name=kind)
    return with_armature(tree, rng.uniform(0.1, 0.4, tree.nv)).with_couplings(COUPLINGS[kind])


def random_moment(kind, seed):
    """Any modes; but of the differential one coordinate is always given and one is free."""
    rng, system = np.random.default_rng(seed), coupled(kind)
    moment = Moment(
        system,
        system.random_configuration(rng),
        rng.normal(size=system.nv),
        rng.normal(size=system.nv),
        tuple(map(Mode, rng.choice(list(Mode), system.n_bodies))),
        rng.uniform(0.1, 1, system.nv),
        rng.normal(size=system.nv),
    )
    if kind == "differential":
        moment = moment.with_mode("b4", Mode.PRESCRIBED).with_mode("b2", Mode.FREE)
    return moment


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", COUPLINGS)
def test_accelerations_are_those_of_the_open_tree_reduced(kind, seed):
    """X*(𝓜 + rotors)X a = tau − X*c, in which what is locked or prescribed is known."""
    moment = random_moment(kind, seed)
    s, tree, known = moment.system, moment.system.open_tree, moment.known
    q, X = s.expand(moment.q), s.expansion(moment.q)
    extra = np.zeros(tree.nv)
    for k in movers(s):
        if moment.mode[k] is Mode.ROTOR:
            extra[tree.v_slice(f"b{k}")] = moment.rotor[s.v_slice(f"b{k}")]
    M = X.T @ (kf.mass_matrix(tree, q) + np.diag(extra)) @ X
    c = X.T @ kf.bias_forces(tree, q, X @ moment.v)
    f = np.flatnonzero(~known)
    wanted = moment.given.copy()
    wanted[f] = np.linalg.solve(M[np.ix_(f, f)], (moment.tau - c - M[:, known] @ moment.given[known])[f])
    got = solve(moment)
    close = {"rtol": 1e-9, "atol": 1e-9 * (1 + abs(wanted).max())}
    np.testing.assert_allclose(got.a, wanted, **close)
    np.testing.assert_allclose(got.causes.sum(axis=0)[f], wanted[f], **close)
    np.testing.assert_allclose(got.mass_matrix, M, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(got.inverse[np.ix_(f, f)] @ M[np.ix_(f, f)], np.eye(f.size), atol=1e-8)
    assert np.array_equal(np.isnan(got.D), known)


@pytest.mark.parametrize("kind", COUPLINGS)
def test_forces_at_every_hinge_are_those_of_the_open_tree(kind):
    """Newton and Euler on the open tree, moved as the coupled system moves."""
    moment = random_moment(kind, 1)
    s, tree = moment.system, moment.system.open_tree
    moment = Moment(s, moment.q, moment.v, moment.tau, (Mode.FREE,) * 7, moment.rotor, moment.rate)
    numbers, X = solve(moment), s.expansion(moment.q)
    q, v = s.expand(moment.q), X @ moment.v
    tau = kf.inverse_dynamics(tree, q, v, X @ numbers.a)
    split = kf.decompose_forces(tree, q, v, tau)
    size = max(abs(split.terminal.force[k]).max() for k in range(7))
    for k in range(7):
        np.testing.assert_allclose(numbers.parts[k, 0], split.terminal.force[k], rtol=1e-9, atol=1e-10 * size)
        np.testing.assert_allclose(numbers.parts[k, 1], split.terminal.inertial[k], rtol=1e-9, atol=1e-10 * size)


def test_inertia_of_a_gear_along_an_arm():
    """Before the gear gives way both bodies of the arm are one; locked, it gives nothing away."""
    moment = Moment.at_rest(coupled("gear"))
    mass = [body.inertia[5, 5] for body in moment.system.bodies]
    free, locked = solve(moment), solve(moment.with_mode("b1", Mode.LOCKED))
    np.testing.assert_allclose(free.P[1], (mass[1] + mass[2]) * np.eye(3), atol=1e-12)
    np.testing.assert_allclose(free.P[2], mass[2] * np.eye(3), atol=1e-12)
    assert np.linalg.eigvalsh(free.P[1] - free.P_plus[1]).max() > 0.01
    np.testing.assert_array_equal(locked.P[1:3], locked.P_plus[1:3])


@pytest.mark.parametrize("kind", COUPLINGS)
def test_panel_pose_and_motion(kind):
    """A slider for each coordinate, a fall that keeps its energy, a tip that is pulled."""
    system = coupled(kind)
    with Explorer(system, port=0) as explorer:
        panel = explorer.panel
        assert [slider.label for _, slider in panel.sliders] == [f"b{k}" for k in movers(system) if k < 6]
        assert [slider.value for _, slider in panel.sliders] == pytest.approx(explorer.moment.q[:-4], abs=1e-3)
        assert set(panel.hinge.options) == {f"b{k}" for k in movers(system)}
        assert panel.table.content.count("scope='row'") == system.nv
        b5 = kf.frame_pose(system, explorer.moment.q, "b5").position
        np.testing.assert_allclose(explorer.numbers.position[5], b5, rtol=1e-12)
        start = kf.potential_energy(system, explorer.moment.q)
        for _ in range(10):
            explorer.advance(1 / 30)
        m = explorer.moment
        kinetic = kf.kinetic_energy(system, m.q, m.v)
        assert kinetic > 1.0
        assert abs(kinetic + kf.potential_energy(system, m.q) - start) < 1e-5 * kinetic
        explorer.change(lambda m: m.with_mode("b0", Mode.LOCKED))
        near = kf.integrate(system, m.q, np.where(np.arange(system.nv) == 0, 0.0, 0.02))  # where it can get to
        goal = solve(Moment.at_rest(system, near)).position[-1]
        assert np.linalg.norm(explorer._tip_place() - goal) > 0.01
        explorer.change(lambda m: pulled(m, explorer.tip, goal, steps=40))
        np.testing.assert_allclose(explorer._tip_place(), goal, atol=1e-3)
        assert explorer.moment.q[0] == m.q[0]


def test_a_check_of_coupled_hinges_passes(monkeypatch):
    monkeypatch.setattr("kfdyn.explore.app.STAGES", (2_000,))
    with Explorer(coupled("differential"), port=0) as explorer:
        explorer.start_check().join()
        assert "PASSED" in explorer.panel.verdict.content


def test_mimic_fingers_from_a_file(tmp_path, capsys):
    link = """<link name="{0}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
        </inertial><visual><geometry><box size="1 1 1"/></geometry></visual></link>"""
    joint = """<joint name="{0}" type="prismatic"><parent link="palm"/><child link="{0}_link"/><axis xyz="0 {1} 0"/>
        <limit lower="0" upper="0.04" effort="1" velocity="1"/>{2}</joint>"""
    names = ("palm", "left_link", "right_link")
    text = "".join(link.format(name) for name in names) + joint.format("left", 1, "")
    text += joint.format("right", -1, '<mimic joint="left"/>')
    path, page = tmp_path / "hand.urdf", tmp_path / "fall.html"
    path.write_text(f'<robot name="hand">{text}</robot>', encoding="utf-8")
    system = kf.load(path)
    with Explorer(system, [0.02], str(path), port=0) as explorer:
        ((_, slider),) = explorer.panel.sliders
        assert (slider.label, slider.min, slider.max, slider.value) == ("left", 0.0, 0.04, 0.02)
        assert explorer.numbers.position[:, 1].tolist() == [0.02, -0.02]
        meshes = [mesh.position[1] for _, mesh in explorer.scene.bodies]
        np.testing.assert_allclose(sorted(meshes), [-0.02, 0.02])
        explorer.change(lambda m: Moment.at_rest(m.system, [0.03]))
        assert slider.value == 0.03
        np.testing.assert_allclose(sorted(mesh.position[1] for _, mesh in explorer.scene.bodies), [-0.03, 0.03])
    assert main(["explore", str(path), "--record", str(page), "--q", "neutral"]) == 0
    assert page.stat().st_size > 10_000


def test_loops_and_bodies_that_bend_are_refused_in_words():
    with pytest.raises(kf.errors.ModelError, match=r"'four_bar' has 1 loop.*without_loops"):
        Explorer(kf.models.four_bar(), port=0)
    with Explorer(kf.models.four_bar().without_loops, port=0) as explorer:
        assert len(explorer.panel.sliders) == 3
    boom = kf.beam("boom", length=1.0, density=0.6, bending=(0.0, 50.0), modes=1, hinge=kf.Hinge.revolute([0, 1, 0]))
    with pytest.raises(kf.errors.ModelError, match=r"the explorer is for rigid bodies.*boom"):
        Explorer(kf.FlexibleSystem([boom]), port=0)
