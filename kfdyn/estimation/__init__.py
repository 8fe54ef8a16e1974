"""The engine: a linear-Gaussian filter and smoother on trees. It knows nothing of mechanics."""

from importlib import import_module
from typing import Any

_MODULE_OF = {
    "Blocks": "blocks",
    "Covariances": "covariance",
    "Filtered": "filtering",
    "Fit": "fitting",
    "InnovationsFactor": "factor",
    "Operator": "operator",
    "Operators": "operators",
    "OutwardPosterior": "outward.posterior",
    "OutwardScore": "outward.score",
    "OutwardTree": "outward.model",
    "ParallelFiltered": "parallel",
    "Phylogeny": "outward.phylogeny",
    "Riccati": "riccati",
    "Score": "scoring",
    "Smoothed": "smoothing",
    "SmoothedBatch": "patterns",
    "StateSpace": "state_space",
    "Tree": "tree",
    "adjoint_mismatch": "operator",
    "backward_lyapunov": "lyapunov",
    "bryson_frazier": "smoothing",
    "draw": "simulate",
    "draw_posterior": "simulate",
    "fit": "fitting",
    "forward_lyapunov": "lyapunov",
    "innovations_factor": "factor",
    "kalman_filter": "filtering",
    "parallel_filter": "parallel",
    "likelihood": "fitting",
    "score": "scoring",
    "smooth_batch": "patterns",
}

_ROOMS = ("series",)

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"kfdyn.estimation.{name}")
    if name in _MODULE_OF:
        return getattr(import_module(f"kfdyn.estimation.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module 'kfdyn.estimation' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
