r"""
Free, locked and driven: which measurements are there
=====================================================

A hinge without a rotor that is free to move measures one component of the force that passes through it, perfectly:
the torque is what it is. Lock the hinge, and the torque becomes whatever it takes: the measurement is *missing*.
Prescribe its motion, and the measurement is missing too, but the co-state gets a known input :math:`H^* a`. The filter
needs no other change:

.. math::

   \text{free:}\quad P^+ = P - G D G^*; \qquad
   \text{locked or driven:}\quad P^+ = P, \quad z^+ = z + P\,(H^* a + \eta) .
"""

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.dynamics import as_estimation, composite_inertias
from kfdyn.viz import COLORS, STYLE, draw_system

plt.style.use(STYLE)

# %%
# Three arms that fall
# --------------------
#
# Two rods start level. At the shoulder nothing drives the arm. Its elbow is free, or locked, or made to swing by a
# motor that has been told how to move but not how hard to push: hybrid dynamics finds the torque.

rods = kf.models.uniform_chain(2, hinge=kf.Hinge.revolute([0, 1, 0]))
arm = kf.System(rods.bodies, frames={"tip": kf.Frame("rod_1", position=[1, 0, 0])})
q0, v0 = np.zeros(2), np.zeros(2)
ELBOW = np.array([False, True])
RATE = 9.0


def driven(t):
    """Acceleration of the driven elbow: it swings between 0 and −1.6 rad."""
    return -0.8 * RATE**2 * np.cos(RATE * t)


def elbow_torque(acceleration):
    """A law of torques that gives the elbow this acceleration and the shoulder none."""

    def law(t, q, v):
        a = np.array([np.nan, acceleration(t)])
        return kf.hybrid_dynamics(arm, q, v, [0.0, np.nan], a, prescribed=ELBOW)[0]

    return law


t = np.linspace(0, 0.7, 71)
laws = {"free": None, "locked": elbow_torque(lambda t: 0.0), "driven": elbow_torque(driven)}
falls = {name: kf.simulate(arm, q0, v0, t, law) for name, law in laws.items()}
assert np.allclose(falls["locked"].q[:, 1], 0, atol=1e-10)
assert np.allclose(falls["driven"].q[:, 1], -0.8 * (1 - np.cos(RATE * t)), atol=1e-6)
assert np.abs(falls["free"].tau).max() == 0

# %%
# What the filter sees
# --------------------
#
# The shoulder feels the articulated inertia if the elbow is free, and the composite inertia if its motion is
# prescribed: with its measurements missing, the Riccati equation is the Lyapunov equation. In the filter a missing
# measurement is a NaN.

bent = np.array([0.0, 0.6])
ss = as_estimation(arm, bent)
free = kf.kalman_filter(ss, [0.0, 0.0])
missing = kf.kalman_filter(ss, [0.0, np.nan])
composite = composite_inertias(ss)
assert np.array_equal(missing.P_plus[1], missing.P[1])
assert np.allclose(missing.P[0], composite[0], rtol=1e-12)
assert np.allclose(ss.H[1] @ free.P_plus[1], 0, atol=1e-12)  # a perfect measurement leaves no doubt

angles = np.linspace(-np.pi, np.pi, 121)
felt = np.empty((2, angles.size))
for i, angle in enumerate(angles):
    model = as_estimation(arm, [0.0, angle])
    felt[:, i] = [kf.kalman_filter(model, [0.0, elbow]).D[0].item() for elbow in (0.0, np.nan)]
assert (felt[0] <= felt[1] + 1e-12).all()

# %%
# The figure
# ----------

shade = {"free": COLORS["blue"], "locked": COLORS["orange"], "driven": COLORS["green"]}
figure, (above, (angle, torque, inertia)) = plt.subplots(2, 3, figsize=(11, 6.4), height_ratios=(1.25, 1))
for ax, (name, fall) in zip(above, falls.items()):
    for i in range(0, t.size, 10):
        draw_system(ax, arm, fall.q[i], color=shade[name], linewidth=2.4, alpha=0.2 + 0.8 * i / t.size)
    ax.set(title=f"elbow {name}", xlabel="x [m]", xlim=(-0.75, 2.2), ylim=(-2.15, 0.2))
    ax.set_aspect("equal", adjustable="box")  # the same limits for all three
above[0].set_ylabel("z [m], every 0.1 s")
for name, fall in falls.items():
    angle.plot(t, fall.q[:, 1], color=shade[name], label=name)
    torque.plot(t, fall.tau[:, 1], color=shade[name], label=name)
angle.set(xlabel="time [s]", ylabel="elbow [rad]", title="what the elbow does")
torque.set(xlabel="time [s]", ylabel="torque [N m]", title="what it takes")
angle.legend(loc="lower left")
inertia.plot(np.degrees(angles), felt[0], color=COLORS["blue"], label="elbow measured (free)")
inertia.plot(np.degrees(angles), felt[1], color=COLORS["orange"], label="elbow missing (locked, driven)")
inertia.set(xlabel="elbow [°]", ylabel="D of the shoulder [kg m²]", title="inertia that the shoulder feels")
inertia.set(xticks=[-180, -90, 0, 90, 180], ylim=(0, 3.6))
inertia.legend(loc="upper left")

plt.show()
