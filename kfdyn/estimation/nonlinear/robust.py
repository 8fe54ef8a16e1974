"""Losses that grow more slowly than a square, by iterated reweighting: readings that are far off count less."""

from __future__ import annotations

from typing import Any

import numpy as np

from kfdyn.errors import ModelError
from kfdyn.estimation.blocks import FloatArray


class Huber:
    """Huber's loss of a standardised residual s: s²/2 up to c, then c s − c²/2.

    Parameters
    ----------
    c : float
        Where it becomes linear, in standard deviations; 1.345 costs 5 % of efficiency if all readings are normal.

    Examples
    --------
    >>> Huber(2.0).weight(np.array([1.0, 16.0]), 1)
    array([1. , 0.5])
    """

    def __init__(self, c: float = 1.345) -> None:
        if not c > 0.0:
            raise ModelError(f"Huber's c must be positive, got {c}")
        self.c = float(c)

    def weight(self, square: FloatArray, size: Any) -> FloatArray:
        """Factor of the information of a reading with s² = ``square``."""
        return self.c / np.maximum(np.sqrt(square), self.c)

    def loss(self, square: FloatArray, size: Any) -> FloatArray:
        """ρ(s)."""
        s = np.sqrt(square)
        return np.where(s <= self.c, 0.5 * square, self.c * s - 0.5 * self.c**2)


class StudentT:
    """Loss of readings with Student's t distribution, scale R: ½(ν + m) log(1 + s²/ν) for m outputs.

    Parameters
    ----------
    nu : float
        Degrees of freedom ν; small is heavy-tailed, infinite is normal.

    Examples
    --------
    >>> StudentT(3.0).weight(np.array([1.0, 97.0]), 1)
    array([1.  , 0.04])
    """

    def __init__(self, nu: float = 4.0) -> None:
        if not nu > 0.0:
            raise ModelError(f"Student's nu must be positive, got {nu}")
        self.nu = float(nu)

    def weight(self, square: FloatArray, size: Any) -> FloatArray:
        """Factor of the information of a reading of ``size`` outputs with s² = ``square``."""
        return (self.nu + size) / (self.nu + square)

    def loss(self, square: FloatArray, size: Any) -> FloatArray:
        """ρ(s)."""
        return 0.5 * (self.nu + size) * np.log1p(square / self.nu)


def robust_loss(robust: Any) -> Huber | StudentT | None:
    """The loss that ``robust=`` names."""
    if robust is None or isinstance(robust, Huber | StudentT):
        return robust
    if robust == "huber":
        return Huber()
    if robust == "student":
        return StudentT()
    raise ModelError(f"robust must be Huber(c), StudentT(nu), 'huber', 'student' or None, got {robust!r}")
