"""Random trees that use every hinge there is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.multibody.models.random_bodies import KINDS, random_hinge, random_inertia, random_rotation
from kfdyn.multibody.parts.body import Body
from kfdyn.multibody.system import System


def random_tree(
    n: int,
    seed: int = 0,
    hinges: Sequence[str] = KINDS,
    trees: int = 1,
    branching: float = 0.5,
    armature: bool = True,
) -> System:
    """Random forest of n bodies; with n ≥ 12 every kind of hinge appears.

    Parameters
    ----------
    n
        Number of bodies.
    seed
        The same seed gives the same system.
    hinges
        Kinds to draw from: dealt like cards, so each appears before one repeats.
    trees
        Number of roots.
    branching
        Probability that a body attaches to a random earlier body and not to the last one of its tree.
    armature
        Whether dofs have rotors.

    Returns
    -------
    System
        n bodies on ``trees`` roots.

    Examples
    --------
    >>> system = random_tree(8, seed=1)
    >>> system.n_bodies
    8
    """
    if not hinges:
        raise ModelError(f"random_tree: no hinges to draw from; the kinds are {', '.join(KINDS)}")
    if not 1 <= trees <= n:
        raise ModelError(f"random_tree: n = {n} bodies for trees = {trees}; give one body or more for each tree")
    rng = np.random.default_rng(seed)
    kinds = [kind for _ in range(-(-n // len(hinges))) for kind in rng.permutation(hinges)]
    inertia, rotation = random_inertia(rng, n), random_rotation(rng, n)
    bodies: list[Body] = []
    members: list[list[int]] = [[] for _ in range(trees)]
    for k in range(n):
        own = members[k if k < trees else rng.integers(trees)]
        parent = None
        if own:
            parent = f"body_{rng.choice(own) if rng.random() < branching else own[-1]}"
        own.append(k)
        hinge = random_hinge(rng, str(kinds[k]))
        bodies.append(
            Body(
                f"body_{k}",
                inertia[k],
                hinge,
                parent,
                rotation[k],
                rng.normal(size=3, scale=0.3),
                f"{hinge.kind}_{k}",
                armature=rng.uniform(0.02, 0.2, hinge.nv) if armature else 0.0,
            )
        )
    return System(bodies, name=f"random_tree({n}, seed={seed})")
