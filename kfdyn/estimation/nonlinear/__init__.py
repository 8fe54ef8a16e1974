"""Nonlinear models in time: filters, the iterated smoother and an online filter. It knows no mechanics."""

from kfdyn.lazy import on_first_use

_PLACES = {
    "extended": ("extended_kalman_filter",),
    "model": ("NonlinearModel",),
    "online": ("OnlineFilter",),
    "results": ("NonlinearFiltered", "NonlinearSmoothed"),
    "losses": ("Huber", "StudentT"),
    "smoother": ("iterated_kalman_smoother",),
    "unscented": ("SigmaPoints", "unscented_kalman_filter"),
}

__getattr__, __dir__, __all__ = on_first_use(__name__, _PLACES)
