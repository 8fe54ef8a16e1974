r"""
A track with gaps
=================

A walker is seen in the plane every half second, with noise of half a metre and unknown liveliness; for some time it is
hidden. Velocity wanders as a Wiener process, so position and velocity are the states of each axis:

.. math:: \ddot x = w, \qquad T(k) = x(t_k) + r(k).

How noisy the sensor is and how lively the walker, both are estimated from the positions alone; then the smoother
bridges the gap from both ends, and says how well.
"""

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.viz import COLORS, STYLE, draw_ellipse

plt.style.use(STYLE)

# %%
# Draw a path, and hide part of it
# --------------------------------

model = kf.series.constant_velocity(dt=0.5, dimensions=2)
truth = np.array([0.25, 0.03])  # variance of the noise, spectral density of the acceleration
rng = np.random.default_rng(4)
ss = model.state_space(truth, 120)
start = kf.StateSpace(ss.tree, ss.phi, ss.H, ss.Q, ss.R, xi=np.r_[0.0, 0.8, 0.0, 0.4, np.zeros(ss.n_states - 4)])
path = kf.draw(start, rng)
position = path.x.reshape(120, 4)[:, [0, 2]]
seen = path.T.reshape(120, 2).copy()
hidden = slice(45, 80)
seen[hidden] = np.nan

# %%
# Fit, and smooth
# ---------------

fit = model.fit(seen)
print(fit)
low, high = fit.conf_int().T
assert fit.converged and ((low < truth) & (truth < high)).all()

ss = model.state_space(fit.params, 120)
filt = kf.kalman_filter(ss, seen.reshape(-1))
smooth = kf.bryson_frazier(ss, filt)
x, S = smooth.x.flat.reshape(120, 4), smooth.S.flat.reshape(120, 4, 4)
error = x[:, [0, 2]] - position
spread = np.sqrt(S[:, [0, 2], [0, 2]])
inside = (np.abs(error[hidden]) < 1.96 * spread[hidden]).mean()
print(f"in the gap {100 * inside:.0f} % of the true coordinates lie within their 95 % intervals")
assert inside > 0.8

# %%
# The figure
# ----------

figure, (plane, width) = plt.subplots(1, 2, figsize=(10, 4.4), width_ratios=[1.5, 1])
plane.plot(*seen.T, ".", color=COLORS["grey"], markersize=3, label="seen")
plane.plot(*position.T, color=COLORS["pale"], linewidth=3, label="true path")
plane.plot(*x[:, [0, 2]].T, color=COLORS["blue"], label="smoothed")
for k in range(47, 80, 5):
    draw_ellipse(
        plane, S[k][np.ix_([0, 2], [0, 2])], x[k, [0, 2]], fill=False, edgecolor=COLORS["orange"], linewidth=1.2
    )
plane.set(title="A walker, hidden for 17 seconds", xlabel="x [m]", ylabel="y [m]", aspect="equal")
plane.legend(loc="best")

t = 0.5 * np.arange(120)
width.plot(t, spread[:, 0], color=COLORS["orange"], label="standard deviation")
width.plot(t, np.abs(error[:, 0]), color=COLORS["grey"], linewidth=0.8, label="error")
width.axvspan(t[45], t[80], color=COLORS["pale"], alpha=0.3, linewidth=0)
width.set(title="What the smoother claims, and what is true", xlabel="time [s]", ylabel="error of x [m]")
width.legend()
plt.show()
