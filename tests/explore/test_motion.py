"""The explorer's motion, and what it shows of it: energy is kept, pictures and numbers are whole."""

import importlib.metadata

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.explore import Explorer, Mode, Moment, solve
from kfdyn.explore.motion import advanced


def panda():
    try:
        files = importlib.metadata.files("example-robot-data") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    file = next((file for file in files if str(file).endswith("/panda.urdf")), None)
    if file is None:
        pytest.skip("example-robot-data is not installed")
    return kf.load(str(file.locate()))


def energy(m):
    return float(kf.kinetic_energy(m.built, m.q, m.v) + kf.potential_energy(m.built, m.q))


@pytest.mark.parametrize("locked", [None, "panda_joint2"])
def test_a_panda_falls_for_four_seconds_and_keeps_its_energy(locked):
    moment = Moment.at_rest(panda())
    moment = moment if locked is None else moment.with_mode(locked, Mode.LOCKED)
    start, fastest = energy(moment), 0.0
    for _ in range(120):
        moment = advanced(moment, 1 / 30)
        assert abs(energy(moment) - start) < 1e-4 * start  # 120 frames, each to 1e-7 of the energy exchanged in it
        fastest = max(fastest, float(np.abs(moment.v).max()))
    assert fastest > 10


def test_prescribed_motion_is_that_of_a_course():
    arm = kf.models.puma560()
    moment = Moment.at_rest(arm, np.full(6, 0.3)).with_mode("joint_2", Mode.PRESCRIBED).with_dof("rate", 1, 3.0)
    there = advanced(moment.with_dof("tau", 0, 2.0), 0.2)
    course = {"joint_2": lambda t: (0.3 + 1.5 * t * t, 3.0 * t, 3.0)}
    wanted = kf.simulate(arm, moment.q, moment.v, [0.0, 0.2], [2.0, 0, 0, 0, 0, 0], courses=course, substeps=200)
    np.testing.assert_allclose(there.q, wanted.q[-1], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(there.v, wanted.v[-1], rtol=1e-6, atol=1e-6)


def test_a_robot_that_falls_stays_in_the_picture():
    flyer = kf.models.humanoid()
    with Explorer(flyer, port=0) as explorer:
        scene, start = explorer.scene, kf.center_of_mass(flyer, explorer.moment.q)
        for _ in range(60):
            explorer.advance(1 / 30)
            explorer.refresh(pictures=False)
        fallen = kf.center_of_mass(flyer, explorer.moment.q) - start
        assert np.linalg.norm(fallen) > 10
        assert np.linalg.norm(fallen + scene.world.position) < 0.34 * scene.reach
    with Explorer(kf.models.puma560(), port=0) as bolted:
        bolted.advance(1.0)
        bolted.refresh()
        assert not np.any(bolted.scene.world.position)


def test_numbers_have_units_add_up_and_are_zero_where_they_are_rounding():
    arm = kf.models.puma560()
    with Explorer(arm, [0.3, -0.8, 0.4, 0.2, 0.5, 0.1], port=0) as explorer:
        felt, table = explorer.panel.felt.content, explorer.panel.table.content
        assert "kg m²**" in felt and "rad/s²" in felt and "N m" in felt
        along = {line.split("|")[1].strip(): float(line.split("|")[2]) for line in felt.splitlines()[4:9]}
        f, _, _, P, z = along.values()
        assert abs(P + z - f) < 2e-3 * abs(P)  # four digits are shown
        assert table.count("<td>kg m²</td>") == table.count("<td>rad/s²</td>") == 6
    with Explorer(kf.models.double_pendulum(), [np.pi, 0.0], port=0) as explorer:
        assert np.abs(explorer.numbers.a).max() < 1e-12
        assert "e-1" not in explorer.panel.table.content
    slide = kf.System([kf.Body("cart", np.eye(6), kf.Hinge.prismatic([1, 0, 0]))])
    with Explorer(slide, port=0) as explorer:
        assert "kg**" in explorer.panel.felt.content and "<td>m/s²</td>" in explorer.panel.table.content
    assert solve(Moment.at_rest(arm)).H.shape == (6, 6)
