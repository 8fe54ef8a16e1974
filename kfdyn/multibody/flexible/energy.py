"""Energies of a flexible system, summed over its points; strain energy counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.multibody.flexible.system import FlexibleSystem
from kfdyn.multibody.links import link_terms

Array = NDArray[np.float64]


class PointMotion(NamedTuple):
    """World positions and velocities (..., N, 3) of the points of one flexible body."""

    position: Array
    velocity: Array


def point_motion(system: FlexibleSystem, q: ArrayLike, v: ArrayLike, body: str) -> PointMotion:
    """Where the points of a flexible body are and how they move, p + R s and their rates.

    Parameters
    ----------
    system : FlexibleSystem
        The robot.
    q, v : (..., nq), (..., nv)
        State.
    body : str
        A flexible body.

    Returns
    -------
    PointMotion
        ``position`` and ``velocity``, (..., N, 3).
    """
    here, rate = system.checked(q, system.nq, "q"), system.checked(v, system.nv, "v")
    k, flexible = system.body_names.index(body), system.flexible[body]
    terms = link_terms(system.tree, system.expand(here), np.einsum("...ij,...j->...i", system.expansion(here), rate))
    eta, deta = system.modal(here, body, False), system.modal(rate, body, True)
    s = flexible.points + np.einsum("iaj,...j->...ia", flexible.shapes, eta)
    ds = np.einsum("iaj,...j->...ia", flexible.shapes, deta)
    if flexible.bends is not None:
        s = s + 0.5 * np.einsum("iajl,...j,...l->...ia", flexible.bends, eta, eta)
        ds = ds + np.einsum("iajl,...j,...l->...ia", flexible.bends, eta, deta)
    R = terms.rotation[..., k, :, :]
    turned = np.einsum("...ab,...ib->...ia", R, s)
    moved = np.einsum("...ab,...ib->...ia", R, ds)
    V = terms.velocity[..., k, :]
    swung = np.cross(V[..., None, :3], turned)
    return PointMotion(terms.position[..., k, None, :] + turned, V[..., None, 3:] + swung + moved)


def kinetic_energy(system: FlexibleSystem, q: ArrayLike, v: ArrayLike) -> Array:
    """½Σ m_i |v_i|² of points and bodies, and ½v*Rv of rotors, (...)."""
    here, rate = system.checked(q, system.nq, "q"), system.checked(v, system.nv, "v")
    terms = link_terms(system.tree, system.expand(here), np.einsum("...ij,...j->...i", system.expansion(here), rate))
    total = 0.5 * np.sum(system.armature * rate * rate, axis=-1)
    for k, name in enumerate(system.body_names):
        if name in system.flexible:
            u = point_motion(system, here, rate, name).velocity
            total = total + 0.5 * system.flexible[name].weighted(u[..., None], u[..., None])[..., 0, 0]
        else:
            V = terms.velocity[..., k, :]
            total = total + 0.5 * np.einsum("...i,...ij,...j->...", V, terms.inertia[..., k, :, :], V)
    return np.asarray(total)


def potential_energy(system: FlexibleSystem, q: ArrayLike, gravity: ArrayLike | None = None) -> Array:
    """−Σ m_i g·p_i of points and bodies, and the strain energy ½η*Kη, (...)."""
    here = system.checked(q, system.nq, "q")
    g = system.gravity if gravity is None else np.asarray(gravity, dtype=float)
    terms = link_terms(system.tree, system.expand(here))
    total = np.zeros(here.shape[:-1])
    for k, name in enumerate(system.body_names):
        if name in system.flexible:
            body = system.flexible[name]
            p = point_motion(system, here, np.zeros(system.nv), name).position
            eta = system.modal(here, name, False)
            total = total - np.einsum("i,...ia,a->...", body.weights, p, g)
            total = total + 0.5 * np.einsum("...i,ij,...j->...", eta, body.stiffness, eta)
        else:
            com = terms.position[..., k, :] + np.einsum(
                "...ab,b->...a", terms.rotation[..., k, :, :], system.tree.layout.com[k]
            )
            total = total - system.tree.layout.mass[k] * com @ g
    return np.asarray(total)


def momentum(system: FlexibleSystem, q: ArrayLike, v: ArrayLike) -> Array:
    """[angular; linear] about the world's origin, (..., 6)."""
    here, rate = system.checked(q, system.nq, "q"), system.checked(v, system.nv, "v")
    terms = link_terms(system.tree, system.expand(here), np.einsum("...ij,...j->...i", system.expansion(here), rate))
    total = np.zeros((*np.broadcast_shapes(here.shape[:-1], rate.shape[:-1]), 6))
    for k, name in enumerate(system.body_names):
        if name in system.flexible:
            body, points = system.flexible[name], point_motion(system, here, rate, name)
            pair = ("i,...ia->...ia", "ij,...ja->...ia")[body.mass.ndim - 1]
            p = np.einsum(pair, body.mass, points.velocity)
            total = total + np.concatenate([np.cross(points.position, p).sum(axis=-2), p.sum(axis=-2)], axis=-1)
        else:
            h = np.einsum("...ij,...j->...i", terms.inertia[..., k, :, :], terms.velocity[..., k, :])
            at = np.cross(terms.position[..., k, :], h[..., 3:])
            total = total + np.concatenate([h[..., :3] + at, h[..., 3:]], axis=-1)
    return total


def mass_centre(system: FlexibleSystem, q: ArrayLike) -> Array:
    """Mass centre of points and bodies, (..., 3)."""
    here = system.checked(q, system.nq, "q")
    terms = link_terms(system.tree, system.expand(here))
    total = np.zeros((*here.shape[:-1], 3))
    for k, name in enumerate(system.body_names):
        if name in system.flexible:
            p = point_motion(system, here, np.zeros(system.nv), name).position
            total = total + np.einsum("i,...ia->...a", system.flexible[name].weights, p)
        else:
            com = np.einsum("...ab,b->...a", terms.rotation[..., k, :, :], system.tree.layout.com[k])
            total = total + system.tree.layout.mass[k] * (terms.position[..., k, :] + com)
    return total / (system.mass or 1.0)


def centroidal_momentum(system: FlexibleSystem, q: ArrayLike, v: ArrayLike | None) -> tuple[Array, Array]:
    """Mass centre, and momentum about it, (..., 3) and (..., 6)."""
    rate = np.zeros(system.nv) if v is None else v
    com, h = mass_centre(system, q), momentum(system, q, rate)
    return com, np.concatenate([h[..., :3] - np.cross(com, h[..., 3:]), h[..., 3:]], axis=-1)
