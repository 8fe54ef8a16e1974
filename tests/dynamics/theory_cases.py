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
    """Forward dynamics by Pinocchio's aba; external forces enter through its Jacobians."""
    pin = pytest.importorskip("pinocchio")
    from pinocchio_models import pinocchio_model

    peer = pinocchio_model(system)
    applied = peer.v(tau)
    if external_forces is not None:
        pin.computeJointJacobians(peer.model, peer.data, peer.q(q))
        pin.updateFramePlacements(peer.model, peer.data)
        for name, force in zip(system.body_names, external_forces):
            J = pin.getFrameJacobian(peer.model, peer.data, peer.frame[name], pin.LOCAL_WORLD_ALIGNED)
            applied = applied + J.T @ np.r_[force[3:], force[:3]]
    return pin.aba(peer.model, peer.data, peer.q(q), peer.v(v), applied)[peer.v_index]
