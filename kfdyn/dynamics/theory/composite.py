"""Composite body inertias: the covariances of the states of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kfdyn.errors import ModelError

if TYPE_CHECKING:
    from kfdyn.estimation import Blocks, StateSpace


def composite_inertias(ss: StateSpace) -> Blocks:
    """Composite body inertias ℛ(k) = Σ φ ℛ(j) φ* + M(k) of a model: the covariances of its states (R86 7.9).

    Parameters
    ----------
    ss : StateSpace
        The model; of a robot, ``as_estimation(system, q)``.

    Returns
    -------
    Blocks of (n_k, n_k)
        ℛ(k). O(N).

    Examples
    --------
    Three rods of 1 kg and 1 m, welded together: the first hinge carries 3 kg, and feels 3³/3 kg m² about its axis.

    >>> import numpy as np, kfdyn as kf
    >>> ss = kf.as_estimation(kf.models.uniform_chain(3), np.zeros(3))
    >>> first = composite_inertias(ss)[0]
    >>> first[5, 5].item(), round((ss.H[0] @ first @ ss.H[0].T).item(), 9)
    (3.0, 9.0)
    """
    from kfdyn.estimation.model.blocks import Blocks
    from kfdyn.estimation.model.state_space import expect_model
    from kfdyn.estimation.recursions.lyapunov import forward

    if hasattr(ss, "hinge_names"):
        raise ModelError(
            f"composite_inertias takes a model, not a system: composite_inertias(as_estimation({ss.name!r}, q)), since "
            "what a hinge carries depends on where it stands"
        )
    expect_model(ss)
    phi, R = ss.phi.ragged, Blocks(ss.Q.flat.copy(), ss.n, ss.n)
    forward(ss.tree.order, ss.tree.parent, phi, phi, R.ragged, np.empty(ss.common.most_states**2))
    return R
