"""Exercise 8. Show it: the projections of a hinge.

Jain's lecture on articulated body inertias leaves these to its readers ("SHOW!"):

    tau G = G,    taubar* H* = 0,
    tau P = P tau* = tau P tau*,    P taubar* = taubar P = taubar P taubar*

A proof is a list of lines, each of which follows from the one before by one use of one
rule. Lines are sums of products, written as text, such as "P - G H P"; 1 is the identity,
0 is zero, a star the adjoint. P and D are their own adjoints. The rules are

    D = H P H*,    D Dinv = 1,    Dinv D = 1,    G = P H* Dinv,    tau = G H,    taubar = 1 - tau

in both directions, their adjoints, and every claim once it is shown. For example

    "H G = 1": ["H G", "H P H* Dinv", "D Dinv", "1"]

The check says which line does not follow. Show the other claims, in this order.
"""

from collections import Counter

RULES = ["D = H P H*", "D Dinv = 1", "Dinv D = 1", "G = P H* Dinv", "tau = G H", "taubar = 1 - tau"]
CLAIMS = [
    "H G = 1",
    "tau tau = tau",
    "tau G = G",
    "taubar* H* = 0",
    "tau P = P tau*",
    "tau P = tau P tau*",
    "P taubar* = taubar P",
    "taubar P = taubar P taubar*",
]


def proofs():
    """Return {claim: list of lines}, from the left side of the claim to the right one."""
    raise NotImplementedError('start with {"H G = 1": ["H G", "H P H* Dinv", "D Dinv", "1"], "tau tau = tau": [...]}')


SYMMETRIC = {"P", "D", "Dinv"}
LETTERS = SYMMETRIC | {"H", "G", "tau", "taubar"}


def parse(line):
    """Turn a line into {product: factor}; a product is a tuple of letters, () the identity."""
    terms = Counter()
    for part in line.replace("-", " - ").replace("+", " + ").replace("- ", "+ -1 ").split("+"):
        letters = [letter for letter in part.split() if letter != "1"]
        sign = -1 if "-1" in letters else 1
        letters = [letter for letter in letters if letter != "-1"]
        unknown = {letter.removesuffix("*") for letter in letters} - LETTERS - {"0"}
        assert not unknown, f"'{line}': no such letter: {', '.join(sorted(unknown))}"
        if part.strip() and "0" not in letters:
            terms[tuple(letter.removesuffix("*") if letter[:-1] in SYMMETRIC else letter for letter in letters)] += sign
    return {product: factor for product, factor in terms.items() if factor}


def adjoint(terms):
    """(A B)* = B* A*."""

    def star(letter):
        return letter if letter in SYMMETRIC else letter[:-1] if letter.endswith("*") else letter + "*"

    return {tuple(star(letter) for letter in reversed(product)): factor for product, factor in terms.items()}


def difference(first, second):
    """first - second."""
    terms = Counter(first)
    terms.subtract(second)
    return {product: factor for product, factor in terms.items() if factor}


def follows(before, after, rules):
    """Is before - after a multiple of u (left - right) v, for one rule left = right and products u, v?"""
    change = difference(before, after)
    if not change:
        return True
    for rule in rules:
        (lead, of_lead), *_ = rule.items()
        for product, factor in change.items():
            for i in range(len(product) - len(lead) + 1):
                if product[i : i + len(lead)] == lead and factor % of_lead == 0:
                    u, v, times = product[:i], product[i + len(lead) :], factor // of_lead
                    if change == {u + middle + v: times * c for middle, c in rule.items()}:
                        return True
    return False


def check(answer):
    """Read every proof, line by line."""
    rules = []

    def learn(statement):
        left, right = map(parse, statement.split("="))
        rules.extend([difference(left, right), adjoint(difference(left, right))])

    for rule in RULES:
        learn(rule)
    given = answer()
    for claim in CLAIMS:
        assert given.get(claim), f"no proof of {claim} yet"
        lines = [parse(line) for line in given[claim]]
        left, right = map(parse, claim.split("="))
        assert lines[0] == left, f"the proof of {claim} does not begin with its left side"
        for i in range(1, len(lines)):
            step = f"{given[claim][i - 1]} = {given[claim][i]}"
            assert follows(lines[i - 1], lines[i], rules), f"proof of {claim}: {step} does not follow by one rule"
        assert lines[-1] == right, f"the proof of {claim} does not end with its right side"
        learn(claim)


if __name__ == "__main__":
    from verdict import verdict

    verdict(check, proofs)
