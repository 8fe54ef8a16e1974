"""The words that estimation people know for the letters of a filter."""

from __future__ import annotations

from kfdyn.estimation.model.blocks import Blocks, FloatArray


class FilterWords:
    """Properties by which a filter's z, z⁺, P, P⁺, ε and D are to be had by their words."""

    @property
    def predicted_state(self) -> Blocks:
        """The word for :attr:`z`."""
        return self.z  # type: ignore[attr-defined]

    @property
    def predicted_state_cov(self) -> Blocks:
        """The word for :attr:`P`."""
        return self.P  # type: ignore[attr-defined]

    @property
    def filtered_state(self) -> Blocks:
        """The word for :attr:`z_plus`."""
        return self.z_plus  # type: ignore[attr-defined]

    @property
    def filtered_state_cov(self) -> Blocks:
        """The word for :attr:`P_plus`."""
        return self.P_plus  # type: ignore[attr-defined]

    @property
    def innovations(self) -> FloatArray:
        """The word for :attr:`eps`."""
        return self.eps  # type: ignore[attr-defined]

    @property
    def innovations_cov(self) -> Blocks:
        """The word for :attr:`D`."""
        return self.D  # type: ignore[attr-defined]
