"""kfdyn in JAX and PyTorch programs: thin modules, each imported only when asked for.

``kfdyn.bridge.jax`` needs JAX (extra ``jax``), ``kfdyn.bridge.torch`` PyTorch (extra ``torch``). What both call stands
in :mod:`~kfdyn.bridge.operations`, which knows neither.
"""

from kfdyn.lazy import on_first_use

__getattr__, __dir__, _ = on_first_use(__name__, {}, rooms=("jax", "torch"))
__all__ = ["jax", "torch"]
