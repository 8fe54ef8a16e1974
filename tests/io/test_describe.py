import numpy as np
from urdf_cases import ALL_JOINTS, joint, link, robot

import kfdyn.io as kio
import kfdyn.multibody as mb


def test_tree_hinges_masses_and_warnings():
    text = kio.describe(kio.read(ALL_JOINTS, mimic="free"))
    lines = text.splitlines()
    assert lines[0] == "test: 5 bodies, 12 dofs, 2 trees, nq 13, mass 6 kg, gravity (0, 0, -9.81)"
    arm, slider, puck, drone, wheel = lines[4:9]
    assert arm.startswith("├ arm ") and "turn" in arm and "revolute, axis (0, 0.707, 0.707)" in arm and "-1 .. 2" in arm
    assert slider.startswith("│ ├ slider") and "prismatic, axis +x" in slider and slider.endswith("2 kg")
    assert puck.startswith("│ │ └ puck") and "planar" in puck and " 2..4 " in puck
    assert drone.startswith("│ └ drone") and "free" in drone and " 5..10 " in drone
    assert wheel.startswith("└ wheel") and "axis -z" in wheel
    assert "frames: 'flange', 'tool'" in text
    assert "fixed to the world: 'base'" in text
    assert "warning: mimic joints move freely" in text


def test_hinges_that_move_no_mass_are_told():
    text = robot(
        link("a"), link("b", 1), link("c"), joint("j", "continuous", "a", "b"), joint("k", "continuous", "b", "c")
    )
    told = kio.describe(kio.load(text))
    assert "warning: hinges that move no mass, so forward dynamics has no answer: 'k'" in told


def test_limits_that_leave_the_neutral_configuration_out_are_told():
    bent = '<limit lower="-3" upper="-0.1" effort="1" velocity="1"/>'
    text = robot(link("a"), link("b", 1), joint("j", "revolute", "a", "b", bent))
    told = kio.describe(kio.load(text))
    assert "warning: the neutral configuration is beyond the limits of hinges 'j'" in told
    assert "neutral" not in kio.describe(kio.load(text.replace("-0.1", "0.1")))


def test_moments_without_a_mass_are_told():
    hollow = link("b", 1).replace('mass value="1"', 'mass value="0"')
    told = kio.describe(kio.load(robot(link("a"), hollow, joint("j", "continuous", "a", "b"))))
    assert "warning: moments of inertia without a mass, used as they are: bodies 'b'" in told


def test_long_systems_are_cut_short():
    text = kio.describe(mb.models.chain(60), most=40)
    assert text.count("\n") < 50
    assert "... and 20 more bodies" in text
    assert kio.describe(mb.models.chain(3), most=2).endswith("... and 1 more body")
    assert max(map(len, text.splitlines())) < 200


def test_a_single_body():
    text = kio.describe(mb.System([mb.Body("x" * 100, np.eye(6), mb.Hinge.free())]))
    assert text.startswith("system: 1 body, 6 dofs")
    assert "…" in text


def test_what_simulate_ignores_is_told():
    """Among the notes, in words and with the option that asks for it; no reason to warn on every load."""
    loaded = kio.read(ALL_JOINTS)
    (note,) = loaded.quiet
    assert note in loaded.notes and note not in loaded.warnings
    assert note == (
        "simulate ignores, unless asked: limits of q of 2 hinges (stops=True), effort limits of 2 hinges "
        "(effort=True), Coulomb friction of 1 hinge (friction=True), damping of 1 hinge (damping=True), limits of v "
        "of 2 hinges (no option)"
    )
    for told in (kio.describe(loaded), kio.describe(loaded.system)):
        assert told.endswith(f"note: {note}") and told.count("simulate") == 1
    assert "simulate" not in kio.describe(mb.models.double_pendulum())
