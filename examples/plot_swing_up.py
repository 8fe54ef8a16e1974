r"""
An acrobot swings up
====================

Two links hang from a bar, with a motor at the elbow alone, which is too weak to lift them. :func:`kfdyn.plan_motion`
finds out by itself that they must swing. The goal is a reading of the last step, a torque at its limit is a hinge that
is locked, and the shoulder without a motor is noise of variance 0.
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
# "Up and at rest" is meant to 0.03 rad and rad/s. The weaker the motor, the longer the links must swing.

bot, dt, S = kf.models.double_pendulum(), 0.02, kf.sensors
hanging, up, still = np.zeros(2), np.array([np.pi, 0.0]), np.zeros(2)
goals = [kf.Goal(S.JointPosition(1e-3), up), kf.Goal(S.JointVelocity(1e-3), still)]
plans = {}
for limit, steps in ((None, 150), (8.0, 200), (5.0, 250)):
    name = "no limit" if limit is None else f"at most {limit:g} N m"
    plan = kf.plan_motion(bot, dt, steps, hanging, still, goals, [0.0, 100.0], torque_limits=limit)
    plans[name] = plan
    print(f"{name:17} {plan.message}; largest torque {np.abs(plan.tau).max():.1f} N m")
    assert plan.converged and np.abs(plan.q[-1] - up).max() < 0.15
    assert limit is None or np.abs(plan.tau).max() <= limit * (1 + 1e-12)

lift = np.abs(kf.gravity_torques(bot, np.array([0.5 * np.pi, 0.0]))).max()
print(f"the weight, held level, takes {lift:.1f} N m at the bar")

# %%
# Does it work under the law?
# ---------------------------
#
# A motion like this magnifies every error. The torques alone do not bring a robot up that starts one degree beside;
# with the gains of the plan it arrives.

plan = plans["at most 8 N m"]
aside = hanging + np.radians([1.0, -1.0])
ends = {}
for name, law in (
    ("torques alone", lambda k, q, v: plan.tau[min(k, len(plan.tau) - 1)]),
    ("with its gains", lambda k, q, v: np.clip(plan.control(k, q, v), -8.0, 8.0)),
):
    run = kf.simulate(bot, aside, still, plan.t, lambda t, q, v, law=law: law(round(t / dt), q, v), method="euler")
    ends[name] = np.abs(run.q[-1] - up).max()
    print(f"{name:15} ends {np.degrees(ends[name]):.1f} degrees beside")
assert ends["with its gains"] < 0.2 * ends["torques alone"]

# %%
# The figure
# ----------

figure, axes = plt.subplots(2, 3, figsize=(11, 5.4), layout="constrained", height_ratios=(1.5, 1))
for column, (name, plan) in zip(axes.T, plans.items()):
    room, torque = column
    elbow = kf.frame_pose(bot, plan.q, "lower").position
    arm = np.stack([plan.q[:, 0] + plan.q[:, 1], np.zeros(len(plan.q))], axis=1)
    tip = elbow + (kf.frame_pose(bot, arm, "lower").position - kf.frame_pose(bot, 0 * arm, "upper").position)
    for k in range(0, len(plan.q), 5):
        shade = 0.15 + 0.7 * k / len(plan.q)
        points = np.stack([np.zeros(3), elbow[k], tip[k]])
        room.plot(points[:, 0], points[:, 2], color=COLORS["blue"], alpha=shade, linewidth=1.2)
    room.plot(tip[:, 0], tip[:, 2], color=COLORS["orange"], linewidth=1.0)
    room.set(title=name, aspect="equal", xlabel="x [m]", ylabel="z [m]", xlim=(-2.2, 2.2), ylim=(-2.2, 2.2))
    torque.plot(plan.t[:-1], plan.tau[:, 1], color=COLORS["blue"])
    torque.set(xlabel="time [s]", ylabel="torque at the elbow [N m]", ylim=(-19, 19))
plt.show()
