r"""
Estimate and control in one loop
================================

A Panda moves its hand and is given a weight on the way, of which nobody tells it. Its encoders are noisy, and there are
no tachometers. A Kalman filter over time (:class:`kfdyn.OnlineFilter`) estimates velocities, and a force at the hand
that walks at random; a plan in a receding horizon (:class:`kfdyn.Mpc`) moves the arm. Both are the same filter, over
the same model of the motion: one reads what was, the other what shall be.

MuJoCo is the plant, with its own integrator in steps of two milliseconds.
"""

import importlib.metadata
import re
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import mujoco
import numpy as np

import kfdyn as kf
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

# %%
# The arm, and the plant
# ----------------------
#
# The fingers do not matter here and are fixed. MuJoCo is given the same file, and a weight of 2 kg that the last link
# carries from the moment of one second on.

listed = importlib.metadata.files("example-robot-data") or []
file = next(Path(str(one.locate())) for one in listed if one.name == "panda.urdf")
text = re.sub(r"<mimic[^>]*>", "", file.read_text().replace('type="prismatic"', 'type="fixed"'))
with tempfile.TemporaryDirectory() as folder:
    (Path(folder) / "panda.urdf").write_text(text)
    arm = kf.load(Path(folder) / "panda.urdf")
    kf.save_urdf(arm, Path(folder) / "plain.urdf")
    plain = (Path(folder) / "plain.urdf").read_text()

HAND, WEIGHT, GIVEN, AT = "panda_link7", 2.0, 1.0, np.array([0.0, 0.0, 0.15])
dt, ticks = 0.01, 300


def plant():
    """The arm in MuJoCo."""
    model = mujoco.MjModel.from_xml_string(plain)
    model.opt.timestep = 0.002
    return model, mujoco.MjData(model)


def load(model):
    """Give it the weight: a point that the last body carries."""
    body = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, HAND)
    R = np.empty(9)
    mujoco.mju_quat2Mat(R, model.body_iquat[body])
    R = R.reshape(3, 3)
    m, c = model.body_mass[body], model.body_ipos[body].copy()
    inertia = R @ np.diag(model.body_inertia[body]) @ R.T
    middle = (m * c + WEIGHT * AT) / (m + WEIGHT)
    for mass, place in ((m, c), (WEIGHT, AT)):
        d = place - middle
        inertia += mass * (d @ d * np.eye(3) - np.outer(d, d))
    values, axes = np.linalg.eigh(inertia)
    axes[:, 0] *= np.sign(np.linalg.det(axes))
    model.body_mass[body], model.body_ipos[body], model.body_inertia[body] = m + WEIGHT, middle, values
    mujoco.mju_mat2Quat(model.body_iquat[body], axes.ravel())
    mujoco.mj_setConst(model, mujoco.MjData(model))


# %%
# The loop
# --------
#
# Where the weight is known to be carried, its force and the torques that hold it are one Jacobian apart. "About a
# newton a tick" is how fast the force may change, and 0.5 mrad what the encoders are good for.

start = np.array([0.0, -0.6, 0.0, -2.2, 0.0, 1.7, 0.8])
target = start + np.array([0.6, 0.4, -0.2, 0.3, 0.2, -0.3, 0.3])
still, S = np.zeros(arm.nv), kf.sensors
goals = [kf.Goal(S.JointPosition(1e-3), target, at="always"), kf.Goal(S.JointVelocity(1e-2), still, at="always")]
most = np.array([40.0, 50.0, 40.0, 40.0, 10.0, 10.0, 10.0])


def run(knows_of_forces):
    """Positions of the plant, the estimated vertical force and its deviation, and torques."""
    rng = np.random.default_rng(0)
    model, data = plant()
    data.qpos[:] = start
    push = {HAND: ([1e-6] * 3 + [1e-2] * 3, [1e-6] * 3 + [1.0] * 3)} if knows_of_forces else {}
    moves = kf.MotionModel(
        arm, dt, [S.JointPosition(2.5e-7)], force_noise=np.full(7, 0.04), wrenches=push, prior=(start, still, None)
    )
    size = 14 + 6 * len(push)
    P0 = np.diag(np.r_[np.full(7, 1e-6), np.full(7, 1e-8), np.full(size - 14, 1e-2)])
    live = kf.OnlineFilter(moves, prior=(np.r_[start, still, np.zeros(size - 14)], P0))
    ahead = kf.Mpc(arm, dt, 25, goals, np.full(7, 400.0), torque_limits=most)
    q_all, force, spread, torques = [], [], [], []
    for k in range(ticks):
        reading = data.qpos + 5e-4 * rng.normal(size=7)
        live.step([reading])
        x = live.x
        tau = ahead.step(x[:7], x[7:14])
        if knows_of_forces:
            J = kf.jacobian(arm, x[:7], HAND)
            tau = np.clip(tau - J.T @ x[14:], -most, most)
            force.append(x[19])
            spread.append(np.sqrt(live.cov[19, 19]))
        live.act(tau)
        if k == round(GIVEN / dt):
            load(model)
        for _ in range(5):
            data.qfrc_applied[:] = tau
            mujoco.mj_step(model, data)
        q_all.append(data.qpos.copy())
        torques.append(tau)
    return np.array(q_all), np.array(force), np.array(spread), np.array(torques)


runs = {"plans alone": run(False), "a force at the hand, too": run(True)}
t = dt * np.arange(1, ticks + 1)
hands = {name: kf.frame_pose(arm, q, HAND).position for name, (q, *_) in runs.items()}
there = kf.frame_pose(arm, target, HAND).position
beside = {name: 1000 * np.linalg.norm(hand[-1] - there) for name, hand in hands.items()}
for name, far in beside.items():
    print(f"{name:24} the hand ends {far:.1f} mm beside")
_, force, spread, torques = runs["a force at the hand, too"]
weighed = -force[-50:].mean() / 9.81
print(f"the weight is estimated as {weighed:.2f} kg; it is {WEIGHT:g} kg")
assert beside["a force at the hand, too"] < 15.0 < 100.0 < beside["plans alone"] and abs(weighed - WEIGHT) < 0.4
assert (np.abs(torques) <= most).all()

# %%
# A plan that knows nothing of the weight bends: it has no integral that would push back. What the filter estimates as a
# force is that integral, with a covariance, and it is told in newtons.

figure, (height, weight, torque) = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
for (name, hand), color in zip(hands.items(), ("orange", "blue")):
    height.plot(t, hand[:, 2], color=COLORS[color], label=name)
height.axhline(there[2], color=COLORS["grey"], linewidth=1.0)
height.set(title="Height of the hand", xlabel="time [s]", ylabel="z [m]")
height.legend(loc="lower left")
weight.fill_between(t, force - 2 * spread, force + 2 * spread, color=COLORS["blue"], alpha=0.25, linewidth=0)
weight.plot(t, force, color=COLORS["blue"])
weight.plot(t, np.where(t > GIVEN, -9.81 * WEIGHT, 0.0), color=COLORS["grey"], linewidth=1.0)
weight.set(title="Force at the hand", xlabel="time [s]", ylabel="upwards [N]")
for i, color in zip((1, 3), ("blue", "orange")):
    torque.plot(t, torques[:, i], color=COLORS[color], label=f"joint {i + 1}")
torque.set(title="Torques, within their limits", xlabel="time [s]", ylabel="[N m]")
torque.legend()
plt.show()
