"""A StateSpace as the sweeps see it."""

from llvmlite import ir

from kfdyn.estimation._kernels.table import COUNTS, REAL, Arrays
from kfdyn.estimation._kernels.values import INT, Vector, builder


class Model:
    """The arrays of a model, found through the table of their addresses that ``StateSpace.address`` points to.

    One number instead of 14 arrays, each of which takes 10 ms to compile in every sweep.
    """

    def __init__(self, address):
        table = Vector(builder().inttoptr(address.ir, INT.as_pointer()))
        self.nodes, self.most = table[0], table[1]  # most: of the state sizes, the largest
        for i, name in enumerate(Arrays._fields):
            kind = ir.DoubleType() if name in REAL else INT
            setattr(self, name, Vector(builder().inttoptr(table[COUNTS + i].ir, kind.as_pointer())))
