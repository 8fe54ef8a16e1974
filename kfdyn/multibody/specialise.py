"""Code for one robot: the same recursions, run by Python over its bodies while code is written."""

from __future__ import annotations

from kfdyn.multibody.calls.arguments import expect_system
from kfdyn.multibody.kinds import expect_rigid
from kfdyn.multibody.system import System


def specialise(system: System) -> System:
    """Return the same system with leave to be compiled for: calls with it run straight-line code of its own.

    Its constants are known while that code is written, so that right angles, axes along the world's, symmetric links
    and hinges on the world cost nothing. Forward and inverse dynamics, bias forces, the mass matrix, its inverse and
    the derivatives are compiled each when first called, and kept on disk under a digest of the robot's numbers.
    Answers differ from those of the system itself by rounding.

    It pays for batches of arms, which run up to twice as fast. A humanoid, for which straight-line code is hardly
    quicker than the sweep that serves all robots, keeps that sweep, and so do a single state (q without batch axes),
    calls that have no special form, and whatever is derived from the system by giving it other bodies.

    Parameters
    ----------
    system : System
        The robot; couplings and loops stay as they are. One with couplings is specialised as a tree is, of one with
        loops the open tree below them.

    Returns
    -------
    System
        The same robot; ``is_specialised`` is True.

    Raises
    ------
    ModelError
        If the system has flexible bodies, whose sweeps are the engine's.

    Notes
    -----
    The recursions are those of every other call; see "How to add a recursion" in the documentation, and "What each
    formula costs" for what each call gains. Machine code, in memory and on disk, grows with the number of bodies.

    Examples
    --------
    >>> import numpy as np
    >>> import kfdyn as kf
    >>> arm = kf.models.double_pendulum()
    >>> own = specialise(arm)
    >>> own.is_specialised, own.nv
    (True, 2)
    >>> q, v, tau = np.random.default_rng(0).normal(size=(3, 1000, 2))
    >>> bool(np.allclose(kf.forward_dynamics(own, q, v, tau), kf.forward_dynamics(arm, q, v, tau), rtol=1e-12))
    True
    """
    expect_system(system)
    expect_rigid(system, "specialise", "flexible bodies have no sweep of their own")
    return system if system.is_specialised else system.specialised()
