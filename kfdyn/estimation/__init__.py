"""The engine: a linear-Gaussian filter and smoother on trees. It knows nothing of mechanics."""

from kfdyn.lazy import on_first_use

_PLACES = {
    "model.blocks": ("Blocks",),
    "control.lqr": ("lqr",),
    "control.solution": ("LinearPlan",),
    "operators.closed_form_covariances": ("Covariances",),
    "inference.factor": ("InnovationsFactor", "innovations_factor"),
    "inference.filtered": ("Filtered",),
    "inference.filter": ("kalman_filter",),
    "fitting": ("Fit", "fit", "likelihood"),
    "operators.lyapunov": ("backward_lyapunov", "forward_lyapunov"),
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
    "operators.operator": ("Operator", "dottest"),
    "operators.model_operators": ("Operators",),
    "branching.outward_tree": ("OutwardTree",),
    "branching.phylogeny": ("Phylogeny",),
    "branching.posterior": ("OutwardBatch", "OutwardPosterior"),
    "branching.outward_score": ("OutwardScore",),
    "inference.missing_data": ("ScoreBatch", "SmoothedBatch", "smooth_batch"),
    "inference.filter_covariances": ("Riccati",),
    "inference.scored": ("Score",),
    "inference.score": ("score",),
    "inference.sampling": ("draw", "draw_posterior"),
    "inference.smoothed": ("Smoothed",),
    "inference.smoother": ("bryson_frazier",),
    "model.state_space": ("StateSpace",),
    "batches.state_space_batch": ("StateSpaceBatch",),
    "batches.batch_results": ("FilteredModels", "ScoredModels", "SmoothedModels"),
    "model.tree": ("Tree",),
}

__getattr__, __dir__, __all__ = on_first_use(__name__, _PLACES, rooms=("consistency", "dense", "series"))
