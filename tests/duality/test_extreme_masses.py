"""Masses far from one kilogram: no false alarm, and a sentence where double precision ends."""

import dataclasses

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError

Q = [0.3, 0.2, 0.1]


def chain(factor, gravity=9.81):
    rods = kf.models.uniform_chain(3)
    bodies = [dataclasses.replace(rod, inertia=factor * rod.inertia) for rod in rods.bodies]
    return kf.System(bodies, gravity=[0, 0, -gravity], name="rods")


def asked(report):
    return any(party.name == "Pinocchio" for party in report.parties)


@pytest.mark.parametrize("factor", [1e-100, 1e-18, 1e-16])
def test_pinocchio_is_not_asked_about_masses_below_its_floor(factor):
    pytest.importorskip("pinocchio")
    report = kf.cross_check(chain(factor), Q, samples=500)
    assert report.passed, report.verdict()
    assert not asked(report)
    (reason,) = report.unasked
    assert reason.startswith("Pinocchio was not asked: it computes with masses of 2.2e-16 at least, and 'rod_")


@pytest.mark.parametrize("factor", [1e-15, 1e100])
def test_pinocchio_is_asked_above_it(factor):
    pytest.importorskip("pinocchio")
    report = kf.cross_check(chain(factor, gravity=0.0), Q, samples=500)
    assert report.passed, report.verdict()
    assert asked(report)


@pytest.mark.parametrize("factor", [1e30, 1e100])
def test_weights_that_hide_every_deviation_are_refused(factor):
    """A mean grows as the mass does, a deviation as its root: what is left of a sample without its mean is rounding."""
    with pytest.raises(ModelError, match=r"joint_\d: the mean of its generalised force .* give a lower v or a weaker"):
        kf.cross_check(chain(factor), Q, samples=500)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("factor", [1e-200, 1e150, 1e300])
def test_covariances_that_cannot_be_squared_are_refused(factor):
    with pytest.raises(ModelError, match=r"Q of node .* has entries of .*; choose units"):
        kf.cross_check(chain(factor), Q, samples=500)
    ss = kf.StateSpace([-1], [None], [np.eye(1)], [np.eye(1)], [factor * np.eye(1)])
    with pytest.raises(ModelError, match="R of node 0 has"):
        kf.cross_check(ss, samples=500)
