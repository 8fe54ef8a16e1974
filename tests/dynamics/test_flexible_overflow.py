"""Bodies that bend, beyond doubles: a number or the reason why there is none, in every function that reads them."""

import flexible_cases
import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import KfdynError

BENT = flexible_cases.tree(0)
STRAIGHT = BENT.neutral()
OF_BENT = {
    "kinetic_energy": lambda q, v: kf.kinetic_energy(BENT, q, v),
    "potential_energy": lambda q, v: kf.potential_energy(BENT, q),
    "center_of_mass": lambda q, v: kf.center_of_mass(BENT, q),
    "momentum": lambda q, v: kf.momentum(BENT, q, v),
    "centroidal_momentum": lambda q, v: kf.centroidal_momentum(BENT, q, v),
    "frame_velocity": lambda q, v: kf.frame_velocity(BENT, q, v, BENT.body_names[-1]),
    "frame_acceleration": lambda q, v: kf.frame_acceleration(BENT, q, v, v, BENT.body_names[-1]),
    "jacobian": lambda q, v: kf.jacobian(BENT, q, BENT.body_names[-1]),
    "mass_matrix_logdet": lambda q, v: kf.mass_matrix_logdet(BENT, q),
    "mass_matrix_inverse": lambda q, v: kf.mass_matrix_inverse(BENT, q),
}


@pytest.mark.parametrize("where", ["q", "v", "both"])
@pytest.mark.parametrize("name", OF_BENT)
def test_bodies_that_bend_too_far_or_too_fast(name, where):
    """Never infinite, NaN or a warning of NumPy's: a number or the reason why there is none."""
    refused, finite = 0, 0
    for size in (1.0, 1e75, 1e155, 1e200, 1e300, 1.7e308):
        for lead in ((), (2,)):
            q, v = np.broadcast_to(STRAIGHT, (*lead, BENT.nq)).copy(), np.full((*lead, BENT.nv), 0.1)
            for body in BENT.flexible:
                q[..., BENT.mode_slice(body)] = size if where != "v" else 0.01
            if where != "q":
                v = size * np.sign(np.cos(np.arange(v.size).reshape(v.shape)))
            try:
                assert np.isfinite(OF_BENT[name](q, v)).all()
                finite += 1
            except KfdynError:
                refused += 1
    takes_v = name in ("kinetic_energy", "momentum", "centroidal_momentum", "frame_velocity", "frame_acceleration")
    assert finite and (refused if where != "v" or takes_v else not refused)
