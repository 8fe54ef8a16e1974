"""Arguments that are none get words, not the AttributeError or TypeError of a line deep inside."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import KfdynError

ARM, Q = kf.models.double_pendulum(), np.full(2, 0.3)
MODEL, TORQUE = kf.as_estimation(ARM, Q), kf.sensors.JointTorque(1.0)
BENT = kf.FlexibleSystem([kf.beam("rod", 1.0, 2.0, bending=(0.0, 50.0))])
CALLS = {
    "partition of a system": (lambda: kf.partition_hinges(ARM), "kf.as_estimation"),
    "partition by a number": (lambda: kf.partition_hinges(MODEL, 5), "groups must be a sequence"),
    "observability of None": (lambda: kf.observability(ARM, Q, [None]), "sensor 0 is a NoneType"),
    "observability of a kind": (lambda: kf.observability(ARM, Q, [kf.sensors.JointTorque]), "sensor 0 is a type"),
    "observability of a number": (lambda: kf.observability(ARM, Q, 5), "sensors must be a list"),
    "estimate without sensors": (lambda: kf.estimate_dynamics(ARM, Q, None, None, []), "sensors must be a list"),
    "frames without names": (lambda: kf.System(ARM.bodies, frames=[kf.Frame("upper")]), "known by its name"),
    "a frame that is none": (lambda: kf.System(ARM.bodies, frames={"tool": 5}), "frame 'tool' must be a kf.Frame"),
    "a float for an output": (lambda: kf.inverse_element(MODEL, 1.0, 0), "a whole one, got 1.0"),
    "no output": (lambda: kf.inverse_element(MODEL, None, 0), "a whole one, got None"),
    "groups of words": (lambda: kf.partition_hinges(MODEL, ["a", "b"]), "lists of numbers of outputs"),
    "groups of numbers": (lambda: kf.partition_hinges(MODEL, [0, 0]), "lists of numbers of outputs"),
    "groups of halves": (lambda: kf.partition_hinges(MODEL, [[[0.5]], None]), "lists of numbers of outputs"),
    "groups by name": (lambda: kf.partition_hinges(MODEL, {0: None, 1: None}), "groups must be a sequence"),
    "transitions in a list": (lambda: kf.partition_hinges(MODEL, transitions=[1]), "transitions must map nodes"),
    "a transition of a word": (lambda: kf.partition_hinges(MODEL, transitions={"a": []}), "names node 'a'"),
    "a number for transitions": (lambda: kf.partition_hinges(MODEL, transitions={0: 5}), "must be a list, got 5"),
    "transitions of words": (lambda: kf.partition_hinges(MODEL, transitions={0: ["a"]}), "array of real numbers"),
    "no sensors to begin with": (lambda: kf.place_sensors(ARM, Q, None, [TORQUE]), "sensors must be a list"),
    "no candidates": (lambda: kf.place_sensors(ARM, Q, [], None), "candidates must be a list"),
    "a candidate that is none": (lambda: kf.place_sensors(ARM, Q, [], [5]), "candidate 0 is a int"),
    "half a sensor": (lambda: kf.place_sensors(ARM, Q, [], [TORQUE], 0.5), "cannot choose 0.5 of 1"),
    "no target": (lambda: kf.place_sensors(ARM, Q, [], [TORQUE], target=None), "target must be a quantity"),
    "no readings": (lambda: kf.estimate_dynamics(ARM, Q, None, [TORQUE], None), "readings must be a list"),
    "a system for bodies": (lambda: kf.System(ARM), "bodies must be a list"),
    "None for bodies": (lambda: kf.System(None), "bodies must be a list"),
    "a system for loops": (lambda: ARM.with_loops(ARM), "loops must be a list"),
    "a system for couplings": (lambda: ARM.with_couplings(ARM), "couplings must be a list"),
    "loops of a system": (lambda: kf.System(ARM.bodies, loops=5), "loops must be a list"),
    "couplings of a system": (lambda: kf.System(ARM.bodies, couplings=5), "couplings must be a list"),
    "a flexible system of nothing": (lambda: kf.FlexibleSystem(None), "bodies must be a list"),
    "loops of a flexible system": (lambda: BENT.with_loops(ARM), "loops must be a list"),
    "couplings of a flexible system": (lambda: BENT.with_couplings(ARM), "couplings must be a list"),
    "an array for a body": (lambda: BENT.body_index(np.arange(3)), "has no body array"),
    "inertias of a list": (lambda: kf.composite_inertias([ARM]), "ss must be a kfdyn.StateSpace, got list"),
    "a complex axis": (lambda: kf.Hinge.revolute(np.array([1j, 0, 1])), "three real numbers"),
    "a complex slide": (lambda: kf.Hinge.prismatic(np.array([0, 0, 1 + 0j])), "three real numbers"),
}


@pytest.mark.parametrize("name", CALLS)
def test_words_instead_of_a_raw_error(name):
    call, said = CALLS[name]
    with pytest.raises(KfdynError, match=said):
        call()


@pytest.mark.parametrize("function", [kf.frame_pose, kf.jacobian, kf.operational_space_compliance])
@pytest.mark.parametrize("frame", [ARM, [ARM, ARM], {1: ARM}], ids=["system", "list", "mapping"])
def test_a_message_has_one_line_and_not_a_whole_system(function, frame):
    with pytest.raises(KfdynError) as said:
        function(ARM, Q, frame)
    assert len(str(said.value)) < 160 and "\n" not in str(said.value)


ODD = {
    "length": [1e300, 1e160, 1e-100, 1e-300, 1e-320, 0.0, -1.0, np.nan, "a", None, 1j, [1.0, 2.0]],
    "density": [1e308, 1e-320, 0.0, None, "x"],
    "bending": [1e308, 1e-320, None, "x", 1j, [1.0, "a"], [None, 1.0], [1.0, [2.0]], -1.0],
    "torsion": [1e308, -1.0, None, "x", 1j],
    "stretch": [1e308, -1.0, None, "x", 1j],
    "gyration": [1e-200, 1e-320, 1e200, np.inf, -1.0, None, "x", 1j],
    "damping": [np.inf, np.nan, 1e308, -1.0, None, "x"],
    "modes": ["x", None, 1.5, {"y": True}],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in ODD.items() for value in values], ids=str)
@pytest.mark.parametrize("torsion", [0.0, 1.0])
def test_a_beam_says_which_size_is_none(key, value, torsion):
    sound = {"length": 2.0, "density": 0.5, "bending": (8.0, 0.0), "gyration": 0.1, "torsion": torsion}
    with pytest.raises(KfdynError, match=f"'rod': .*{key.rstrip('s')}"):
        kf.beam("rod", **(sound | {key: value}))


@pytest.mark.parametrize("size", [1e-38, 1e-9, 1e9, 1e38])
def test_a_beam_of_any_size_has_the_frequencies_of_its_scale(size):
    """ω² = 1.875⁴ EI/(ρA L⁴), whatever the unit of length; a nanotube is a beam, too."""
    rod, scaled = (kf.beam("rod", 2.0 * x, 0.5, bending=(8.0, 3.0)) for x in (1.0, size))
    # the elements' highest frequency squared is 1e7 times the lowest, which has so many digits less
    np.testing.assert_allclose(scaled.stiffness * size**4, rod.stiffness, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(scaled.rigid.inertia[:3, :3] / size**3, rod.rigid.inertia[:3, :3], rtol=1e-9)
