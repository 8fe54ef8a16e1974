r"""
Gaussian process regression in O(N)
===================================

A Gaussian process with a Matérn-3/2 kernel of amplitude :math:`\sigma` and length :math:`\ell` is the first
component of a Markov process: its value and its slope, carried over a step :math:`\Delta` by

.. math::

   F = e^{-y}\begin{pmatrix} 1 + y & \Delta \\ -\lambda^2\Delta & 1 - y\end{pmatrix},
   \qquad y = \lambda\Delta, \quad \lambda = \sqrt 3/\ell .

So the regression is a smoother on a chain. It gives what the dense solution gives, the marginal likelihood included,
and takes time in proportion to N, not to N³.
"""

from functools import partial
from time import process_time

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import gammainc
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern
from threadpoolctl import threadpool_limits

import kfdyn as kf
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

CHAIN, DENSE, DATA = COLORS["blue"], COLORS["vermilion"], COLORS["grey"]
AMPLITUDE, LENGTH, NOISE = 1.0, 0.6, 0.25

# %%
# The chain of a kernel
# ---------------------
#
# The noise on an edge is :math:`Q = P_\infty - F P_\infty F^*`. Written out with the incomplete gamma function it has
# no cancellation, so that points may be as close as they like.


def matern_chain(t):
    """Matérn-3/2 process at the sorted times t, its value measured with noise: a StateSpace of t.size nodes."""
    rate = np.sqrt(3.0) / LENGTH
    step = np.diff(t)
    y = rate * step
    F = np.exp(-y)[:, None, None] * np.array([[1 + y, step], [-rate * y, 1 - y]]).transpose(2, 0, 1)
    covariance = 2 * rate * y**2 * np.exp(-2 * y)
    value, slope = gammainc(3, 2 * y), rate**2 * (gammainc(3, 2 * y) + 4 * y * np.exp(-2 * y))
    Q = AMPLITUDE**2 * np.array([[value, covariance], [covariance, slope]]).transpose(2, 0, 1)
    H = np.broadcast_to([[1.0, 0.0]], (t.size, 1, 2))
    return kf.StateSpace.chain(F, H, Q, [[NOISE**2]], np.zeros(2), AMPLITUDE**2 * np.diag([1.0, rate**2]))


def regress(t, data):
    """Smoothed value and its variance at all t, and the log-likelihood; NaN in the data asks for a prediction."""
    ss = matern_chain(t)
    filt = kf.kalman_filter(ss, data)
    smooth = kf.bryson_frazier(ss, filt)
    return smooth.x.stacked()[:, 0], smooth.S.stacked()[:, 0, 0], filt.llf


# %%
# The same posterior
# ------------------
#
# Sixty noisy values, none between 5 and 6.5. To predict between the data, put nodes without data there.

rng = np.random.default_rng(5)
t_data = np.sort(np.concatenate([rng.uniform(0, 5, 40), rng.uniform(6.5, 10, 20)]))
truth = np.vectorize(lambda t: np.sin(1.3 * t) + 0.5 * np.sin(3.1 * t + 1))
data = truth(t_data) + NOISE * rng.normal(size=t_data.size)
t_new = np.linspace(-0.5, 10.5, 400)

t = np.concatenate([t_data, t_new])
order = np.argsort(t, kind="stable")
mean, variance, llf = regress(t[order], np.concatenate([data, np.full(t_new.size, np.nan)])[order])
is_new = order >= t_data.size
mean, deviation = mean[is_new], np.sqrt(variance[is_new])

kernel = ConstantKernel(AMPLITUDE**2, "fixed") * Matern(LENGTH, "fixed", nu=1.5)
gp = GaussianProcessRegressor(kernel, alpha=NOISE**2, optimizer=None).fit(t_data[:, None], data)
gp_mean, gp_deviation = gp.predict(t_new[:, None], return_std=True)
difference = max(np.abs(mean - gp_mean).max(), np.abs(deviation - gp_deviation).max())
print(f"largest difference from scikit-learn: {difference:.1e}")
assert difference < 1e-9 and np.isclose(llf, gp.log_marginal_likelihood_value_, rtol=1e-10)
print(f"log-likelihood {llf:.10f}, scikit-learn {gp.log_marginal_likelihood_value_:.10f}")

# %%
# The time it takes
# -----------------
#
# Both give the posterior mean and its standard deviation at every data point.


def shortest(run, repeats=3):
    """Seconds of processor time of the fastest run, after one that warms up."""
    times = []
    for _ in range(repeats + 1):
        start = process_time()
        run()
        times.append(process_time() - start)
    return min(times[1:])


def dense(t, data):
    """The same by scikit-learn."""
    model = GaussianProcessRegressor(kernel, alpha=NOISE**2, optimizer=None).fit(t[:, None], data)
    return model.predict(t[:, None], return_std=True)


def noise(size):
    """Some data of any size; the time does not depend on their values."""
    return np.sort(rng.uniform(0, size / 10, size)), rng.normal(size=size)


chain_sizes, dense_sizes = np.array([100, 1000, 10_000, 100_000, 300_000]), np.array([100, 200, 400, 800, 1200])
with threadpool_limits(1):  # threads of BLAS that wait take processor time, too
    chain_times = [shortest(partial(regress, *noise(n))) for n in chain_sizes]
    dense_times = [shortest(partial(dense, *noise(n))) for n in dense_sizes]
print(f"kfdyn: {chain_sizes[-1]:,} points in {chain_times[-1]:.2f} s")
print(f"scikit-learn: {dense_sizes[-1]:,} points in {dense_times[-1]:.2f} s")

# %%
# The figure
# ----------

plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), width_ratios=[1.7, 1])

left.fill_between(t_new, mean - 1.96 * deviation, mean + 1.96 * deviation, color=CHAIN, alpha=0.18, linewidth=0)
left.plot(t_new, mean, color=CHAIN, linewidth=2, label="kfdyn, smoother on a chain")
left.plot(t_new, gp_mean, color=DENSE, linewidth=1.2, linestyle=(0, (4, 4)), label="scikit-learn, dense")
for sign in (-1.96, 1.96):
    left.plot(t_new, gp_mean + sign * gp_deviation, color=DENSE, linewidth=0.8, linestyle=(0, (4, 4)))
left.plot(t_data, data, ".", color=DATA, markersize=5, label="data")
left.set(xlabel="t", ylabel="f(t)", title="Posterior mean and 95 % band", xlim=(t_new[0], t_new[-1]), ylim=(-2.6, 2.9))
left.legend(loc="upper center", ncols=3)

right.loglog(dense_sizes, dense_times, "s-", color=DENSE, markersize=5, label="scikit-learn")
right.loglog(chain_sizes, chain_times, "o-", color=CHAIN, markersize=5, label="kfdyn")
for sizes, times, power, name in (
    (chain_sizes[2:], chain_times, 1, "∝ N"),
    (np.array([600, 4000]), [dense_times[-1] * (4000 / 1200) ** 3], 3, "∝ N³"),
):
    guide = times[-1] * (sizes / sizes[-1]) ** power
    right.loglog(sizes, guide, ":", color="#7F7F7F", linewidth=1.5)
    right.annotate(name, (sizes[-1], guide[-1]), (5, 0), textcoords="offset points", color="#7F7F7F", va="center")
right.set(xlabel="data points N", ylabel="processor time [s]", title="Time for the posterior")
right.legend(loc="upper left")
plt.show()
