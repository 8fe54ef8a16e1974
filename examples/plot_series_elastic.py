r"""
A series-elastic joint, stepping
================================

A motor turns a link through a spring, which is an option of its hinge. The rotor behind the gear is measurement noise,
:math:`R = n^2 J`; the spring is one mode of a node without mass. The motor follows a step of its command, the
link overshoots and rings with :math:`\omega^2 = k\,(1/R + 1/J)` when the motor is free, and with :math:`k/J` when it
is held.
"""

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

INERTIA, ROTOR, RATIO, SPRING = 0.4, 1e-4, 80.0, 200.0
drive = kf.FlexibleJoint(stiffness=SPRING, damping=0.3, rotor_inertia=ROTOR, ratio=RATIO)
link = kf.Body("link", np.diag([0.2, 0.2, INERTIA, 1, 1, 1]), kf.Hinge.revolute([0, 0, 1], flexible=drive))
joint = kf.FlexibleSystem([link], gravity=(0, 0, 0), name="joint")


def command(t, q, v):
    """A stiff servo on the motor: go to 0.5 rad."""
    tau = np.zeros(2)
    tau[0] = 2000.0 * (0.5 - q[0]) - 80.0 * v[0]
    return tau


t = np.linspace(0, 1.2, 601)
step = kf.simulate(joint, [0.0, 0.0], [0.0, 0.0], t, torque=command, substeps=4)

figure, ax = plt.subplots(figsize=(8, 4))
ax.plot(t, step.q[:, 0], color=COLORS["orange"], label="motor")
ax.plot(t, step.q.sum(axis=1), color=COLORS["blue"], label="link")
ax.axhline(0.5, color="#999999", linewidth=1)
ax.set(xlabel="time [s]", ylabel="angle [rad]", title="a step through a spring")
ax.legend()

# %%
# The frequencies are those of two inertias and a spring.

free = kf.modes(joint).frequencies[-1]
R = RATIO**2 * ROTOR
print(f"{free:.3f} rad/s, and by hand {np.sqrt(SPRING * (1 / R + 1 / INERTIA)):.3f}")
assert np.isclose(free, np.sqrt(SPRING * (1 / R + 1 / INERTIA)))
assert step.q.sum(axis=1).max() > 0.6  # it overshoots

plt.show()
