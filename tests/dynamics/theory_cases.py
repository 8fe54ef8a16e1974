"""Robots in motion and models with their known inputs inside, shared by the tests of the theory."""

from typing import NamedTuple

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.multibody.models.random_bodies import KINDS

#: Pinocchio has no custom hinge, and its slides have unit scale, which a random succession's have not.
HINGES = tuple(kind for kind in KINDS if kind not in ("custom", "succession"))


class Motion(NamedTuple):
    """A robot in a state, with generalised and external forces."""

    system: kf.System
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    external_forces: np.ndarray


def motion(seed, n=None, hinges=HINGES, **options):
    """A random forest of 1 to 12 bodies in motion under random forces."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 13)) if n is None else n
    options = {"trees": int(rng.integers(1, min(n, 3) + 1)), "branching": rng.uniform(), **options}
    system = kf.models.random_tree(n, int(rng.integers(2**31)), hinges, **options)
    v, tau = rng.normal(size=(2, system.nv))
    return Motion(system, system.random_configuration(rng), v, tau, rng.normal(size=(n, 6)))


def with_inputs(case):
    """The model of a case with the case's xi and eta inside."""
    ss = case.ss
    phi = [None if p < 0 else b for p, b in zip(ss.tree.parent, ss.phi)]
    return kf.StateSpace(ss.tree, phi, list(ss.H), list(ss.Q), list(ss.R), case.xi, case.eta)


def pinocchio_accelerations(system, q, v, tau, external_forces=None):
    """Forward dynamics by Pinocchio's aba; an external force is given to the joint that carries its body."""
    pin = pytest.importorskip("pinocchio")
    from pinocchio_models import pinocchio_model

    peer = pinocchio_model(system)
    model, data = peer.model, peer.data
    applied = [pin.Force.Zero() for _ in range(model.njoints)]
    pin.framesForwardKinematics(model, data, peer.q(q))
    for name, force in zip(system.body_names, np.zeros((0, 6)) if external_forces is None else external_forces):
        joint = model.frames[peer.frame[name]].parentJoint
        at = pin.SE3(np.eye(3), data.oMf[peer.frame[name]].translation)
        applied[joint] += data.oMi[joint].actInv(at.act(pin.Force(force[3:], force[:3])))
    return pin.aba(model, data, peer.q(q), peer.v(v), peer.v(tau), applied)[peer.v_index]
