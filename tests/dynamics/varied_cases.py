"""Robots of one topology with random numbers, and each of them as a system of its own."""

import numpy as np

import kfdyn as kf
from kfdyn.spatial import inertia_parameters

SPREAD = 0.2


def varied(system, size, rng):
    """Robots with everything varied that may be."""
    tree = system.open_tree
    n, nv = tree.n_bodies, tree.nv
    mass, com, central = inertia_parameters(np.stack([body.inertia for body in tree.bodies]))

    def about(own, *tail):
        return own * (1.0 + SPREAD * rng.uniform(-1, 1, size=(size, *tail)))

    return kf.with_parameters(
        system, masses=about(mass, n), coms=about(com, n, 1), inertias=about(central, n, 1, 1),
        positions=about(tree.layout.position, n, 1), armature=about(tree.armature + 0.05, nv),
        damping=about(0.3, nv), stiffness=about(0.2, 1) * turning(tree),
    )  # fmt: skip


def turning(tree):
    """1 where a dof may have a spring."""
    out = np.ones(tree.nv)
    for body in tree.bodies:
        if body.hinge.kind in ("free", "custom"):
            out[tree.v_slice(body.hinge_name)] = 0.0
    return out


def one_by_one(function, batch, *arguments):
    """The answers of the robots, each a System, to their rows of the arrays; a tuple of arrays."""
    answers = []
    for i, system in enumerate(batch):
        found = function(system, *(x[i] if isinstance(x, np.ndarray) else x for x in arguments))
        answers.append(found if isinstance(found, tuple) else (found,))
    return tuple(np.array(each) for each in zip(*answers))


def same(found, expected):
    """Equal to the bit, array by array."""
    found = found if isinstance(found, tuple) else (found,)
    assert len(found) == len(expected)
    for x, y in zip(found, expected):
        np.testing.assert_array_equal(x, y)
