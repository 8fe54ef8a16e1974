r"""
Why does a joint accelerate?
============================

A joint's acceleration has causes: the torques at the joints, the bias forces of turning bodies, and the bias
accelerations, which are Coriolis accelerations and gravity. Rodriguez gave each its own closed form
(JPL 86-48, section 10),

.. math::

   \ddot\theta = \alpha^1(T) + \alpha^2(\xi) + \alpha^3(\eta) .

In the language of estimation they are the responses of a smoother to its measurements :math:`T`, to the mean
:math:`\xi` of the process noise, and to the known input :math:`\eta` of the co-state. They are linear, so gravity can
be told from Coriolis by asking twice.
"""

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.dynamics import forward_dynamics
from kfdyn.dynamics.simulation.simulate import simulate
from kfdyn.dynamics.theory.causes import acceleration_causes
from kfdyn.viz import COLORS, STYLE, draw_system

plt.style.use(STYLE)

# %%
# A driven swing
# --------------
#
# Three rods hang on three hinges, and swing from a bend (at q = 0 they are level). A motor at the first hinge drives
# with a sinusoidal torque; the two others are free.

arm = kf.System(kf.models.uniform_chain(3, length=0.6, mass=1.0, hinge=kf.Hinge.revolute([0, 1, 0])).bodies)
start, rest = np.array([np.pi / 2 - 0.8, 0.3, 0.2]), np.zeros(3)


def motor(t, q, v):
    """A torque at the first hinge alone."""
    return np.array([3.0 * np.sin(3.0 * t), 0.0, 0.0])


t = np.linspace(0, 2, 201)
swing = simulate(arm, start, rest, t, motor)
print(swing.report())

# %%
# The causes, at every instant
# ----------------------------
#
# All instants are one batch. The sum of the causes is forward dynamics.

causes = acceleration_causes(arm, swing.q, swing.v, swing.tau)
weightless = acceleration_causes(arm, swing.q, swing.v, swing.tau, gravity=np.zeros(3))
shares = {
    "motor, α¹": (causes.moments, COLORS["vermilion"]),
    "bias forces, α²": (causes.bias_forces, COLORS["green"]),
    "Coriolis, in α³": (weightless.bias_accelerations, COLORS["sky"]),
    "gravity, in α³": (causes.bias_accelerations - weightless.bias_accelerations, COLORS["blue"]),
}
acceleration = forward_dynamics(arm, swing.q, swing.v, swing.tau)
assert np.allclose(sum(share for share, _ in shares.values()), acceleration, rtol=1e-10, atol=1e-9)

# %%
# At rest only gravity acts. As the rods gather speed, the bias forces and the Coriolis accelerations come to
# dominate the outer hinges, often one against the other; the motor at the first hinge reaches the tip through two
# free ones.

figure = plt.figure(figsize=(10, 6.2))
left, right = figure.subfigures(1, 2, width_ratios=(1, 2.1))
ax = left.subplots()
for i in range(0, 121, 24):
    draw_system(ax, arm, swing.q[i], color=str(0.85 - 0.7 * i / 120), linewidth=2.2)
ax.set(aspect="equal", xlabel="x [m]", ylabel="z [m]", title="every 0.24 s, darkening")

axes = right.subplots(3, 1, sharex=True)
for k, ax in enumerate(axes):
    for name, (share, color) in shares.items():
        ax.plot(t, share[:, k], color=color, linewidth=1.6, label=name)
    ax.plot(t, acceleration[:, k], "k", linewidth=2.2, alpha=0.8, label="sum")
    ax.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    ax.set(ylabel=f"hinge {k + 1} [rad/s²]", xlim=(0, 2))
axes[-1].set_xlabel("time [s]")
right.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=5)

plt.show()
