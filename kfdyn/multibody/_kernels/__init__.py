"""Compiled outward sweep over a batch, and what is read off it. Imported on first use: numba is slow to load.

World orientation throughout, reference at each body's origin.
"""

from kfdyn.multibody._kernels.displacement import difference, integrate
from kfdyn.multibody._kernels.outward import outward
from kfdyn.multibody._kernels.readings import accelerations, frame_motion, jacobian, link_terms, totals

__all__ = ["accelerations", "difference", "frame_motion", "integrate", "jacobian", "link_terms", "outward", "totals"]
