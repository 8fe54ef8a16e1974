"""Mechanics solved as estimation: forward dynamics is the smoother, the mass matrix the covariance of T."""

from importlib import import_module
from typing import Any

_MODULE_OF = {
    "Forest": "assembly",
    "as_estimation": "assembly",
    "as_forest": "assembly",
}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(f"kfdyn.dynamics.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module 'kfdyn.dynamics' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
