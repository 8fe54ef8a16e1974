"""Sums and frames in one sweep a state: any batch, any kind of array, and poses from matrix exponentials."""

import numpy as np
import pytest
from hypothesis import given, settings
from multibody_cases import close, forest, seeds, skew, state
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

import kfdyn.multibody as mb
from kfdyn.errors import ModelError
from kfdyn.multibody.parts.hinge import Coordinates
from kfdyn.spatial import inertia_parameters
from kfdyn.sweeps import entry as entries
from kfdyn.sweeps import loop, sincos, sweep

CALLS = {
    "kinetic_energy": lambda s, q, v, a: mb.kinetic_energy(s, q, v),
    "potential_energy": lambda s, q, v, a: mb.potential_energy(s, q),
    "center_of_mass": lambda s, q, v, a: mb.center_of_mass(s, q),
    "momentum": lambda s, q, v, a: mb.momentum(s, q, v),
    "centroidal_momentum": lambda s, q, v, a: mb.centroidal_momentum(s, q, v),
    "jacobian": lambda s, q, v, a: mb.jacobian(s, q, "tool"),
    "rotation": lambda s, q, v, a: mb.frame_pose(s, q, "tool").rotation,
    "position": lambda s, q, v, a: mb.frame_pose(s, q, "tool").position,
    "velocity": lambda s, q, v, a: mb.frame_velocity(s, q, v, "tool"),
    "acceleration": lambda s, q, v, a: mb.frame_acceleration(s, q, v, a, "tool"),
}


@pytest.fixture(params=CALLS)
def call(request):
    return CALLS[request.param]


def placed(rotation, position):
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = rotation, position
    return out


def poses(system, q):
    """Every body's pose as a product of 4 x 4 matrices, screws by their exponentials."""
    out = {-1: np.eye(4)}
    for k in system.layout.order:
        body = system.bodies[k]
        pose = out[int(system.parent[k])] @ placed(body.rotation, body.position)
        own = q[system.q_slice(body.hinge_name)]
        if body.hinge.coordinates == Coordinates.SCREWS:
            for screw, angle in zip(body.hinge.screws, own):
                twist = np.zeros((4, 4))
                twist[:3, :3], twist[:3, 3] = skew(screw[:3]), screw[3:]
                pose = pose @ expm(angle * twist)
        else:
            slide = own[:3] if len(own) == 7 else np.zeros(3)
            pose = pose @ placed(Rotation.from_quat(own[-4:]).as_matrix(), slide)
        out[k] = pose
    return out


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_poses_are_products_of_exponentials(seed):
    """Every hinge; and with them the mass centre and the potential energy."""
    system, rng = forest(seed)
    q, _ = state(system, rng)
    expected = poses(system, q)
    moment = np.zeros(3)
    for k, body in enumerate(system.bodies):
        pose = mb.frame_pose(system, q, body.name)
        close(placed(*pose), expected[k], 1e-13)
        mass, com, _ = inertia_parameters(body.inertia)
        moment += mass * (expected[k] @ [*com, 1.0])[:3]
    close(mb.center_of_mass(system, q), moment / system.mass, 1e-13)
    close(mb.potential_energy(system, q), -system.gravity @ moment, 1e-12)


@pytest.mark.parametrize("size", [0, 1, 7, 17, 4097])
def test_a_row_of_a_batch_is_the_row_alone(call, size):
    system, rng = forest(5, n=9)
    q = np.array([system.random_configuration(rng) for _ in range(min(size, 20))]).reshape(-1, system.nq)
    q = q[np.arange(size) % max(len(q), 1)]
    v, a = rng.normal(size=(2, size, system.nv))
    batch = call(system, q, v, a)
    assert len(batch) == size
    for b in range(0, size, max(1, size // 9)):
        np.testing.assert_array_equal(call(system, q[b], v[b], a[b]), batch[b])


def test_threads_do_not_show(call, monkeypatch):
    monkeypatch.setattr(entries, "_LEAST", 64)  # so that a small batch is shared
    system, rng = forest(5, n=9)
    q, v = state(system, rng, (301,))
    answers = []
    for workers in ("1", "2", "5"):
        monkeypatch.setenv("KFDYN_NUM_THREADS", workers)
        answers.append(call(system, q, v, v))
        q[300, 0] = np.nan  # in the part of the last thread
        with pytest.raises(ModelError, match="q has entries that are not finite"):
            call(system, q, v, v)
        q[300] = q[299]
    for other in answers[1:]:
        np.testing.assert_array_equal(answers[0][:300], other[:300])


def test_arguments_of_any_kind(call):
    """Broadcast, strided, read-only and 32-bit arguments, and lists: the answers of plain arrays."""
    system, rng = mb.models.chain(6), np.random.default_rng(1)
    system = mb.System(system.bodies, system.gravity, {"tool": mb.Frame("link_5", position=[0.1, 0.2, 0.3])})
    single = rng.normal(size=(3, 6, 6)).astype(np.float32)
    plain = single.astype(float)
    expected = call(system, *plain)
    strided = [np.asfortranarray(x) for x in plain]
    frozen = plain.copy()
    frozen.flags.writeable = False
    for other in (single, strided, frozen, plain.tolist(), [x[::-1].copy()[::-1] for x in plain]):
        np.testing.assert_array_equal(call(system, *other), expected)
    shaped = call(system, *plain.reshape(3, 2, 3, 6))
    np.testing.assert_array_equal(shaped, expected.reshape(2, 3, *expected.shape[1:]))
    one = call(system, plain[0], plain[1, 2], plain[2, 2])
    np.testing.assert_array_equal(one[2], expected[2])


def test_sine_and_cosine():
    """To 2e-16 of 1 against the C library, in every quadrant, near its borders, and far out."""

    @sweep
    def tabulate(x, s, c):
        for i in loop(x.size):
            s[i], c[i] = sincos(x[i])

    rng = np.random.default_rng(0)
    quadrants = np.pi / 4 * np.arange(-20, 21)
    near = (quadrants[:, None] + [-1e-9, -1e-16, 0.0, 1e-16, 1e-9]).ravel()
    x = np.array(
        [*rng.uniform(-10, 10, 2000), *rng.uniform(-1e5, 1e5, 2000), *near, 0.0, 1e-300, 99999.9, 1e5, -3e7, 1e15]
    )
    s, c = np.empty((2, x.size))
    tabulate(x, s, c)
    assert (abs(s - np.sin(x)) <= 2.3e-16).all() and (abs(c - np.cos(x)) <= 2.3e-16).all()
    tabulate(np.array([np.nan, np.inf]), s, c)
    assert np.isnan(s[:2]).all() and np.isnan(c[:2]).all()
