"""Exercise 9. Show it: composite, articulated and rigid inertia, in this order.

The same lecture leaves to its readers ("SHOW!") that

    P >= P+    and    R >= P >= Q,

where R is the composite body inertia, P the articulated one before its hinge, P+ after it
and Q (M in the lecture) that of the body alone. A >= B means that A - B has no negative
eigenvalue, and the shortest proof of that is a factor L with A - B = L L*. Give three
factors at every node, made from what the filter has at hand and from those of the
children; do not decompose the difference, which would show it for one robot only.

How many columns does each need? That bounds the rank of the difference: through how many
hinges the body loses inertia.
"""

import numpy as np

import kfdyn as kf


def factors(ss, cov):
    """Return three lists of L(k), of P - P+, P - Q and R - P; cov.P[k], D, G, P_plus are those of the filter.

    ss.phi[j] shifts from node j to its parent, ss.H[k] and ss.R[k] are hinge map and rotor, ss.tree.children(k) the
    children, and ss.tree.order has every child before its parent.
    """
    raise NotImplementedError(
        "P - P+ = G D G* gives the first; the second is a sum over the children; the third needs R - P+ of the"
        " children, which is (R - P) + (P - P+)"
    )


def check(answer):
    """Hold L L* against the differences, on random trees, with and without rotors."""
    rng = np.random.default_rng(0)
    for seed in range(6):
        tree = kf.models.random_tree(7, seed=seed, armature=seed % 2 == 0)
        ss = kf.as_estimation(tree, tree.random_configuration(rng))
        cov = kf.riccati(ss)
        through, added, lost = answer(ss, cov)
        composite = [np.array(ss.Q[k]) for k in range(len(ss.tree))]
        for k in ss.tree.order:
            if ss.tree.parent[k] >= 0:
                composite[ss.tree.parent[k]] += ss.phi[k] @ composite[k] @ ss.phi[k].T
        for k in range(len(ss.tree)):
            scale = 1e-9 * abs(composite[k]).max()
            outboard = sum(len(ss.H[j]) for j in ss.tree.descendants(k) if j != k)
            for name, L, whole in [
                ("P - P+", through[k], cov.P[k] - cov.P_plus[k]),
                ("P - Q", added[k], cov.P[k] - ss.Q[k]),
                ("R - P", lost[k], composite[k] - cov.P[k]),
            ]:
                L = np.asarray(L).reshape(6, -1)
                np.testing.assert_allclose(L @ L.T, whole, atol=scale, err_msg=f"{name} at node {k} of tree {seed}")
            assert np.asarray(lost[k]).size == 6 * outboard, (
                "R - P needs one column for each hinge coordinate further out"
            )


if __name__ == "__main__":
    from verdict import verdict

    verdict(check, factors)
