r"""
What each hinge tells
=====================

A hinge with a rotor measures the force that passes through it, with noise. How much does the measurement tell? In nats,

.. math::

   \tfrac12 \log\frac{D(k)}{R(k)} = \tfrac12 \log\Bigl(1 + \frac{H P H^*}{R}\Bigr) :

half the logarithm of the inertia that the hinge feels, over the inertia of its rotor. A direct drive tells
much, a high gear little. The innovations are independent, so these numbers add up, hinge by hinge, to the mutual
information between forces and torques, :math:`\tfrac12 \log\det\mathcal M - \tfrac12 \log\det R`.
"""

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.dynamics import as_estimation, mass_matrix_logdet
from kfdyn.dynamics.simulation.motion_arguments import with_armature
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

# %%
# Hinge by hinge
# --------------
#
# An arm of eight rods, with a small rotor at each hinge. Had nothing been measured outboard, the torque at hinge k
# would have the variance :math:`\mathcal M_{kk}`; given the torques outboard it has the smaller variance :math:`D(k)`.
# So the information in a single torque, :math:`\tfrac12 \log(\mathcal M_{kk}/R)`, splits in two: what the hinges
# outboard had told already, and what is new.

N = 8
rods = kf.models.uniform_chain(N, length=0.25, mass=0.5, hinge=kf.Hinge.revolute([0, 1, 0]))
snake = with_armature(rods, np.full(N, 1e-3))
q = 0.3 * np.cos(np.arange(N))


def information(arm):
    """New information at each hinge, and what was known of its torque from outboard; nats."""
    D = kf.riccati(as_estimation(arm, q)).D.flat
    alone = np.diag(kf.mass_matrix(arm, q))
    return 0.5 * np.log(D / arm.armature), 0.5 * np.log(alone / D)


new, known = information(snake)
total = 0.5 * (mass_matrix_logdet(snake, q) - np.log(snake.armature).sum())
assert np.isclose(new.sum(), total, rtol=1e-12)  # the chain rule
assert (known >= -1e-12).all()  # knowing more never hurts
assert abs(known[-1]) < 1e-12  # nothing is outboard of the last hinge
print(f"{new.sum():.3f} nats in all, {known.sum():.3f} of what the torques would tell one by one is redundant")

# %%
# Through the gears
# -----------------
#
# A gear of ratio n multiplies the rotor's inertia by n². Scaling all gears from direct drive upwards, each hinge tells
# less and less, and in the limit nothing: a locked hinge is a measurement that is missing. On the logarithmic
# scale a hinge that dominates its rotor loses one nat for each factor e in the gear.

gear = np.geomspace(0.03, 1000, 120)
told = np.array([information(with_armature(snake, snake.armature * n**2))[0] for n in gear])
assert (np.diff(told, axis=0) < 0).all()
slope = np.diff(told, axis=0) / np.diff(np.log(gear))[:, None]
assert np.allclose(slope[0], -1, atol=0.05) and np.abs(slope[-1]).max() < 0.1

figure, (bars, along, gears) = plt.subplots(1, 3, figsize=(11, 3.9), width_ratios=(1, 1, 1.15))
joint = np.arange(1, N + 1)
bars.bar(joint, new, 0.62, color=COLORS["blue"], label="new, ½ log D/R")
bars.bar(
    joint, known, 0.62, bottom=new, color=COLORS["orange"], label=r"known from outboard, ½ log $\mathcal{M}_{kk}$/D"
)
bars.set(xlabel="hinge, base to tip", ylabel="information in its torque [nat]", title="the innovation is what is new")
bars.set_xticks(joint)
bars.set_ylim(0, 1.3 * (new + known).max())
bars.legend(loc="upper right")

cumulated = [0, *np.cumsum(new[::-1])]
along.step(np.arange(N + 1), cumulated, where="post", color=COLORS["blue"])
along.plot(np.arange(N + 1), cumulated, "o", color=COLORS["blue"], markersize=4, label="Σ ½ log D/R")
along.axhline(total, color=COLORS["grey"], linestyle=":", label=r"½ log det $\mathcal{M}$ − ½ log det R")
along.set(xlabel="hinges passed, from the tip", ylabel="information so far [nat]", title="it adds up")
along.set_ylim(0, 1.25 * total)
along.legend(loc="upper left")

for k in range(N):
    gears.semilogx(gear, told[:, k], color=plt.get_cmap("viridis")(k / N), label=f"hinge {k + 1}")
gears.axvline(1, color=COLORS["grey"], linestyle=":", linewidth=1)
gears.text(1.2, 0.98, "as on the left", transform=gears.get_xaxis_transform(), fontsize=8, va="top")
gears.set(xlabel="gear ratio n (rotor ∝ n²)", ylabel="½ log D/R [nat]", title="a high gear tells nothing")
gears.legend(loc="upper right", bbox_to_anchor=(1.0, 0.9), ncols=2)

plt.show()
