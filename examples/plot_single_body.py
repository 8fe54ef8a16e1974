r"""
One tumbling body, four equations of motion
===========================================

A rigid body in free flight, written as :math:`M \dot\beta + b = 0`. Which velocity should :math:`\beta` be: that of the
mass centre, of some point of the body, the same in body axes, or that of the body's extension at the
inertial origin? The motion is the same. What the equations conserve, and what the gyroscopic force :math:`b` needs to
know, is not:

* at the mass centre and at the inertial origin, the momentum is conserved;
* in all but one, :math:`b` does no work;
* in the first two :math:`b` needs no linear velocity. That makes the second the cheapest inside a recursion over many
  bodies, and it is the one that kfdyn uses.
"""

import matplotlib.pyplot as plt
import numpy as np

from kfdyn.spatial import spatial_inertia
from kfdyn.textbook.srb import FORMULATIONS, free_motion, measure_formulations, summary_table
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

# %%
# The body
# --------
#
# A box spins about its middle axis, which is unstable: every few seconds it turns over. Its frame is at a corner.

M6 = spatial_inertia(2.0, [0.15, 0.1, 0.05], np.diag([0.02, 0.05, 0.06]))
position, spin = np.array([1.0, 0.5, 0.2]), np.array([0.02, 5.0, 0.01])
V = np.concatenate([spin, [0.3, 0.1, 0.2]])
t = np.linspace(0, 6, 601)
motions = {key: free_motion(key, M6, np.eye(3), position, V, t) for key in FORMULATIONS}

# %%
# The motion is one and the same, and every formulation keeps its energy. The table of the source, measured:

first = motions["cm"]
for motion in motions.values():
    assert np.allclose(motion.rotation, first.rotation, atol=1e-8)
    assert np.allclose(motion.position, first.position, atol=1e-8)

measured = measure_formulations(M6, np.eye(3), position, V, t[:151])
for row in summary_table():
    found = measured[row.key]
    assert (found.momentum_drift < 1e-8) == row.conserves_momentum
    assert (found.bias_work < 1e-8) == row.bias_does_no_work
    assert (found.linear_velocity_influence < 1e-8) == row.free_of_linear_velocity
    assert found.energy_drift < 1e-8

# %%
# The figure
# ----------

tones = dict(zip(FORMULATIONS, (COLORS["sky"], COLORS["vermilion"], COLORS["green"], "black")))
figure, axes = plt.subplots(2, 2, figsize=(11, 6.4))
(tumble, gyroscopic), (momentum, power) = axes

spin = np.einsum("tji,tj->ti", first.rotation, first.V[:, :3])
for i, style in enumerate(("-", "--", ":")):
    tumble.plot(t, spin[:, i], style, color=COLORS["grey"], label=f"about {'xyz'[i]}")
tumble.set(ylabel="angular velocity [rad/s]", title="the motion: the same for all four (in body axes)", ylim=(-6.2, 8))
tumble.legend(loc="upper right", ncols=3)
for key, motion in motions.items():
    beta, _, bias, h, _ = motion.equations
    look = {"color": tones[key], "linestyle": "--" if key == "inertial" else "-"}
    look["linewidth"] = {"cm": 5.0, "body": 3.0}.get(key, 1.6)
    gyroscopic.plot(t, np.linalg.norm(bias[:, 3:], axis=1), **look)
    drift = np.linalg.norm(h - h[0], axis=1) / np.linalg.norm(h[0])
    momentum.plot(t, drift, **look, label=FORMULATIONS[key].title)
    power.plot(t, (beta * bias).sum(axis=1), **look)
gyroscopic.set(ylabel="linear part of b, norm [N]", title="the gyroscopic force: not the same")
momentum.set(xlabel="time [s]", ylabel="|h(t) − h(0)| / |h(0)|", title="momentum: conserved by two")
power.set(xlabel="time [s]", ylabel="β*b [W]", title="power of the gyroscopic force: zero for all but one")
figure.legend(*momentum.get_legend_handles_labels(), loc="outside lower center", ncols=4)

plt.show()
