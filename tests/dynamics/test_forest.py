"""What all functions of the room share: empty systems, parts, threads."""

import numpy as np
import pytest
from multibody_cases import forest, state

import kfdyn.dynamics as kd
import kfdyn.multibody as mb
from kfdyn.dynamics.solving.forest import PART, States
from kfdyn.errors import ModelError, SingularError
from kfdyn.spatial import spatial_inertia


@pytest.mark.parametrize("batch", [(), (3,), (0,)])
def test_system_without_dofs(batch):
    """A welded structure has nothing to move, and that is no error."""
    system = mb.System([mb.Body("base", np.eye(6)), mb.Body("top", np.eye(6), parent="base")])
    q = v = np.zeros((*batch, 0))
    for answer in (
        kd.forward_dynamics(system, q, v, v),
        kd.forward_dynamics(system, q, v, v, method="mass_matrix"),
        kd.inverse_dynamics(system, q, v, v),
        kd.inverse_dynamics(system, q, v, v, method="operators"),
        kd.bias_forces(system, q, v),
        *kd.hybrid_dynamics(system, q, v, v, v, prescribed=np.zeros(0, dtype=bool)),
    ):
        assert answer.shape == (*batch, 0)
    for method in ("composite", "columns", "operator"):
        assert kd.mass_matrix(system, q, method=method).shape == (*batch, 0, 0)
    for method in ("innovations", "engine"):
        assert kd.mass_matrix_inverse(system, q, method=method).shape == (*batch, 0, 0)
    np.testing.assert_array_equal(kd.mass_matrix_trace(system, q), np.zeros(batch))
    np.testing.assert_array_equal(kd.mass_matrix_logdet(system, q), np.zeros(batch))
    np.testing.assert_array_equal(kd.operational_space_compliance(system, q, "top"), np.zeros((*batch, 6, 6)))


@pytest.mark.parametrize("workers", ["1", "4"])
def test_parts_cover_every_state_once(workers, monkeypatch):
    monkeypatch.setenv("KFDYN_NUM_THREADS", workers)
    system, rng = forest(3, n=5)
    size = 3 * (PART // 5) + 7
    states = States.of(system, np.tile(state(system, rng)[0], (size, 1)))
    visits = np.zeros(size, dtype=int)

    def work(part):
        assert 0 < part.stop - part.start <= PART // 5
        visits[part] += 1

    states.in_parts(work)
    assert (visits == 1).all()


def test_a_failing_thread_is_heard(monkeypatch):
    """The hinge, and the configuration far down the batch, are named whichever thread found them."""
    monkeypatch.setenv("KFDYN_NUM_THREADS", "4")
    bob = spatial_inertia(1.0, [0, 0, -1], np.zeros((3, 3)))  # hanging straight down it has no inertia about z
    turn = mb.Body("turntable", np.zeros((6, 6)), mb.Hinge.revolute([0, 0, 1]))
    system = mb.System([turn, mb.Body("bob", bob, mb.Hinge.revolute([0, 1, 0]), "turntable")])
    q = np.full((5, 2 * PART, 2), 0.3)
    q[3, 4321, 1] = 0.0
    with pytest.raises(SingularError, match=r"hinge 'turntable' \(at q\[3, 4321\]\)"):
        kd.mass_matrix_logdet(system, q)
    q[0, 1, 0] = np.nan
    with pytest.raises(ModelError, match="q has entries that are not finite"):
        kd.mass_matrix_logdet(system, q)
