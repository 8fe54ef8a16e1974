r"""
One filter, in time and in space
================================

On the left, time runs through a century of the Nile; on the right, from the tip of an arm to its base. The same two
calls solve both. What a filter calls measurements, predictions and noise are on the right the torques at the
hinges, the torques that the links outboard account for, and rotors:

.. math::

   x(k) = \varphi\, x(k-1) + w(k), \quad w \sim N(\xi, M); \qquad T(k) = H x(k) + r(k), \quad r \sim N(0, R) .

The smoothed state on the left is the level of the river; on the right it is the force between two links. The
smoother's other result, :math:`a = \mathcal M^{-1} (T - \text{bias})`, is hardly ever looked at on the left. On the
right it is the acceleration of the joints.
"""

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.dynamics import as_estimation
from kfdyn.estimation.datasets import nile
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)


def solve(ss, T):
    """Filter and smooth: all that is done to either system."""
    filt = kf.kalman_filter(ss, T)
    return filt, kf.bryson_frazier(ss, filt)


# %%
# In time
# -------
#
# The local level model of the Nile's annual flow, with Durbin and Koopman's variances.

year, flow = nile()
one = np.ones((1, 1))
river = kf.StateSpace.chain(one, one, 1469.1 * one, 15099.0 * one, x0=[1000.0], P0=1.5e4 * one, steps=flow.size)
river_filt, river_smooth = solve(river, flow)

# %%
# In space
# --------
#
# A tentacle of forty links, curled and swinging, with a rotor at each hinge and a wave of torques along it.

LINKS = 40
rod = kf.models.uniform_chain(LINKS, length=0.05, mass=0.1, hinge=kf.Hinge.revolute([0, 1, 0])).bodies
tentacle = kf.System(
    [kf.Body(b.name, b.inertia, b.hinge, b.parent, position=b.position, armature=3e-4) for b in rod], name="tentacle"
)
hinge = np.arange(LINKS)
q = 0.12 * np.sin(hinge / 5.0)
v = 1.5 * np.cos(hinge / 4.0)
tau = 0.4 * np.sin(hinge / 3.0) * np.exp(-hinge / 25)
arm = as_estimation(tentacle, q, v)
arm_filt, arm_smooth = solve(arm, tau)

# %%
# Both answers are right. The river's smoothed level is the conditional mean of the joint Gaussian, the arm's :math:`a`
# solves :math:`\mathcal M a + c = \tau`; each is checked by dense algebra that knows nothing of filters.

lower = np.tril(np.ones((flow.size, flow.size)))
prior = lower @ np.diag([1.5e4, *[1469.1] * (flow.size - 1)]) @ lower.T
level = 1000.0 + prior @ np.linalg.solve(prior + 15099.0 * np.eye(flow.size), flow - 1000.0)
assert np.allclose(river_smooth.x.flat, level, rtol=1e-10)

a = np.linalg.solve(kf.mass_matrix(tentacle, q), tau - kf.bias_forces(tentacle, q, v))
assert np.allclose(arm_smooth.a, a, rtol=1e-8, atol=1e-8 * np.abs(a).max())

# %%
# Side by side
# ------------
#
# From the top: the measurements and what the filter expected of them; the variance of what is measured, before
# and after each measurement; the smoothed state; and :math:`a`. The river's variances settle within ten years, as
# every year is like the next. The tentacle's settle within four links, and then only follow its curl.

step = np.arange(LINKS)  # from the tip
inward = hinge[::-1]
both = (
    (year, river, river_filt, river_smooth, flow, np.arange(flow.size)),
    (step, arm, arm_filt, arm_smooth, tau, inward),
)
labels = (
    ("flow [10⁸ m³]", "variance [10¹⁶ m⁶]", "level [10⁸ m³]", "a [10⁻⁸ m⁻³]"),
    ("torque [N m]", "inertia [kg m²]", "moment [N m]", "a [rad/s²]"),
)
figure, axes = plt.subplots(4, 2, figsize=(10, 9.2), sharex="col")
for column, ((at, ss, filt, smooth, T, order), names) in enumerate(zip(both, labels)):
    expected, before, after, state = [], [], [], []
    for k in order:
        H = ss.H[k]
        expected.append((H @ filt.z[k]).item())
        before.append((H @ filt.P[k] @ H.T).item())
        after.append((H @ filt.P_plus[k] @ H.T).item())
        state.append((H @ smooth.x[k]).item())
    one_by_one, four = T[order], axes[:, column]
    four[0].plot(at, one_by_one, ".", color=COLORS["grey"], markersize=5, label=("measured", "applied")[column])
    four[0].plot(at, expected, color=COLORS["orange"], label=("predicted, Hz", "accounted for outboard, Hz")[column])
    four[0].vlines(at, expected, one_by_one, color=COLORS["pale"], linewidth=0.8, zorder=0, label="innovation ε")
    saw = np.ravel(np.column_stack([before, after]))
    four[1].plot(np.repeat(at, 2), saw, color=COLORS["pale"], linewidth=0.8, zorder=0)
    four[1].plot(at, before, "^", color=COLORS["orange"], markersize=3.5, label="HPH*, before")
    four[1].plot(at, after, "v", color=COLORS["blue"], markersize=3.5, label="HP⁺H*, after")
    four[2].plot(at, state, color=COLORS["blue"], label=("smoothed state Hx̂", "moment between links, Hx̂")[column])
    four[3].bar(at, smooth.a[order], width=0.8, color=COLORS["green"], label=r"$a = \mathcal{M}^{-1}(T - $bias$)$")
    four[3].axhline(0, color=COLORS["grey"], linewidth=0.6)
    for ax, name in zip(four, names):
        ax.set_ylabel(name)
        ax.margins(x=0.01)
        ax.legend(ncols=3, handlelength=1.4, columnspacing=1.2)
axes[0, 0].set_title("the Nile, year by year")
axes[0, 1].set_title("a tentacle, link by link")
axes[0, 1].set_ylim(-0.42, 0.38)
axes[1, 0].set_ylim(0, 1.65e4)
axes[1, 1].set_ylim(0, 1.35e-3)
axes[-1, 0].set_xlabel("year")
axes[-1, 1].set_xlabel("hinges passed, from the tip to the base")

plt.show()
