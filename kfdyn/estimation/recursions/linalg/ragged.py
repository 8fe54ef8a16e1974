"""Arguments of sweeps for all nodes at once: blocks of any sizes in one buffer, and parts of stacked vectors."""

from typing import Any, NamedTuple


class Ragged(NamedTuple):
    """A matrix for each node, flat: where it begins, its rows and its columns."""

    flat: Any
    at: Any
    rows: Any
    cols: Any

    def block(self, k):
        """The matrix of node k."""
        return self.flat.matrix(self.at[k], self.rows[k], self.cols[k])


class Parts(NamedTuple):
    """Stacked vectors, flat, one after the other: ``width`` numbers each, those of node k from ``at[k]`` on."""

    flat: Any
    at: Any
    width: Any
