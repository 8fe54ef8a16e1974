"""Measured series small enough to carry along, for examples and for tests against published numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kfdyn.estimation.blocks import FloatArray, IntArray

__all__ = ["Nile", "nile"]

_NILE_FIRST_YEAR = 1871
# fmt: off
_NILE_FLOW = (
    1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140,
    995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140,
    1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840,
    874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969,
    831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821,
    768, 845, 864, 862, 698, 845, 744, 796, 1040, 759,
    781, 865, 845, 944, 984, 897, 822, 1010, 771, 676,
    649, 846, 812, 742, 801, 1040, 860, 874, 848, 890,
    744, 749, 838, 1050, 918, 986, 797, 923, 975, 815,
    1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740,
)
# fmt: on


class Nile(NamedTuple):
    """Annual flow of the Nile.

    Attributes
    ----------
    year : ndarray of int, shape (100,)
        1871 to 1970.
    flow : ndarray, shape (100,)
        Volume that passed Aswan in that year, in 10⁸ m³.
    """

    year: IntArray
    flow: FloatArray


def nile() -> Nile:
    """Annual flow of the Nile at Aswan, 1871 to 1970: the series on which state-space methods are taught.

    The measurements are in the public domain; G. W. Cobb, Biometrika 65 (1978), found the drop of 1899, and Durbin
    and Koopman (2012, chapter 2) made the local level model of it a standard: R = 15099, Q = 1469.1.

    Returns
    -------
    Nile
        ``year`` and ``flow``, fresh arrays of shape (100,).

    Examples
    --------
    >>> year, flow = nile()
    >>> int(year[0]), float(flow[0]), float(flow.mean())
    (1871, 1120.0, 919.35)
    """
    flow = np.array(_NILE_FLOW, dtype=np.float64)
    return Nile(np.arange(_NILE_FIRST_YEAR, _NILE_FIRST_YEAR + flow.size), flow)
