"""kfdyn: robot dynamics is a Kalman filter.

The names below are the public door; each is imported from its room when first used, so that
``import kfdyn`` costs little more than ``import numpy``.
"""

__version__ = "0.1.0"
