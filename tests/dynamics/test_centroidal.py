"""The centroidal momentum matrix of every kind of system, beside the momentum and Pinocchio's."""

import flexible_cases
import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError

ARM, TREE = kf.models.puma560(), kf.models.random_tree(14, seed=3)
GEAR = kf.Coupling(ARM.hinge_names[1:3], [[1.0], [-0.5]], [0.0, 0.1])
NEGATIVE = [lambda s: -np.sin(s), lambda s: -np.cos(s)]
CAM = kf.Coupling.by_functions(ARM.hinge_names[1], {ARM.hinge_names[2]: [0.1, -0.5, 0.2]})
WAVE = kf.Coupling.by_functions(ARM.hinge_names[1], {ARM.hinge_names[2]: (np.sin, np.cos, *NEGATIVE)})
SYSTEMS = {
    "arm": ARM,
    "every hinge": TREE,
    "humanoid": kf.models.humanoid(),
    "geared": ARM.with_couplings([GEAR]),
    "cam": ARM.with_couplings([CAM]),
    "wave": ARM.with_couplings([WAVE]),
    "looped": kf.models.four_bar(),
    "specialised": kf.specialise(ARM),
    "flexible": flexible_cases.tree(0),
}


@pytest.fixture(params=SYSTEMS)
def system(request):
    return SYSTEMS[request.param]


def states(system, size=5):
    rng = np.random.default_rng(1)
    return np.array([system.random_configuration(rng) for _ in range(size)]), rng.normal(size=(size, system.nv))


def test_it_leads_from_rates_to_the_momentum(system):
    q, v = states(system)
    expected = kf.centroidal_momentum(system, q, v)
    found = (kf.centroidal_momentum_matrix(system, q) @ v[..., None])[..., 0]
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


def test_one_state_batches_lists_and_out(system):
    q, _ = states(system, 6)
    rows = kf.centroidal_momentum_matrix(system, q)
    assert rows.shape == (6, 6, system.nv)
    assert np.array_equal(kf.centroidal_momentum_matrix(system, q.reshape(2, 3, -1)), rows.reshape(2, 3, 6, -1))
    one = kf.centroidal_momentum_matrix(system, q[0])
    assert np.allclose(one, rows[0], rtol=1e-13, atol=1e-14 * np.abs(rows).max())
    assert np.array_equal(kf.centroidal_momentum_matrix(system, q[0].tolist()), one)
    out = np.empty_like(rows)
    assert kf.centroidal_momentum_matrix(system, q, out=out) is out and np.array_equal(out, rows)
    assert kf.centroidal_momentum_matrix(system, np.empty((0, system.nq))).shape == (0, 6, system.nv)


def test_it_is_that_of_pinocchio(tmp_path):
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromXML(kf.save_urdf(ARM))
    q = ARM.random_configuration(3)
    there = kf.to_pinocchio(ARM, model, np.tile(q, (6, 1)), np.eye(6))
    theirs = pin.ccrba(model, model.createData(), there.q[0], np.zeros(model.nv))
    ours = kf.centroidal_momentum_matrix(ARM, q)
    assert np.allclose(ours[[3, 4, 5, 0, 1, 2]], theirs @ there.v.T, rtol=1e-10, atol=1e-12)


def test_robots_that_differ_have_their_own():
    arms = kf.with_parameters(ARM, masses={ARM.body_names[-1]: [1.0, 2.0, 4.0]})
    q = arms.random_configuration(1)
    expected = [kf.centroidal_momentum_matrix(arms[i], q[i]) for i in range(3)]
    assert np.allclose(kf.centroidal_momentum_matrix(arms, q), expected, rtol=1e-13, atol=1e-13)


def test_what_is_wrong_is_said():
    with pytest.raises(ModelError, match="not finite"):
        kf.centroidal_momentum_matrix(ARM, np.full(6, np.nan))
    with pytest.raises(ModelError, match="no mass"):
        kf.centroidal_momentum_matrix(kf.System([kf.Body("ghost", np.zeros((6, 6)), kf.Hinge.revolute())]), [0.0])
