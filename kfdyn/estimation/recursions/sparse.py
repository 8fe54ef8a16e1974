"""A transition that is mostly zeros: products with its entries, row by row, since that is how memory is fast."""

from kfdyn.estimation.recursions.linalg.matrices import Turned, add_scaled
from kfdyn.sweeps.control_flow import loop


class Sparse:
    """A matrix by its entries."""

    def __init__(self, at, values):
        self.at, self.values = at, values

    def add_product(self, out, A, turned):
        """Add F A, or F* A where ``turned``."""
        for l in loop(self.values.size):
            i, j = self.at[2 * l], self.at[2 * l + 1]
            to, source = (j, i) if turned else (i, j)
            add_scaled(out.line(to), out.line(to), self.values[l], A.line(source))

    def multiply(self, A, spare, turned=False):
        """A ← F A, or F* A."""
        spare.clear()
        self.add_product(spare, A, turned)
        A.copy(spare)

    def congruence(self, S, base, spare, turned=False):
        """S ← base + F S F*, or base + F* S F, exactly symmetric; ``base`` None stands for 0."""
        spare.clear()
        self.add_product(spare, S, turned)
        S.copy(Turned(spare))
        if base is None:
            spare.clear()
        else:
            spare.copy(base)
        self.add_product(spare, S, turned)
        for i in loop(S.shape[0]):
            for j in loop(i + 1):
                S[i, j] = spare[i, j]
                S[j, i] = spare[i, j]
