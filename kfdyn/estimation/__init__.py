"""The engine: a linear-Gaussian filter and smoother on trees. It knows nothing of mechanics."""

from kfdyn.lazy import on_first_use

_PLACES = {
    "blocks": ("Blocks",),
    "control.lqr": ("lqr",),
    "control.solution": ("LinearPlan",),
    "covariance": ("Covariances",),
    "factor": ("InnovationsFactor", "innovations_factor"),
    "filtered": ("Filtered",),
    "filtering": ("kalman_filter",),
    "fitting": ("Fit", "fit", "likelihood"),
    "lyapunov": ("backward_lyapunov", "forward_lyapunov"),
    "nonlinear": (
        "Huber",
        "NonlinearFiltered",
        "NonlinearModel",
        "NonlinearSmoothed",
        "OnlineFilter",
        "SigmaPoints",
        "StudentT",
        "extended_kalman_filter",
        "iterated_kalman_smoother",
        "unscented_kalman_filter",
    ),
    "operator": ("Operator", "adjoint_mismatch"),
    "operators": ("Operators",),
    "outward.batch": ("OutwardBatch",),
    "outward.model": ("OutwardTree",),
    "outward.phylogeny": ("Phylogeny",),
    "outward.posterior": ("OutwardPosterior",),
    "outward.score": ("OutwardScore",),
    "parallel": ("ParallelFiltered", "parallel_filter"),
    "patterns": ("ScoreBatch", "SmoothedBatch", "smooth_batch"),
    "riccati": ("Riccati",),
    "scoring": ("Score", "score"),
    "simulate": ("draw", "draw_posterior"),
    "smoothing": ("Smoothed", "bryson_frazier"),
    "state_space": ("StateSpace",),
    "tree": ("Tree",),
}

__getattr__, __dir__, __all__ = on_first_use(__name__, _PLACES, rooms=("consistency", "dense", "series"))
