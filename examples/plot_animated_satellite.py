r"""
A free-flying robot turns itself
================================

A satellite with two arms floats without gravity, without spin and without a jet. Motors swing one arm in a circle. The
momentum of the whole is zero all the time, and yet the satellite turns. The film is in the world's frame.
"""

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.viz import STYLE, animate

plt.style.use(STYLE)

robot = kf.models.free_flyer()
n = robot.nv - 6


def swing(t, q, v):
    """Push two hinges out of step, hold them softly, leave the base alone."""
    tau = np.zeros(robot.nv)
    beat = 2 * np.pi * t / 2.0
    tau[6:] = -2.0 * v[6:]
    tau[6] += 3.0 * np.sin(beat)
    tau[7] += 3.0 * np.cos(beat)
    return tau


motion = kf.simulate(
    robot, robot.neutral(), np.zeros(robot.nv), np.linspace(0, 4, 401), torque=swing, gravity=(0.0, 0.0, 0.0)
)
moving = animate(motion, plane=None, fps=10, trail="left_grip", figure=plt.figure(figsize=(4.4, 4.4), dpi=50))

# %%
# Momentum stays what it was, nothing; the base has turned all the same.

turned = kf.frame_pose(robot, motion.q, robot.body_names[0]).rotation
angle = np.degrees(np.arccos(np.clip((np.trace(turned[-1]) - 1) / 2, -1, 1)))
print(f"momentum {np.abs(motion.momentum).max():.1e}, base turned by {angle:.1f} degrees")
assert np.abs(motion.momentum).max() < 1e-6
assert angle > 1

plt.show()
