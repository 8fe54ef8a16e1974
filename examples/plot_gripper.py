r"""
A gripper: two sensors that report only their sum
=================================================

Two fingers on one motor have one coordinate. In the estimation problem each hinge alone would measure the force that
passes through it; coupled, the two report only the sum :math:`T' = X^* T`. So the bodies of the coupling become one
node with twice the states and one output, and everything else of the theory stays as it is:

.. math::

   H' = X^* H_S \phi_S, \qquad R' = X^* R_S X, \qquad \mathcal M' = X^* \mathcal M X .
"""

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

# %%
# An arm with a gripper
# ---------------------

FINGER = kf.spatial.spatial_inertia(0.2, [0.1, 0, 0], 1e-3 * np.eye(3))
rods = kf.models.uniform_chain(2, mass=2.0, length=0.5, hinge=kf.Hinge.revolute([0, 1, 0]))
fingers = [
    kf.Body("left", FINGER, kf.Hinge.revolute([0, 1, 0]), "rod_1", position=[0.5, 0, 0.03], armature=2e-3),
    kf.Body("right", FINGER, kf.Hinge.revolute([0, 1, 0]), "rod_1", position=[0.5, 0, -0.03]),
]
gear = kf.Coupling(["left", "right"], X=[1.0, -1.0])
arm = kf.System([*rods.bodies, *fingers], couplings=[gear], gravity=(0, 0, 0))
q = np.array([0.2, -0.5, 0.4])
assert (arm.nv, arm.open_tree.nv) == (3, 4)

# %%
# One node, one output
# --------------------
#
# The embedded model has three nodes: two rods, and the pair of fingers with twelve states. The covariance of its output
# is :math:`X^* \mathcal M X`; draws from it certify that.

ss = kf.as_estimation(arm, q)
X = arm.expansion()
M = X.T @ kf.mass_matrix(arm.open_tree, arm.expand(q)) @ X
assert ss.n.tolist() == [6, 6, 12]
assert np.allclose(kf.innovations_factor(ss).inverse(), np.linalg.inv(M), rtol=1e-10)
report = kf.cross_check(arm, q, samples=20_000, seed=1)
assert report.passed

# %%
# What the coupling does to the arm
# ---------------------------------
#
# The same torque on the gripper's motor. Coupled fingers swing against each other and shake the arm less than a free
# one that is driven alone.

t = np.linspace(0, 0.5, 101)
both = kf.simulate(arm, q, np.zeros(3), t, np.array([0.0, 0.0, 0.05]))
alone = kf.simulate(arm.open_tree, arm.expand(q), np.zeros(4), t, np.array([0.0, 0.0, 0.05, 0.0]))
assert both.worst_energy_drift < 1e-7
shaken = [np.abs(m.q[:, 1] - m.q[0, 1]).max() for m in (both, alone)]
every = arm.expand(both.q)
assert np.array_equal(every[:, 3], -every[:, 2])
assert shaken[0] < 0.8 * shaken[1]

# %%
# The figure
# ----------

draws = kf.innovations_factor(ss).sample(np.random.default_rng(0), 4000)
figure, (cloud, fingers_, elbow) = plt.subplots(1, 3, figsize=(11, 3.5))
cloud.plot(draws[:, 1], draws[:, 2], ".", markersize=2, color=COLORS["blue"], alpha=0.3)
cloud.set(xlabel="elbow torque [N m]", ylabel="gripper torque [N m]", title="draws of T, covariance X*$\\mathcal{M}$X")
for name, motion, color in (("coupled", both, COLORS["blue"]), ("free", alone, COLORS["orange"])):
    every = arm.expand(motion.q) if motion is both else motion.q
    fingers_.plot(t, every[:, 2], color=color, label=f"left, {name}")
    fingers_.plot(t, every[:, 3], color=color, linestyle="--", label=f"right, {name}")
    elbow.plot(t, np.degrees(every[:, 1] - every[0, 1]), color=color, label=name)
fingers_.set(xlabel="time [s]", ylabel="angle [rad]", title="fingers")
fingers_.legend(fontsize="small")
elbow.set(xlabel="time [s]", ylabel="elbow moved by [°]", title="what the arm feels")
elbow.legend()
plt.show()
