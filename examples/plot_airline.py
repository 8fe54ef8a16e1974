r"""
The airline passengers, taken apart
===================================

The number of airline passengers grew for twelve years, with more of them every summer. On logarithms that is a sum of
three unknown things: a trend whose level and slope may wander, a season that repeats and may change, and noise.

.. math:: \log T(k) = x(k) + s(k) + r(k)

Four variances say how much each of them moves. They are estimated by maximum likelihood; of the thirteen states at the
start nothing is known, and that is taken exactly, not as a large number.
"""

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.estimation.datasets import airline
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

# %%
# Fit the first ten years
# -----------------------
#
# The last two are kept back, to see whether the forecast deserves its intervals.

time, passengers = airline()
past = np.arange(time.size) < 120
model = kf.series.local_trend() + kf.series.seasonal(12)
fit = model.fit(np.log(passengers[past]))
print(fit)
assert fit.converged

# %%
# The parts, and the future
# -------------------------
#
# Each part has its own mean and standard deviation given all the data. The slope has no variance: the likelihood is
# largest where it does not wander at all, and the fit says so.

trend, season = fit.components()
ahead = fit.forecast(24)
inside = (np.exp(ahead.lower) <= passengers[~past]) & (passengers[~past] <= np.exp(ahead.upper))
print(f"{inside.sum()} of 24 months lie within their 95 % intervals")
assert inside.sum() >= 21
assert np.abs(season.mean).max() < 0.3 and (season.std < 0.05).all()

# %%
# The figure
# ----------

figure, (whole, below, above) = plt.subplots(3, 1, figsize=(9.5, 8.2), sharex=True, height_ratios=[2, 1.3, 1])
whole.plot(time, passengers, ".", color=COLORS["grey"], markersize=4, label="passengers (thousands)")
whole.plot(time[past], np.exp(trend.mean), color=COLORS["blue"], label="trend")
whole.fill_between(
    time[~past], np.exp(ahead.lower), np.exp(ahead.upper), color=COLORS["orange"], alpha=0.25, linewidth=0
)
whole.plot(time[~past], np.exp(ahead.mean), color=COLORS["orange"], label="forecast from 1958, 95 %")
whole.axvline(time[120], color=COLORS["pale"], linewidth=0.8)
whole.set(title="Airline passengers: the forecast has not seen what came")
whole.legend(loc="upper left")

below.fill_between(
    time[past], season.mean - 1.96 * season.std, season.mean + 1.96 * season.std,
    color=COLORS["green"], alpha=0.25, linewidth=0,
)  # fmt: skip
below.plot(time[past], season.mean, color=COLORS["green"])
below.set(title="Season, on logarithms, with its 95 % band")

above.axhspan(-1.96, 1.96, color=COLORS["pale"], alpha=0.3, linewidth=0)
above.vlines(time[past], 0, fit.residuals, color=COLORS["grey"], linewidth=0.8)
above.set(title="Standardised innovations: the first thirteen only tell where everything began", xlabel="year")
plt.show()
