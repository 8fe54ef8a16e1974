"""Solution 8. The projections of a hinge.

HG = 1 is all there is to it: what a free hinge takes up, it takes up whole. Everything
else is a definition read forward or backward.
"""

from exercise_8 import check


def proofs():
    """Return {claim: list of lines}, from the left side of the claim to the right one."""
    return {
        "H G = 1": ["H G", "H P H* Dinv", "D Dinv", "1"],
        "tau tau = tau": ["tau tau", "G H tau", "G H G H", "G H", "tau"],
        "tau G = G": ["tau G", "G H G", "G"],
        "taubar* H* = 0": ["taubar* H*", "H* - tau* H*", "H* - H* G* H*", "H* - H*"],
        "tau P = P tau*": ["tau P", "G H P", "P H* Dinv H P", "P H* G*", "P tau*"],
        "tau P = tau P tau*": ["tau P", "tau tau P", "tau P tau*"],
        "P taubar* = taubar P": ["P taubar*", "P - P tau*", "P - tau P", "taubar P"],
        "taubar P = taubar P taubar*": [
            "taubar P",
            "taubar P - tau P + tau P",
            "taubar P - tau P + tau P tau*",
            "taubar P - P tau* + tau P tau*",
            "taubar P - taubar P tau*",
            "taubar P taubar*",
        ],
    }


if __name__ == "__main__":
    from verdict import verdict

    verdict(check, proofs)
