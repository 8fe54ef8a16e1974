"""Ten free numbers of an inertia that some positive mass has."""

from __future__ import annotations

from typing import Any

import numpy as np

from kfdyn.arrays import Array
from kfdyn.errors import ModelError
from kfdyn.motion.regressor import inertia_of

_DEFINITE = 1e-9  # of the largest second moment: below it the mass lies in a plane, on a line or in a point


class LogCholesky:
    """Ten free numbers of an inertia that some positive mass has: log m, log d (3), s (3)/unit, c (3)/unit.

    Σ = [[½ tr(I) 1 − I, h], [h*, m]] = m U U*, U upper triangular with diagonal (d, 1). THEORY section 20.
    """

    def __init__(self, ten: Array, name: str) -> None:
        m = ten[0]
        if not m > 0.0:
            raise ModelError(
                f"body {name!r} has no mass, so its inertia cannot be fitted; give it some, or leave it out"
            )
        second = second_moments(ten)
        moments = np.linalg.eigvalsh(second)
        if moments[0] < _DEFINITE * max(moments[2], 0.0) or moments[2] <= 0.0:
            a, b, c = np.sort(m * (moments.sum() - moments))
            which = (
                f"principal moments {a:.6g} + {b:.6g} < {c:.6g}: no positive mass has this inertia"
                if moments[0] < -_DEFINITE * abs(moments[2])
                else f"principal moments {a:.6g}, {b:.6g}, {c:.6g} are those of a plane, a line or a point"
            )
            raise ModelError(
                f"body {name!r}: {which}; its ten numbers have no start inside: give it another inertia, or fit "
                f"'{name}/mass' alone"
            )
        self.unit = float(np.sqrt(np.trace(second)))
        self.start = self.free(ten)

    def free(self, ten: Array) -> Array:
        """Free numbers of ten inertial parameters of some positive mass."""
        m, c = ten[0], ten[1:4] / ten[0]
        U = np.linalg.cholesky(second_moments(ten)[::-1, ::-1])[::-1, ::-1]
        return np.array([np.log(m), *np.log(np.diag(U)), *(U[[0, 0, 1], [1, 2, 2]] / self.unit), *(c / self.unit)])

    def ten(self, z: Any) -> Any:
        """Ten inertial parameters of the free numbers; analytic, so that complex steps differentiate it."""
        U = np.zeros((4, 4), z.dtype)
        U[range(3), range(3)] = np.exp(z[1:4])
        U[[0, 0, 1], [1, 2, 2]] = self.unit * z[4:7]
        U[:3, 3], U[3, 3] = self.unit * z[7:], 1.0
        S = np.exp(z[0]) * (U @ U.T)
        I3 = np.trace(S[:3, :3]) * np.eye(3) - S[:3, :3]
        return np.concatenate([[S[3, 3]], S[:3, 3], I3[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]])


def second_moments(ten: Array) -> Array:
    """Second moments (3, 3) of a kilogram of a body about its mass centre."""
    I3, c = inertia_of(ten)[:3, :3], ten[1:4] / ten[0]
    return np.asarray((0.5 * np.trace(I3) * np.eye(3) - I3) / ten[0] - np.outer(c, c))


def point_mass(m: Any, c: Any) -> Any:
    """Ten inertial parameters of a mass m in one point c (3,); analytic."""
    I3 = m * ((c @ c) * np.eye(3) - np.outer(c, c))
    return np.concatenate([[m], m * c, I3[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]])
