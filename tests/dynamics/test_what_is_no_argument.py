"""Arguments that are none get words, not the AttributeError or TypeError of a line deep inside."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import KfdynError

ARM, Q = kf.models.double_pendulum(), np.full(2, 0.3)
MODEL = kf.as_estimation(ARM, Q)
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
    "a complex axis": (lambda: kf.Hinge.revolute(np.array([1j, 0, 1])), "three real numbers"),
    "a complex slide": (lambda: kf.Hinge.prismatic(np.array([0, 0, 1 + 0j])), "three real numbers"),
}


@pytest.mark.parametrize("name", CALLS)
def test_words_instead_of_a_raw_error(name):
    call, said = CALLS[name]
    with pytest.raises(KfdynError, match=said):
        call()
