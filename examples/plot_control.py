r"""
Two controllers, and no mass matrix
===================================

Rodriguez closes with the remark that his forward dynamics could serve control design (JPL 86-48, section 12). Two
controllers for a PUMA 560 show how. *Computed torque* asks inverse dynamics for the torque that makes the joint error
a linear oscillator, :math:`\ddot e + K_d \dot e + K_p e = 0`. *Operational space control* does the same for
the tool: the free acceleration :math:`a_0` is the output of a smoother, the compliance :math:`\Omega = J \mathcal
M^{-1} J^*` the covariance of its co-state, and the wrench that makes up the difference is

.. math:: f = \Omega^{-1} (\alpha^* - J a_0 - \dot J v), \qquad \tau = \tau_0 + J^* f .

No mass matrix is formed, and whatever the posture torque :math:`\tau_0` does, the tool does not notice.
"""

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.dynamics.control import computed_torque, operational_space_control
from kfdyn.dynamics.simulation.simulate import simulate
from kfdyn.multibody import Pose
from kfdyn.viz import COLORS, STYLE, draw_system

plt.style.use(STYLE)

PALETTE = [COLORS[name] for name in ("blue", "orange", "green", "purple", "sky", "vermilion")]
arm = kf.models.puma560()

# %%
# Computed torque
# ---------------
#
# The arm starts beside a moving reference. Gains kp = 100, kd = 20: critically damped with a time constant of 0.1 s.
# Each joint's error, divided by what it was at the start, should follow (1 + 10 t) exp(−10 t), and so it does.


def reference(t):
    """Wanted q, v, a at time t."""
    s = np.asarray(t)[..., None]
    size, phase = np.array([0.4, 0.3, 0.5, 0.6, 0.5, 0.8]), np.arange(6.0)
    return size * np.sin(3 * s + phase), 3 * size * np.cos(3 * s + phase), -9 * size * np.sin(3 * s + phase)


t = np.linspace(0, 0.8, 41)
q_d, v_d, _ = reference(t)
offset = np.array([0.3, -0.2, 0.25, -0.4, 0.3, 0.5])
tracked = simulate(
    arm, q_d[0] + offset, v_d[0], t, lambda t, q, v: computed_torque(arm, q, v, *reference(t), kp=100.0, kd=20.0)
)
design = (1 + 10 * t) * np.exp(-10 * t)
assert np.allclose((tracked.q - q_d) / offset, design[:, None], atol=2e-3)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
for k, color in enumerate(PALETTE):
    left.plot(t, q_d[:, k], "--", color=color, linewidth=1)
    left.plot(t, tracked.q[:, k], color=color, linewidth=1.8, label=f"joint {k + 1}")
    right.plot(t, (tracked.q[:, k] - q_d[:, k]) / offset[k], "o", color=color, markersize=7 - k, alpha=0.8)
right.plot(t, design, "k", linewidth=1.2, label="(1 + 10 t) exp(−10 t)")
left.set(xlabel="time [s]", ylabel="angle [rad]", title="joints (solid) and their reference (dashed)")
left.legend(ncols=2, fontsize=8)
right.set(xlabel="time [s]", ylabel="error / error at the start", title="all six errors")
right.legend()

# %%
# Operational space
# -----------------
#
# The tool draws a circle, while a posture torque swings the arm's three spare degrees of freedom about (only the tool's
# position is controlled). The controller starts two centimetres off.

q0 = np.array([0.4, -0.9, 0.5, 0.0, 0.7, 0.0])
center = kf.frame_pose(arm, q0, "link_6").position + np.array([0.0, 0.08, 0.0])
TURN = 2 * np.pi / 1.2


def circle(t):
    """Wanted position, velocity and acceleration of the tool."""
    s = TURN * np.asarray(t)[..., None]
    across, up = np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0])
    p = center - 0.1 * (np.cos(s) * across - np.sin(s) * up)
    velocity = 0.1 * TURN * (np.sin(s) * across + np.cos(s) * up)
    return p, velocity, -(TURN**2) * (p - center)


def tool(t, q, v, posture=8.0):
    """Torque that moves the tool on the circle; the posture torque swings the wrist."""
    p, velocity, acceleration = circle(t)
    swing = posture * np.array([0, 0, 0, 1.0, -1.0, 1.0]) * np.sin(9 * t) - 0.5 * v
    zero = np.zeros(3)
    return operational_space_control(
        arm, q, v, "link_6", Pose(np.eye(3), p), 100.0, 20.0, np.concatenate([zero, velocity]),
        np.concatenate([zero, acceleration]), swing, axes=(3, 4, 5),
    )  # fmt: skip


t = np.linspace(0, 1.2, 61)
drawn = simulate(arm, q0, np.zeros(6), t, tool)
calm = simulate(arm, q0, np.zeros(6), t, lambda t, q, v: tool(t, q, v, posture=0.0))
path, calm_path, wanted = (*(kf.frame_pose(arm, moved.q, "link_6").position for moved in (drawn, calm)), circle(t)[0])
assert np.abs(drawn.q - calm.q).max() > 1.0 and np.allclose(path, calm_path, atol=1e-4)

figure = plt.figure(figsize=(11, 4.2))
ax, joints, miss = figure.subplots(1, 3, width_ratios=(1, 1, 1))
for i in (0, 20, 40):
    draw_system(ax, arm, drawn.q[i], plane="yz", color="0.75", linewidth=1.5, alpha=0.8)
ax.plot(wanted[:, 1], wanted[:, 2], color="#E69F00", linewidth=5, alpha=0.45, label="wanted")
ax.plot(path[:, 1], path[:, 2], color="#0072B2", linewidth=1.6, label="tool")
ax.set(aspect="equal", xlabel="y [m]", ylabel="z [m]", xlim=(-0.12, 0.52), title="the tool, seen along x")
ax.legend(fontsize=8)
for k in (3, 4, 5):
    joints.plot(t, drawn.q[:, k], color=PALETTE[k], label=f"joint {k + 1}")
    joints.plot(t, calm.q[:, k], "--", color=PALETTE[k], linewidth=1)
joints.set(xlabel="time [s]", ylabel="angle [rad]", title="wrist swung (solid) or not (dashed)")
joints.legend(fontsize=8)
for moved, style in (
    (calm, {"color": "#E69F00", "linewidth": 5, "alpha": 0.45, "label": "wrist not swung"}),
    (drawn, {"color": "#0072B2", "linewidth": 1.6, "label": "wrist swung"}),
):
    error = np.linalg.norm(kf.frame_pose(arm, moved.q, "link_6").position - wanted, axis=1)
    miss.semilogy(t, 1000 * error, **style)
miss.set(xlabel="time [s]", ylabel="distance from the target [mm]", title="the tool does not notice")
miss.legend(fontsize=8)

plt.show()
