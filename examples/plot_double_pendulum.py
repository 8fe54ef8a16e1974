r"""
A double pendulum, and what its integrators lose
================================================

Nothing drives the pendulum and nothing brakes it, so its energy should stay what it was. How far it strays measures
the integrator. Every acceleration below is one Kalman filter and one Bryson-Frazier smoother along the two links.
"""

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.dynamics.simulation.simulate import simulate
from kfdyn.viz import COLORS, STYLE, draw_system

plt.style.use(STYLE)

TONES = {"euler": COLORS["orange"], "symplectic": COLORS["green"], "rk4": COLORS["blue"]}
NAMES = {"euler": "semi-implicit Euler", "symplectic": "variational (Störmer-Verlet)", "rk4": "RK4"}

pendulum = kf.models.double_pendulum(mass=(1.0, 0.7), length=(1.0, 0.8))
q, v = np.array([2.0, 0.7]), np.zeros(2)

# %%
# The motion
# ----------
#
# scipy's DOP853 with tight tolerances serves as the truth.

t = np.linspace(0, 3, 151)
truth = simulate(pendulum, q, v, t, method="DOP853", rtol=1e-8, atol=1e-8)
print(truth.report())

elbow = kf.frame_pose(pendulum, truth.q, "lower")
bob = elbow.position + elbow.rotation @ [0.0, 0.0, -0.8]

figure, (ax, energies) = plt.subplots(1, 2, figsize=(10, 4.4), width_ratios=(1, 1.35))
ax.plot(bob[:, 0], bob[:, 2], color=TONES["rk4"], linewidth=1, alpha=0.7)
for i, shade in zip((0, 12, 22, 30), (0.9, 0.65, 0.45, 0.3)):
    draw_system(ax, pendulum, truth.q[i], color=str(1 - shade), linewidth=2.5)
ax.set(aspect="equal", xlabel="x [m]", ylabel="z [m]", title="three seconds of the lower bob")

energies.stackplot(t, truth.kinetic, truth.potential - truth.potential.min(), colors=["#8CC8EC", "#F3EBB0"])
energies.plot(t, truth.energy - truth.potential.min(), "k", linewidth=2)
energies.text(0.62, 10, "kinetic", fontsize=11)
energies.text(0.1, 0.75 * (truth.energy[0] - truth.potential.min()), "potential", fontsize=11)
energies.set(xlabel="time [s]", ylabel="energy [J]", xlim=(0, 3), title="energy")

# %%
# Energy over time, and against the step
# --------------------------------------
#
# At the same step of 20 ms, Euler's energy is soon off by more than a tenth. The variational step is symplectic: its
# error comes and goes and does not grow, however long the motion. RK4 is far more accurate, but what it loses, it
# loses for good. On the right the step is halved again and again: the slopes are the orders 1, 2 and 4.

figure, (over_time, over_step) = plt.subplots(1, 2, figsize=(10, 4.2))
scale = truth.kinetic.max()
for method in ("euler", "symplectic", "rk4"):
    moved = simulate(pendulum, q, v, t, method=method)
    error = np.abs(moved.energy_drift[1:]) / scale
    over_time.semilogy(t[1:], error, color=TONES[method], linewidth=1.4, label=NAMES[method])
over_time.set(xlabel="time [s]", ylabel="|energy error| / largest kinetic energy", xlim=(0, 3), title="steps of 20 ms")
over_time.legend(loc="lower right", fontsize=9)

steps = np.array([24, 48, 96])
for method, order in (("euler", 1), ("symplectic", 2), ("rk4", 4)):
    worst = [simulate(pendulum, q, v, np.linspace(0, 0.8, n + 1), method=method).worst_energy_drift for n in steps]
    over_step.loglog(0.8 / steps, worst, "o-", color=TONES[method])
    assert abs(np.polyfit(np.log(1 / steps), np.log(worst), 1)[0] - order) < 0.3
    guide = worst[-1] * (steps[-1] / steps) ** order
    over_step.loglog(0.8 / steps, guide, ":", color="0.5", linewidth=1)
    over_step.annotate(f"$h^{order}$", (0.8 / steps[0], guide[0]), xytext=(5, 0), textcoords="offset points")
over_step.set(xlabel="step [s]", title="worst error in 0.8 s")
over_step.margins(x=0.12)
over_step.set_xticks(0.8 / steps, [f"{0.8 / n:.2g}" for n in steps])
over_step.minorticks_off()

plt.show()
