"""Solution 4. A locked hinge is a missing measurement.

R -> infinity has the same limit, but in floating point D = HPH* + R forgets HPH* long
before.
"""

import numpy as np
from exercise_4 import check

import kfdyn as kf


def locked_accelerations(system, q, v, tau, locked):
    """Return a (nv,); ``locked`` is a boolean mask (nv,)."""
    ss = kf.as_estimation(system, q, v)
    filt = kf.kalman_filter(ss, np.where(locked, np.nan, tau))
    return kf.bryson_frazier(ss, filt, covariances=False).a


if __name__ == "__main__":
    from verdict import verdict

    verdict(check, locked_accelerations)
