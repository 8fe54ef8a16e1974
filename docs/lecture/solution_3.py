"""Solution 3. The innovations covariance is a Schur complement.

A rod on a free hinge with its mass at the tip passes on a force along itself only. In
line with the upper rod, straight or folded, that force has no moment about the shoulder.
"""

from exercise_3 import check


def felt(ss):
    """Return [D(shoulder), D(elbow)] of a model with nodes 0 (shoulder) and 1 (elbow), 1 the child of 0."""
    P = ss.Q[1]
    D_elbow = ss.H[1] @ P @ ss.H[1].T
    G = P @ ss.H[1].T / D_elbow
    P_plus = P - G @ D_elbow @ G.T
    P = ss.phi[1] @ P_plus @ ss.phi[1].T + ss.Q[0]
    D_shoulder = ss.H[0] @ P @ ss.H[0].T
    return float(D_shoulder[0, 0]), float(D_elbow[0, 0])


if __name__ == "__main__":
    from verdict import verdict

    verdict(check, felt)
