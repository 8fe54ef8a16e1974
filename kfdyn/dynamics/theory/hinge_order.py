"""How the hinges of a robot are split: their degrees of freedom as they follow one another, modes before them."""

from __future__ import annotations

import numpy as np

from kfdyn.arrays import Array
from kfdyn.multibody import FlexibleSystem, System
from kfdyn.multibody.calls.arguments import expect_system
from kfdyn.multibody.kinds import expect_open


def succession(system: System) -> list[list[list[int]]]:
    """Groups that split every hinge of a robot into its single degrees of freedom, as its axes follow one another.

    The first degree of freedom is next to the parent, the last next to the body (PART section 2), so the last comes
    first here. The modes of a body that bends are its own, one group before those of its hinge.

    Parameters
    ----------
    system : System
        The robot.

    Returns
    -------
    list of list of list of int
        ``groups`` of :func:`partition_hinges`.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> arm = kf.System([kf.Body("arm", np.eye(6), kf.Hinge.universal())])
    >>> succession(arm)
    [[[1], [0]]]
    """
    expect_open(system, "succession")
    groups = []
    for n, hinge in zip(np.diff(system.places.v_start).tolist(), system.places.hinges):
        modes = [list(range(hinge.nv, n))] if n > hinge.nv else []  # first: the body's own, the hinge is behind them
        groups.append(modes + [[i] for i in reversed(range(hinge.nv))])
    return groups


def behind_modes(system: FlexibleSystem) -> dict[int, list[Array]]:
    """Transitions that leave the modes of bodies that bend behind: [0, 1], from their n + 6 states to six.

    With :func:`succession` this is PART's split of modes from hinge: the hinge is at a mass-less node of six states, as
    a rigid body's is, and only the modes pay for their number.

    Parameters
    ----------
    system : FlexibleSystem
        The robot; of a rigid one there is nothing to leave behind.

    Returns
    -------
    dict of int to list of arrays
        ``transitions`` of :func:`partition_hinges`.

    Examples
    --------
    >>> import numpy as np, kfdyn as kf
    >>> from kfdyn.dynamics import behind_modes, partition_hinges, succession
    >>> rod = kf.beam("rod", 1.0, 2.0, bending=(0.0, 50.0), modes=3, hinge=kf.Hinge.revolute([0, 1, 0]))
    >>> arm = kf.FlexibleSystem([rod])
    >>> whole = kf.as_estimation(arm, arm.neutral())
    >>> split = partition_hinges(whole, succession(arm), transitions=behind_modes(arm))
    >>> whole.n, whole.m, split.ss.n, split.ss.m
    (array([9]), array([4]), array([9, 6]), array([3, 1]))
    """
    expect_system(system)
    found = {}
    for k, (n, m) in enumerate(zip(system.modes.tolist(), system.hinge_v.tolist())):
        if n and m:
            found[k] = [np.eye(n + 6)[n:]] + [np.eye(6)] * (m - 1)
    return found
