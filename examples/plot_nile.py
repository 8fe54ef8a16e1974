r"""
The Nile, smoothed
==================

A time series is a chain: the tree that does not branch. The annual flow of the Nile is measured with noise, and the
level that lies behind it wanders,

.. math:: x(k+1) = x(k) + w(k), \qquad T(k) = x(k) + r(k),

with the variances that Durbin and Koopman estimated for it. The filter knows the past, the smoother all years; what
the filter could not foresee, its innovations, must be white.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import chi2

import kfdyn as kf
from kfdyn.estimation.datasets import nile
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

DATA, FILTER, SMOOTHER = COLORS["grey"], COLORS["orange"], COLORS["blue"]
Q, R, P0 = 1469.1, 15099.0, 1e7

# %%
# The model, the filter and the smoother
# --------------------------------------
#
# ``F`` and ``Q`` belong to the 99 edges between the years, ``H`` and ``R`` to the 100 years; the wide prior ``P0``
# says that nothing is known of the level of 1871.

year, flow = nile()
one = np.ones((1, 1))
ss = kf.StateSpace.chain(one, one, Q * one, R * one, x0=[0.0], P0=P0 * one, steps=flow.size)
filt = kf.kalman_filter(ss, flow)
smooth = kf.bryson_frazier(ss, filt)
print(f"log-likelihood {filt.llf:.5f}")

# %%
# Forty years lost
# ----------------
#
# A missing measurement is NaN. The filter can only hold its last level; the smoother bridges the gap from both ends,
# and says how well.

lost = ((year >= 1891) & (year <= 1910)) | ((year >= 1931) & (year <= 1950))
gap_filt = kf.kalman_filter(ss, np.where(lost, np.nan, flow))
gap_smooth = kf.bryson_frazier(ss, gap_filt)
assert (gap_smooth.S.flat <= gap_filt.P_plus.flat + 1e-9).all()  # hindsight never knows less

# %%
# Are the innovations white?
# --------------------------
#
# Divided by their standard deviations D^½ they should be independent and standard normal. The first one is left out,
# because it only tells how wide the prior was.

e = (filt.eps / np.sqrt(filt.D.flat))[1:]
n, lags = e.size, np.arange(1, 16)
autocorrelation = np.array([(e[lag:] * e[:-lag]).sum() / (e**2).sum() for lag in lags])
ljung_box = n * (n + 2) * (autocorrelation**2 / (n - lags)).sum()
assert ljung_box < chi2.isf(0.01, lags.size)
print(f"Ljung-Box statistic of {lags.size} lags: {ljung_box:.1f}")
print(f"white noise would give {lags.size} ± {np.sqrt(2 * lags.size):.1f}")

# %%
# The figure
# ----------


def level(axes, mean, variance, colour, label):
    """A level with its 95 % band."""
    mean, half = mean.flat, 1.96 * np.sqrt(variance.flat)
    axes.fill_between(year, mean - half, mean + half, color=colour, alpha=0.2, linewidth=0)
    axes.plot(year, mean, color=colour, linewidth=1.8, label=label)


figure = plt.figure(figsize=(10, 6.4))
grid = figure.add_gridspec(2, 3)
above = figure.add_subplot(grid[0, :2])
below = figure.add_subplot(grid[1, :2], sharex=above, sharey=above)
in_time, in_lag = figure.add_subplot(grid[0, 2]), figure.add_subplot(grid[1, 2])

above.plot(year, flow, ".", color=DATA, markersize=4, label="measured")
level(above, filt.z_plus, filt.P_plus, FILTER, "filtered, from the past")
level(above, smooth.x, smooth.S, SMOOTHER, "smoothed, from all years")
above.set(ylabel="flow [10⁸ m³ a year]", title="The level of the Nile, with 95 % bands", ylim=(430, 1520))
above.legend(ncols=3, loc="upper right")

below.plot(year[~lost], flow[~lost], ".", color=DATA, markersize=4)
below.plot(year[lost], flow[lost], ".", color="#C0C0C0", markersize=4, label="withheld")
level(below, gap_filt.z_plus, gap_filt.P_plus, FILTER, None)
level(below, gap_smooth.x, gap_smooth.S, SMOOTHER, None)
below.set(ylabel="flow [10⁸ m³ a year]", xlabel="year", title="The same with forty years withheld")
below.legend(loc="upper right")

in_time.axhspan(-1.96, 1.96, color=DATA, alpha=0.08, linewidth=0)
in_time.vlines(year[1:], 0, e, color=DATA, linewidth=0.8)
in_time.plot(year[1:], e, ".", color=DATA, markersize=4)
in_time.set(xlabel="year", ylabel="ε / D$^{½}$", title="Innovations, standardised")

bound = 1.96 / np.sqrt(n)
in_lag.axhspan(-bound, bound, color=DATA, alpha=0.08, linewidth=0)
in_lag.axhline(0, color=DATA, linewidth=0.8)
in_lag.vlines(lags, 0, autocorrelation, color=SMOOTHER, linewidth=2.5)
in_lag.set(
    xlabel="lag [years]", ylabel="autocorrelation", title="They are white", ylim=(-0.5, 0.5), xticks=[1, 5, 10, 15]
)
plt.show()
