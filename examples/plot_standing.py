r"""
A humanoid on its feet: contact forces and their covariance
===========================================================

A contact is a loop with the world. With :math:`\Omega = J \mathcal M^{-1} J^*` at both feet, the forces that keep them
in place are the innovations of two more measurements,

.. math::

   f = -\Omega^{+} (J a_0 + \dot J v), \qquad \operatorname{cov} f = \Omega^{+}
   \quad\text{when}\quad \operatorname{cov} T = \mathcal M .

The feet do not give way, so all that random joint torques do to them is in the forces.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

import kfdyn as kf
from kfdyn.viz import COLORS, STYLE, draw_system

plt.style.use(STYLE)

# %%
# Stand
# -----
#
# Both feet are held in pose: twelve rows. The joints' motors, without the floating base, hold the robot up; of the many
# torques that do, inverse dynamics gives those of least norm.

robot = kf.models.humanoid()
feet = [kf.Loop(None, f"{side}_toes", rows="pose") for side in ("left", "right")]
standing = robot.with_loops(feet)
q = robot.neutral()
motors = np.arange(robot.nv) >= 6
hold = kf.inverse_dynamics(standing, q, None, np.zeros(robot.nv), actuated=motors)
assert not hold[:6].any()
reaction = kf.constraint_forces(standing, q, None, hold)
weight = 9.81 * robot.mass
assert np.isclose(sum(f[5] for f in reaction), weight)

# %%
# Shake
# -----
#
# Random generalised forces with covariance :math:`\mathcal M`: the reaction forces scatter with covariance
# :math:`\Omega^{-1}`, and the accelerations with :math:`X (X^* \mathcal M X)^{-1} X^*`, which the feet do not feel.

n, rng = 4000, np.random.default_rng(0)
noise = kf.innovations_factor(kf.as_estimation(robot, q, gravity=np.zeros(3))).sample(rng, n)
shaken = kf.cut_joint(standing, np.broadcast_to(q, (n, robot.nq)), None, hold + noise)
f = np.concatenate(shaken.forces, axis=-1)
claimed = kf.cut_joint(standing, q, None, hold).force_covariance()
sampled = np.cov(f.T)
scale = np.sqrt(np.diag(claimed))
assert np.abs((sampled - claimed) / np.outer(scale, scale)).max() < 5 / np.sqrt(n)
claim_a = kf.mass_matrix_inverse(standing, q)
assert np.abs(np.cov(shaken.a.T) - claim_a).max() < 6 / np.sqrt(n) * np.diag(claim_a).max()

# %%
# The figure
# ----------

figure, (scene, cloud) = plt.subplots(1, 2, figsize=(9, 4.4), width_ratios=(1, 1.3))
draw_system(scene, robot, q, plane="yz", color="0.4", linewidth=2.0)
for loop, force in zip(feet, reaction):
    y, z = kf.frame_pose(robot, q, loop.frame_b).position[1:]
    scene.annotate(
        "", xy=(y + force[4] / weight, z + force[5] / weight), xytext=(y, z),
        arrowprops={"arrowstyle": "-|>", "color": COLORS["orange"], "linewidth": 2.2},
    )  # fmt: skip
scene.set(aspect="equal", xlabel="y [m]", ylabel="z [m]", title="reactions (1 m is the weight)")
for i, (color, name) in enumerate(((COLORS["blue"], "left foot"), (COLORS["orange"], "right foot"))):
    rows = [6 * i + 4, 6 * i + 5]
    cloud.plot(*f[:, rows].T, ".", markersize=2, alpha=0.25, color=color, label=name)
    values, vectors = np.linalg.eigh(claimed[np.ix_(rows, rows)])
    width, height = 2 * 2.0 * np.sqrt(values)
    turn = np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0]))
    centre = np.concatenate(reaction)[rows]
    cloud.add_patch(Ellipse(centre, width, height, angle=turn, fill=False, color="0.15", linewidth=1.4, zorder=3))
cloud.set(xlabel="sideways force [N]", ylabel="upward force [N]", title="forces on the feet, and 2σ of Ω⁻¹")
cloud.legend(markerscale=5)
plt.show()
