"""Equations of motion written out densely from Jacobians: an oracle that runs no sweep of kfdyn.dynamics."""

import numpy as np
from hypothesis import settings
from multibody_cases import newton_euler

import kfdyn.multibody as mb

quick = settings(
    deadline=None, max_examples=min(25, settings.default.max_examples)
)  # fewer where a profile wants fewer


def dense_mass_matrix(system, q):
    """Σ J*(k) M(k) J(k) + R: the kinetic energy's quadratic form, body by body."""
    inertia = mb.link_terms(system, q).inertia
    out = np.diag(system.armature)
    for k, name in enumerate(system.body_names):
        J = mb.jacobian(system, q, name)
        out = out + J.T @ inertia[k] @ J
    return out


def dense_bias(system, q, v, external_forces=None, gravity=None):
    """Newton–Euler in Python with a = 0."""
    terms = mb.link_terms(system, q, v, external_forces, gravity)
    return newton_euler(system, terms, np.zeros(system.nv))


def over(batch, function, *arrays):
    """Stack ``function`` of the entries of a batch, one by one."""
    made = [function(*(a[i] for a in arrays)) for i in np.ndindex(batch)]
    return np.array(made).reshape((*batch, *np.shape(made[0])))
