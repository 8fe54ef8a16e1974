"""The rows of one node, evaluated: what its sensors read, what is not known of forces on it, ends of loops."""

from __future__ import annotations

import numpy as np

from kfdyn.dynamics.sensors.body_kinds import ExternalForce
from kfdyn.dynamics.sensors.dofs import dofs_of
from kfdyn.dynamics.sensors.factor import NodeData
from kfdyn.dynamics.sensors.layout import Layout, Node, Push
from kfdyn.dynamics.sensors.sensor import Array, Rows
from kfdyn.dynamics.sensors.sharing import loop_terms
from kfdyn.multibody import LinkTerms


def node_data(layout: Layout, node: Node, terms: LinkTerms) -> NodeData:
    """Evaluate the rows of one node in B states."""
    system, sensors, size = layout.system, layout.sensors, len(terms.l)
    m, H, D = node.n_dofs, terms.H[:, node.dofs], terms.inertia.shape[-1]
    r = node.n_rows
    S, K, e = np.zeros((size, r, D)), np.zeros((size, r, D)), np.zeros((size, r, m))
    offset, R, at = np.zeros((size, r)), np.zeros((r, r)), 0
    for piece in node.rows:
        own, local = sensors[piece.sensor].rows(system, piece.site, terms), piece.local()
        here = slice(at, at + len(local))
        for into, given in ((S, own.S), (K, own.K), (e, own.e), (offset, own.offset)):
            if given is not None:
                into[:, here] = given[:, local]
        R[here, here] = piece.R
        at = here.stop
    info = []
    for piece in node.info:
        own, local = sensors[piece.sensor].rows(system, piece.site, terms), piece.local()
        info.append(
            (
                Rows(*(None if part is None else part[:, local] for part in own)),
                np.asarray(np.linalg.inv(piece.R), np.float64),
            )
        )
    spread, cov = _wrenches(layout, node.spread, terms)
    loose, weight = _wrenches(layout, node.loose, terms)
    if node.geared:
        S[:, -1:], e[:, -1:] = H, dofs_of(system).armature[node.dofs]
    ends = []
    for end in node.ends:
        rows, _ = loop_terms(system, terms, np.zeros((size, 3)), end.loop)
        ends.append(rows[end.side][:, list(end.rows)])
    return NodeData(H, S, K, e, R, offset, tuple(info), spread, cov, loose, weight, tuple(ends))


def _wrenches(layout: Layout, pushes: tuple[Push, ...], terms: LinkTerms) -> tuple[Array, Array]:
    total = sum(len(push.seen) for push in pushes)
    P, weight, at = np.zeros((len(terms.l), terms.inertia.shape[-1], total)), np.zeros((total, total)), 0
    for push in pushes:
        sensor = layout.sensors[push.sensor]
        assert isinstance(sensor, ExternalForce)
        here = slice(at, at + len(push.seen))
        P[:, :, here] = sensor.wrench(layout.system, terms)[:, :, push.seen]
        weight[here, here] = push.weight
        at = here.stop
    return P, weight
