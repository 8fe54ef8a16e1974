r"""
An arm from rest to rest
========================

A PUMA shall move from one pose to another, come to rest there exactly, and pass a point in space on its way.
:func:`kfdyn.plan_motion` reads this as estimation: torques are noise, goals are readings, and a goal that must be met
is a reading without noise. No weight is tuned until the arm happens to arrive.
"""

import importlib.metadata
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

# %%
# The plan
# --------

arm, dt, steps = kf.models.puma560(), 0.01, 100
start, end, still = np.zeros(6), np.array([0.9, -0.6, 0.7, 0.3, -0.4, 0.2]), np.zeros(6)
point = kf.frame_pose(arm, 0.5 * end, "link_6").position + np.array([0.0, 0.0, 0.12])

S = kf.sensors
rest = [kf.Goal(S.JointPosition(0.0), end), kf.Goal(S.JointVelocity(0.0), still)]
effort = np.square([10.0, 10.0, 10.0, 2.0, 2.0, 2.0])
plans = {
    "rest to rest": kf.plan_motion(arm, dt, steps, start, still, rest, effort),
    "through a point": kf.plan_motion(
        arm, dt, steps, start, still, [*rest, kf.Goal(S.Position("link_6", 0.0), point, at=50)], effort
    ),
}

# %%
# Does it arrive?
# ---------------
#
# The torques alone are given to the simulator. Nothing corrects them on the way.

hands = {}
for name, plan in plans.items():
    tau = plan.tau
    run = kf.simulate(
        arm, start, still, plan.t, lambda t, q, v, tau=tau: tau[min(round(t / dt), steps - 1)], method="euler"
    )
    hands[name] = kf.frame_pose(arm, run.q, "link_6").position
    missed, moving = np.abs(run.q[-1] - end).max(), np.abs(run.v[-1]).max()
    print(f"{name:16} {plan.message}; misses by {missed:.0e} rad, still moves at {moving:.0e} rad/s")
    assert plan.converged and missed < 1e-12 and moving < 1e-12
assert np.abs(hands["through a point"][50] - point).max() < 1e-12
assert plans["through a point"].cost > plans["rest to rest"].cost  # another goal is never free

# %%
# Another arm takes another file. This is a UR5 that may use 40 % of the torques that its file allows, and does:

listed = importlib.metadata.files("example-robot-data") or []
file = next(Path(str(one.locate())) for one in listed if one.name == "ur5_robot.urdf")
ur5 = kf.load(file)
first, last = np.array([0.0, -1.2, 1.0, -1.0, -1.5, 0.0]), np.array([1.0, -0.6, 0.6, -1.5, -1.5, 0.5])
rest = [kf.Goal(S.JointPosition(0.0), last), kf.Goal(S.JointVelocity(0.0), still)]
plan = kf.plan_motion(ur5, dt, steps, first, still, rest, np.full(6, 100.0), torque_limits=0.4 * ur5.effort)
run = kf.simulate(ur5, first, still, plan.t, lambda t, q, v: plan.tau[min(round(t / dt), steps - 1)], method="euler")
missed, share = np.abs(run.q[-1] - last).max(), np.abs(plan.tau / ur5.effort).max()
print(f"{'UR5':16} {plan.message}; misses by {missed:.0e} rad, with {100 * share:.0f} % of its torques at most")
assert plan.converged and missed < 1e-12 and np.abs(run.v[-1]).max() < 1e-12 and abs(share - 0.4) < 1e-12

# %%
# The figure
# ----------

figure = plt.figure(figsize=(11, 4.6), layout="constrained")
room = figure.add_subplot(1, 2, 1, projection="3d")
right = figure.add_gridspec(2, 2)
speed, torque = figure.add_subplot(right[0, 1]), figure.add_subplot(right[1, 1])
for (name, plan), color, line in zip(plans.items(), ("blue", "orange"), ("-", "--")):
    room.plot(*hands[name].T, color=COLORS[color], linestyle=line, label=name)
    speed.plot(plan.t, plan.v[:, :3], color=COLORS[color], linestyle=line, linewidth=1.2)
    torque.plot(plan.t[:-1], plan.tau[:, :3], color=COLORS[color], linestyle=line, linewidth=1.2)
room.scatter(*hands["rest to rest"][[0, -1]].T, color=COLORS["grey"], s=20)
room.scatter(*point, color=COLORS["vermilion"], marker="*", s=70, label="the point")
room.set(title="The hand of a PUMA", xlabel="x [m]", ylabel="y [m]", zlabel="z [m]")
room.legend(loc="upper left")
speed.set(title="The first three joints", ylabel="velocity [rad/s]")
torque.set(xlabel="time [s]", ylabel="torque [N m]")
plt.show()
