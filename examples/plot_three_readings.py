r"""
One problem, read three times
=============================

A quadratic problem on a chain is solved once, and read as three things:

* a **plan**: a car must come near the line and stop, with little force;
* a **robot**: a chain of bodies, whose base is accelerated and whose joints give way;
* a **series**: noisy readings of a random walk with drift, smoothed.

They are not alike, they are the same: one quadratic form, one set of numbers. The weight of a control is the inertia of
a rotor in the second reading, and the inverse of a noise's variance in the third.
"""

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

# %%
# The plan
# --------
#
# Position and speed of a car, pushed by a force. It starts three metres away.

dt, N = 0.1, 40
A, B = np.array([[1.0, dt], [0.0, 1.0]]), np.array([[0.5 * dt**2], [dt]])
Q, R = np.diag([1.0, 0.2]), np.array([[0.3]])
x0 = np.array([-3.0, 0.0])
plan = kf.lqr(A, B, Q, R, x0, steps=N)

# %%
# The robot
# ---------
#
# Each step is a body with two directions to move in. Its inertia is Q, its joint pushes along B, its rotor weighs R,
# and its parent is the step before. The base is accelerated by :math:`A x_0`, and no joint is driven. Nothing below
# knows of plans.

robot = kf.StateSpace(
    kf.Tree(np.arange(-1, N - 1)),
    phi=[None] + [A.T] * (N - 1),
    H=[B.T] * N,
    Q=[Q] * N,
    R=[R] * N,
)
base = np.zeros(2 * N)
base[:2] = A @ x0
fall = kf.bryson_frazier(robot, kf.kalman_filter(robot, np.zeros(N), eta=base))

# %%
# The series
# ----------
#
# Now time runs forward, the control is noise of variance 1/R, and "the car should be at 0, and at rest" is a reading of
# 0 at each step, with covariance :math:`Q^{-1}`. The state after the first step scatters as the first force does.

series = kf.StateSpace.chain(
    A, np.eye(2), B @ np.linalg.inv(R) @ B.T, np.linalg.inv(Q), A @ x0, B @ np.linalg.inv(R) @ B.T, steps=N
)
smooth = kf.bryson_frazier(series, kf.kalman_filter(series, np.zeros(2 * N)))
pushed = np.array([(np.linalg.inv(R) @ B.T @ costate).item() for costate in smooth.costate])

# %%
# The same numbers
# ----------------

states = {"optimal plan": plan.x, "accelerated robot": fall.costate.stacked(), "smoothed series": smooth.x.stacked()}
forces = {"optimal plan": plan.u[:, 0], "accelerated robot": fall.a, "smoothed series": pushed}
for name in states:
    print(
        f"{name:18} differs by {np.abs(states[name] - plan.x).max():.0e} in states,"
        f" {np.abs(forces[name] - plan.u[:, 0]).max():.0e} in forces"
    )
    assert np.abs(states[name] - plan.x).max() < 1e-12
    assert np.abs(forces[name] - plan.u[:, 0]).max() < 1e-12

# %%
# What is seen of the filter differs, since the second runs back in time and the third forward: the articulated inertia
# of the robot is what the *future* costs, the covariance of the series what the *past* has told. The smoother needs
# both directions, and forgets which came first.

steps = np.arange(1, N + 1)
words = {
    "optimal plan": ("position x(k) [m]", "force u(k) [N]"),
    "accelerated robot": ("acceleration of body k", "acceleration of joint k"),
    "smoothed series": ("smoothed level", "disturbance (co-state)"),
}
figure, axes = plt.subplots(2, 3, figsize=(11, 5.2), sharex=True, layout="constrained")
std = np.sqrt([S[0, 0] for S in smooth.S])
for column, (name, color) in enumerate(zip(words, ("blue", "orange", "green"))):
    level, force = axes[:, column]
    if name == "accelerated robot":
        level.vlines(steps, 0, states[name][:, 0], color=COLORS[color], linewidth=1.5)
        level.plot(steps, states[name][:, 0], "s", color=COLORS[color], markersize=3.5)
        force.bar(steps, forces[name], width=0.7, color=COLORS[color])
    else:
        level.plot(steps, states[name][:, 0], color=COLORS[color])
        force.plot(steps, forces[name], color=COLORS[color])
    if name == "smoothed series":
        low, high = states[name][:, 0] - 2 * std, states[name][:, 0] + 2 * std
        level.fill_between(steps, low, high, color=COLORS[color], alpha=0.2, linewidth=0, label="two deviations")
        level.plot(steps, np.zeros(N), ".", color=COLORS["grey"], markersize=3, label="readings")
        level.legend()
    level.axhline(0, color=COLORS["grey"], linewidth=0.6)
    force.axhline(0, color=COLORS["grey"], linewidth=0.6)
    level.set(title=name, ylabel=words[name][0])
    level.set(ylim=(-3.4, 1.2))
    force.set(xlabel="body" if column == 1 else "step", ylabel=words[name][1])
plt.show()
