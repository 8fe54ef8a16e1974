"""Compiled outward sweep over a batch, and what is read off it. Imported on first use: numba is slow to load.

World orientation throughout, reference at each body's origin.
"""

from kfdyn._kernels import compiler as compiler
from kfdyn.multibody._kernels.displacement import difference, integrate
from kfdyn.multibody._kernels.links import link_terms
from kfdyn.multibody._kernels.outward import outward
from kfdyn.multibody._kernels.readings import frame_motion, frame_pose
from kfdyn.multibody._kernels.sums import momentum

__all__ = [
    "difference",
    "frame_motion",
    "frame_pose",
    "integrate",
    "link_terms",
    "momentum",
    "outward",
]
