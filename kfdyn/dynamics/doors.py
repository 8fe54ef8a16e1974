"""The compiled doors of dynamics."""

from kfdyn.multibody.doors import Door, Doors, address_of, over_rows

DOORS = Doors("kfdyn.dynamics._kernels.doors")

__all__ = ["DOORS", "Door", "address_of", "over_rows"]
