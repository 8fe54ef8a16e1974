"""The message of a subtree in memory: J, A, C and γ; how it is begun at a body, and how it passes to the parent.

90 numbers: J (21), A (36), C (21), γ_α = −h (6), γ_λ = b (6); see THEORY section 11 and
``sensors.solver.order``. Without readings, for covariances alone, γ is left out.
"""

from kfdyn.multibody.recursions.outward import inertia_of
from kfdyn.multibody.recursions.spatial import Rigid, Spatial
from kfdyn.sweeps.control_flow import flattened, if_, if_else

MESSAGE, ALPHA, LAMBDA = 90, 78, 84
SIX = range(6)
EVERY = [(a, b) for a in SIX for b in SIX]
UPPER = [(a, b) for a, b in EVERY if a <= b]


def total(terms):
    """A sum from left to right."""
    out = 0.0
    for term in terms:
        out = out + term
    return out


def dot(x, y):
    """x·y of lists; Python's zeros cost nothing."""
    return total(a * b for a, b in zip(x, y))


class Block:
    """Six by six numbers in memory from ``start`` on; of a symmetric block those on and above the diagonal.

    ``packed``: no others are there.
    """

    def __init__(self, memory, start, symmetric=True, packed=True):
        self.memory, self.start, self.symmetric, self.packed = memory, start, symmetric, packed
        self.pairs = UPPER if symmetric else EVERY

    def at(self, a, b):
        """Return the place of entry (a, b)."""
        a, b = (min(a, b), max(a, b)) if self.symmetric else (a, b)
        return self.start + (UPPER.index((a, b)) if self.packed else 6 * a + b)

    def __getitem__(self, pair):
        return self.memory[self.at(*pair)]

    def __setitem__(self, pair, x):
        self.memory[self.at(*pair)] = x

    def __matmul__(self, x):
        return [dot([self[a, b] for b in SIX], x) for a in SIX]

    def back(self, x):
        """B* x."""
        return [dot([self[a, b] for a in SIX], x) for b in SIX]

    def moved(self, shift):
        """Φ B Φ* by rows, Φ a shift of spatial vectors; of a symmetric block what is below the diagonal costs nothing
        if nobody asks for it.
        """
        columns = [_shifted([self[a, b] for a in SIX], shift) for b in SIX]
        return [_shifted([column[a] for column in columns], shift) for a in SIX]


def _shifted(numbers, shift):
    return flattened(shift(Spatial.of(numbers)))


class Message:
    """J, A (row of λ, column of α) and C of the message that is worked on; γ_α and γ_λ are at ALPHA and LAMBDA.

    ``quiet``: nothing is known of accelerations, so that J and γ_α are 0 and not there, and A is symmetric.
    """

    def __init__(self, s, quiet=False):
        self.s, self.memory, self.quiet = s, s.here, quiet
        self.J, self.A, self.C = Block(s.here, 0), Block(s.here, 21, quiet, False), Block(s.here, 57)
        self.blocks = (self.A, self.C) if quiet else (self.A, self.C, self.J)
        self.vectors = (LAMBDA,) if quiet else (LAMBDA, ALPHA)

    def vector(self, at):
        """γ_α or γ_λ."""
        return [self.memory[at + c] for c in SIX]

    def arrive(self, body):
        """Add the body's own inertia and bias force to what is outboard."""
        s, slot = self.s, self.s.slots.part(MESSAGE * body.arrives)
        inertia = Rigid(*inertia_of(body, s.work), body.mass)
        rows = inertia.rows()
        for block in self.blocks:
            for a, b in block.pairs:
                block[a, b] = slot[block.at(a, b)] + (rows[a][b] if block is self.A else 0.0)
        if s.means:
            xi = flattened(inertia.bias(s.bodies[body.t].omega))
            for at in self.vectors:
                for i in SIX:
                    self.memory[at + i] = slot[at + i] + (xi[i] if at == LAMBDA else 0.0)

    def leave(self, body):
        """γ += Γ[:, α]η, and the message shifted into the parent's sum, of A all entries."""
        s, here, A = self.s, self.s.bodies[body.t], self.A
        base, out = (s.slots.part(MESSAGE * slot) for slot in (body.base, body.leaves))

        def shift(x):
            return x.force_shifted(here.l)

        moved = []
        for block in self.blocks:
            rows = block.moved(shift)
            for a, b in EVERY if block is A else UPPER:
                place = A.start + 6 * a + b if block is A else block.at(a, b)
                moved.append((place, rows[min(a, b)][max(a, b)] if block.symmetric else rows[a][b]))
        if s.means:
            eta = here.eta
            for at, block in zip(self.vectors, (A, self.J)):
                force = [x + y for x, y in zip(self.vector(at), block @ flattened(eta))]
                moved += enumerate(_shifted(force, shift), at)
        for first in if_else(body.base == 0):  # nothing yet: what a chain always does
            for place, x in moved:
                out[place] = x if first else base[place] + x

    def pass_unknown(self, body):
        """The parent's J and γ_α stay as they are: nothing outboard of here tells of accelerations."""
        base, out = (self.s.slots.part(MESSAGE * slot) for slot in (body.base, body.leaves))
        for _ in if_(body.base != body.leaves):
            for i in [*range(21), *range(ALPHA, ALPHA + 6 if self.s.means else ALPHA)]:
                out[i] = base[i]
