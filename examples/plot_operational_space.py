r"""
What the tool feels is a covariance
===================================

Push the tool of an arm: it gives way, more along some directions than others. The compliance

.. math:: \Omega = J \mathcal M^{-1} J^*

says how much acceleration a unit force causes. In the filter's reading it needs no Jacobian and no mass matrix: it is
the covariance of the co-state, :math:`\Lambda(k) = \bar\tau^* \varphi^* \Lambda \varphi \bar\tau + H^* D^{-1} H`, which
the smoother carries from the base to the tip. So the compliance can be *seen*: let random torques of
covariance :math:`\mathcal M` act on the joints, and watch how the tool accelerates.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm

import kfdyn as kf
from kfdyn.dynamics import as_estimation
from kfdyn.estimation.consistency import covariance_test
from kfdyn.viz import COLORS, STYLE, draw_ellipse, draw_system

plt.style.use(STYLE)
PLANE = np.ix_([3, 5], [3, 5])  # linear, x and z

# %%
# A planar arm in four postures
# -----------------------------
#
# Three rods and a tool. Stretched out, the arm is stiff along itself and gives way across; folded, it is softer. The
# cloud is a thousand accelerations of the tool, the ellipse is twice the square root of Ω.

rods = kf.models.uniform_chain(3, length=0.4, mass=1.0, hinge=kf.Hinge.revolute([0, 1, 0]))
arm = kf.System(rods.bodies, frames={"tool": kf.Frame("rod_2", position=[0.4, 0, 0])})
postures = np.array([[-1.2, 0.15, 0.1], [-0.9, 0.9, 0.7], [-1.9, 1.6, 1.0], [-0.3, -1.2, 1.9]])
rng = np.random.default_rng(7)

# %%
# The test is calibrated: the sample covariance is held against :math:`\Omega` by its likelihood ratio.

n = 1000
clouds, compliances = [], []
for q in postures:
    ss = as_estimation(arm, q, gravity=np.zeros(3))
    tau = kf.draw(ss, rng, n).T  # N(0, mass matrix)
    a = kf.forward_dynamics(arm, q, None, tau, gravity=np.zeros(3))
    J = kf.jacobian(arm, q, "tool")
    Omega = kf.operational_space_compliance(arm, q, "tool")
    assert np.allclose(Omega, J @ np.linalg.solve(kf.mass_matrix(arm, q), J.T), atol=1e-10)
    at_tool = (a @ J.T)[:, [3, 5]]
    verdict = covariance_test(at_tool, Omega[PLANE])
    print(f"p = {verdict.p_value:.3f}")
    assert verdict.p_value > 0.001
    clouds.append(at_tool)
    compliances.append(Omega[PLANE])

figure, axes = plt.subplots(1, 4, figsize=(12, 3.6), sharey=True)
SIZE = 0.09  # metres for the square root of one 1/kg
for ax, q, cloud, Omega in zip(axes, postures, clouds, compliances):
    tool = kf.frame_pose(arm, q, "tool").position[[0, 2]]
    ax.plot(*(tool + SIZE * cloud).T, ".", color=COLORS["sky"], markersize=1.5, zorder=0)
    draw_ellipse(ax, Omega, tool, 2 * SIZE, facecolor="none", edgecolor=COLORS["vermilion"], linewidth=2)
    draw_system(ax, arm, q, color=COLORS["grey"], linewidth=2.4)
    heavy, light = 1 / np.linalg.eigvalsh(Omega)
    ax.set(aspect="equal", xlabel="x [m]", title=f"feels like {light:.2g} to {heavy:.2g} kg")
    ax.set(xlim=(-0.6, 1.3), ylim=(-0.45, 1.45), xticks=(-0.5, 0, 0.5, 1))
axes[0].set_ylabel("z [m]")
axes[0].plot([], [], "o", color=COLORS["sky"], label="random torques", markersize=4)
axes[0].plot([], [], color=COLORS["vermilion"], linewidth=2, label=r"$2\,\Omega^{1/2}$")
axes[0].legend(loc="lower right")

# %%
# Two hands and two feet
# ----------------------
#
# A humanoid afloat in space. Push one hand, and the other feels it, by way of the torso; and the feet a little. The
# coupling between two branches passes through their nearest common ancestor, where their :math:`\Lambda` is read.

robot = kf.models.humanoid()
rng = np.random.default_rng(0)
stance = kf.integrate(robot, robot.neutral(), 0.3 * rng.normal(size=robot.nv))
limbs = ["left_hand", "right_hand", "left_sole", "right_sole"]
coupled = kf.operational_space_compliance(robot, stance, limbs)
jacobians = np.concatenate([kf.jacobian(robot, stance, limb) for limb in limbs])
dense = jacobians @ np.linalg.solve(kf.mass_matrix(robot, stance), jacobians.T)
assert np.allclose(coupled, dense, atol=1e-9 * np.abs(dense).max())

felt = np.array(
    [[np.linalg.norm(coupled[6 * i + 3 : 6 * i + 6, 6 * j + 3 : 6 * j + 6], 2) for j in range(4)] for i in range(4)]
)
assert (felt > 0).all() and (felt.diagonal() > 10 * felt[~np.eye(4, dtype=bool)].max()).all()
figure, ax = plt.subplots(figsize=(5.6, 4.4))
image = ax.imshow(felt, cmap="cividis_r", norm=LogNorm())
for (i, j), value in np.ndenumerate(felt):
    ax.text(j, i, f"{value:.2g}", ha="center", va="center", color="white" if value > 0.1 else "black")
names = [limb.replace("_", " ") for limb in limbs]
ax.set_xticks(range(4), [f"push the\n{name}" for name in names])
ax.set_yticks(range(4), names)
ax.tick_params(length=0)
ax.spines[:].set_visible(False)
ax.set_title("who feels a push on whom")
figure.colorbar(image, ax=ax, shrink=0.85, label="acceleration for a force, at most [1/kg]")

plt.show()
