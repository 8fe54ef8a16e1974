"""Every public URDF with mimic joints: against G*𝓜G, dense, and against Pinocchio's mimic joints."""

import numpy as np
import pytest
from robot_agreement import INDEFINITE, apart, bullet_robots, example_robots, label

import kfdyn as kf
from kfdyn.errors import SingularError

pin = pytest.importorskip("pinocchio")

MASSLESS = {"romeo", "romeo_laas_small"}  # fingers without mass


def with_mimic():
    found = []
    for file in [*example_robots(), *bullet_robots()]:
        if "<mimic" in file.read_text(errors="replace"):
            found.append(file)
    return found


FILES = with_mimic()


@pytest.mark.skipif(not FILES, reason="example-robot-data is not installed")
def test_enough_robots():
    assert len(FILES) >= 13


@pytest.mark.parametrize("file", FILES, ids=label)
def test_mimics_are_obeyed(file):
    indefinite = "warn" if file.stem in INDEFINITE else "refuse"
    s = kf.read(file, indefinite_inertia=indefinite).system
    if s.is_tree or file.stem in MASSLESS:
        if file.stem in MASSLESS and not s.is_tree:
            with pytest.raises(SingularError, match="hinges"):
                kf.forward_dynamics(s, s.neutral(), None, np.zeros(s.nv))
        return
    rng = np.random.default_rng(3)
    q, (v, tau) = s.random_configuration(rng), rng.normal(size=(2, s.nv))
    G, M = s.expansion(), kf.mass_matrix(s.open_tree, s.expand(q))
    reduced = G.T @ M @ G
    assert apart(kf.mass_matrix_inverse(s, q) @ reduced, np.eye(s.nv)) < 1e-12
    a = kf.forward_dynamics(s, q, v, tau)
    assert apart(a, np.linalg.solve(reduced, tau - G.T @ kf.bias_forces(s.open_tree, s.expand(q), G @ v))) < 1e-12
    assert apart(kf.forward_dynamics(s, q, v, tau, method="embedding"), a) < 1e-12
    assert apart(kf.inverse_dynamics(s, q, v, a), tau) < 1e-12
    try:
        model = pin.buildModelFromUrdf(str(file), mimic=True)
    except ValueError:
        return  # Pinocchio wants what is followed nearer to the root
    assert model.nv == s.nv
    here = {name: s.v_slice(name) for name in s.hinge_names if _own(s, name)}
    q_pin, order = pin.neutral(model), []
    for name, joint in zip(list(model.names)[1:], list(model.joints)[1:]):
        if joint.nv != 1 or joint.shortname().startswith("JointModelMimic"):
            continue
        angle = q[s.q_slice(name)][0]
        q_pin[joint.idx_q : joint.idx_q + joint.nq] = angle if joint.nq == 1 else [np.cos(angle), np.sin(angle)]
        order.append((joint.idx_v, here[name].start))
    theirs, ours = (np.array(x) for x in zip(*sorted(order)))
    assert len(ours) == s.nv
    upper = np.triu(pin.crba(model, model.createData(), q_pin))
    expected = np.empty((s.nv, s.nv))
    expected[np.ix_(ours, ours)] = (upper + np.triu(upper, 1).T)[np.ix_(theirs, theirs)]
    assert apart(kf.mass_matrix(s, q), expected) < 1e-12


@pytest.mark.parametrize("file", [file for file in FILES if file.stem == "panda"], ids=label)
def test_derivatives_of_a_panda_as_loaded(file):
    """Against differences of order six of Pinocchio's rnea, whose own derivatives refuse mimic joints."""
    s, model = kf.load(file), pin.buildModelFromUrdf(str(file), mimic=True)
    data, rng = model.createData(), np.random.default_rng(3)
    assert not s.is_tree and [name for name in s.hinge_names if _own(s, name)] == list(model.names)[1:-1]
    q, (v, a) = s.random_configuration(rng), rng.normal(size=(2, s.nv))

    def slope(function, h=2e-3):
        def central(h):
            return np.stack([(function(h * e) - function(-h * e)) / (2 * h) for e in np.eye(s.nv)], axis=-1)

        one, two, four = central(h), central(2 * h), central(4 * h)
        return (16 * (4 * one - two) / 3 - (4 * two - four) / 3) / 15

    ours = kf.inverse_dynamics_derivatives(s, q, v, a)
    theirs = (
        slope(lambda d: np.array(pin.rnea(model, data, q + d, v, a))),
        slope(lambda d: np.array(pin.rnea(model, data, q, v + d, a))),
        slope(lambda d: np.array(pin.rnea(model, data, q, v, a + d))),
    )
    for one, other in zip(ours, theirs):
        assert apart(one, other) < 1e-9
    forward = kf.forward_dynamics_derivatives(s, q, v, kf.inverse_dynamics(s, q, v, a))
    for one, other in zip(forward, (-theirs[0], -theirs[1], np.eye(s.nv))):
        assert apart(one, np.linalg.solve(theirs[2], other)) < 1e-8


def _own(s, name):
    return s._expansion.has_own[s.hinge_index(name)] and s.v_slice(name).stop > s.v_slice(name).start
