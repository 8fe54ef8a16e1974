"""Measured series small enough to carry along, for examples and for tests against published numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kfdyn.estimation.model.blocks import FloatArray, IntArray

__all__ = ["Airline", "Nile", "airline", "nile"]

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
_AIRLINE_FIRST_YEAR = 1949
_AIRLINE_PASSENGERS = (
    112, 118, 132, 129, 121, 135, 148, 148, 136, 119, 104, 118,
    115, 126, 141, 135, 125, 149, 170, 170, 158, 133, 114, 140,
    145, 150, 178, 163, 172, 178, 199, 199, 184, 162, 146, 166,
    171, 180, 193, 181, 183, 218, 230, 242, 209, 191, 172, 194,
    196, 196, 236, 235, 229, 243, 264, 272, 237, 211, 180, 201,
    204, 188, 235, 227, 234, 264, 302, 293, 259, 229, 203, 229,
    242, 233, 267, 269, 270, 315, 364, 347, 312, 274, 237, 278,
    284, 277, 317, 313, 318, 374, 413, 405, 355, 306, 271, 306,
    315, 301, 356, 348, 355, 422, 465, 467, 404, 347, 305, 336,
    340, 318, 362, 348, 363, 435, 491, 505, 404, 359, 310, 337,
    360, 342, 406, 396, 420, 472, 548, 559, 463, 407, 362, 405,
    417, 391, 419, 461, 472, 535, 622, 606, 508, 461, 390, 432,
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


class Airline(NamedTuple):
    """Monthly passengers of international airlines.

    Attributes
    ----------
    time : ndarray, shape (144,)
        1949 to 1960 in years, the month as a fraction.
    passengers : ndarray, shape (144,)
        Thousands of passengers in that month.
    """

    time: FloatArray
    passengers: FloatArray


def airline() -> Airline:
    """Monthly passengers of international airlines, 1949 to 1960: a trend with seasons that grow with it.

    Series G of Box and Jenkins (1970), whose logarithm is the standard example of a seasonal model.

    Returns
    -------
    Airline
        ``time`` and ``passengers``, fresh arrays of shape (144,).

    Examples
    --------
    >>> time, passengers = airline()
    >>> float(time[-1]).__round__(3), float(passengers.mean()).__round__(4)
    (1960.917, 280.2986)
    """
    passengers = np.array(_AIRLINE_PASSENGERS, dtype=np.float64)
    return Airline(_AIRLINE_FIRST_YEAR + np.arange(passengers.size) / 12.0, passengers)
