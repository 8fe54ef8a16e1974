r"""
A humanoid in flight
====================

A humanoid jumps from a run, tucks, turns over and opens again. In the air nothing touches it: no camera sees it, no
foot stands, and an accelerometer does not even feel gravity. What it has is an inertial unit in its trunk, whose two
sensors are biased, encoders, and motors whose torques are read but are not quite those that were ordered.

What is left is mechanics. Nothing pushes the whole, so its mass centre follows a parabola and its angular momentum
stays what it is, whatever limbs do. :class:`kfdyn.MotionModel` knows that, because its step is the robot's own
dynamics: the random forces act at the motors, and their variance at the base is *zero*. As the robot tucks, its inertia
changes and the momentum does not; that tells the gyroscope's bias, which no pose and no floor could tell here.

MuJoCo is the plant.
"""

import matplotlib.pyplot as plt
import mujoco
import numpy as np

import kfdyn as kf
from kfdyn.viz import COLORS, STYLE, draw_system

plt.style.use(STYLE)
rng = np.random.default_rng(1)

# %%
# The plant
# ---------
#
# A trunk with a head, two arms and two legs, motors at all hinges, damping in them, an inertial unit on the chest.


def limb(name, at, upper, lower):
    """An arm or a leg: a joint with two axes, a rod, a joint with one, a rod."""
    rod = '<geom type="capsule" size=".045" fromto="0 0 0 0 0 {}" mass="{}"/>'
    return f"""<body name="{name}_upper" pos="{at}"><joint name="{name}_swing" axis="0 1 0"/>
    <joint name="{name}_spread" axis="1 0 0"/>{rod.format(-upper, 4)}
    <body name="{name}_lower" pos="0 0 {-upper}"><joint name="{name}_bend" axis="0 1 0"/>
    {rod.format(-lower, 3)}</body></body>"""


limbs = limb("left_arm", "0 .25 .25", 0.3, 0.28) + limb("right_arm", "0 -.25 .25", 0.3, 0.28)
limbs += limb("left_leg", "0 .1 -.3", 0.42, 0.42) + limb("right_leg", "0 -.1 -.3", 0.42, 0.42)
parts = [f"{side}_{part}" for part in ("arm", "leg") for side in ("left", "right")]
joints = ["neck", *(f"{name}_{axis}" for name in parts for axis in ("swing", "spread", "bend"))]
dt = 0.004
text = f"""<mujoco><option timestep="{dt}" integrator="RK4"><flag contact="disable"/></option>
<default><joint damping="1" armature=".05"/></default>
<worldbody><body name="trunk" pos="0 0 1.2"><freejoint name="float"/><geom type="box" size=".1 .18 .3" mass="25"/>
<site name="chest" pos=".1 0 .1" euler="0 0 30"/>
<body name="head" pos="0 0 .35"><joint name="neck" axis="0 1 0"/><geom type="sphere" size=".11" pos="0 0 .1" mass="4"/>
</body>{limbs}</body></worldbody>
<actuator>{"".join(f'<motor joint="{name}"/>' for name in joints)}</actuator>
<sensor><gyro site="chest"/><accelerometer site="chest"/></sensor></mujoco>"""
model = mujoco.MjModel.from_xml_string(text)
plant, robot = mujoco.MjData(model), kf.load(text)

# %%
# The flight
# ----------
#
# It leaves the ground from a run, turning forward, tucks for a third of a second, and opens. Motors give what was
# ordered ± 2 N m; nobody else acts.

TUCKED = {"swing": {"arm": -0.6, "leg": -2.0}, "bend": {"arm": -0.8, "leg": 2.1}, "spread": {"arm": 0.0, "leg": 0.0}}


def pose(t):
    """Angles of the joints that the motors go for."""
    tuck = np.clip(t / 0.15, 0, 1) * np.clip((0.6 - t) / 0.15, 0, 1)
    names = (name.split("_") for name in joints[1:])
    return np.array([0.5 * tuck, *(tuck * TUCKED[axis][part] for _, part, axis in names)])


N, noisy = 180, 2.0
t = dt * np.arange(N)
plant.qvel[:6] = 6.0, 0.0, 3.6, 0.3, 5.0, -0.2
states, ordered, felt, imu = [], [], [], []
for k in range(N):
    wanted = np.clip(250.0 * (pose(t[k]) - plant.qpos[7:]) - 22.0 * plant.qvel[6:], -150, 150)
    plant.ctrl[:] = wanted + noisy * rng.normal(size=len(joints))
    mujoco.mj_forward(model, plant)
    states.append(kf.from_mujoco(robot, model, plant.qpos, plant.qvel))
    orders = kf.from_mujoco(robot, model, plant.qpos, plant.qvel, None, np.r_[np.zeros(6), wanted])
    torque = kf.from_mujoco(robot, model, plant.qpos, plant.qvel, None, plant.qfrc_actuator)
    ordered.append(orders.tau)
    felt.append(torque.tau)
    imu.append(plant.sensordata.copy())
    mujoco.mj_step(model, plant)
q, v = np.array([one.q for one in states]), np.array([one.v for one in states])
ordered, felt, imu = np.array(ordered), np.array(felt), np.array(imu)

# %%
# What the robot knows
# --------------------
#
# Encoders to a milliradian, torques to 1 N m, a cheap inertial unit with biases of 0.2 rad/s and 0.3 m/s², of which
# nobody has told it, and how it left the ground: within a centimetre, half a degree, 0.1 m/s and 0.1 rad/s.

base, *hinges = robot.hinge_names
driven = np.ones(robot.nv, bool)
driven[robot.v_slice(base)] = False
GYRO, ACC = np.array([0.1, -0.2, 0.15]), np.array([0.3, -0.2, 0.25])
S = kf.sensors
sensors = [
    S.JointPosition(0.001**2, hinges=hinges, name="encoders"),
    S.JointTorque(1.0**2, hinges, name="torques"),
    S.Gyroscope("chest", 0.02**2, name="gyroscope"),
    S.Accelerometer("chest", 0.2**2, name="accelerometer"),
]
moves = kf.MotionModel(
    robot, dt, sensors, np.where(driven, noisy**2, 0.0), method="rk4", damping=True,
    biases={"gyroscope": (0.3**2, 1e-10), "accelerometer": (0.5**2, 1e-10)},
)  # fmt: skip
angles = np.concatenate([q[:, robot.q_slice(name)] for name in hinges], axis=1)
torques = np.concatenate([felt[:, robot.v_slice(name)] for name in hinges], axis=1)
clean = [angles, torques, imu[:, :3] + GYRO, imu[:, 3:] + ACC]
readings = [x + np.sqrt(sensor.cov) * rng.normal(size=x.shape) for x, sensor in zip(clean, sensors)]

at_start = np.concatenate([np.full(robot.nv, 0.01), np.full(robot.nv, 0.1)])
d = at_start * rng.normal(size=2 * robot.nv)
prior = (kf.integrate(robot, q[0], d[: robot.nv]), v[0] + d[robot.nv :], at_start**2)

# %%
# One call
# --------

post = kf.iterated_kalman_smoother(moves, readings, tau=ordered, prior=prior)
print(post.message)
assert post.converged
for name, true in (("gyroscope", GYRO), ("accelerometer", ACC)):
    found, sure = post.biases[name][-1], post.std(name)[-1]
    print(f"bias of the {name}: {found.round(3)} ± {sure.round(3)}, true {true}")
    assert (np.abs(found - true) < 3.5 * sure).all()
filt = kf.extended_kalman_filter(moves, readings, tau=ordered, prior=prior)

# %%
# Without mechanics
# -----------------
#
# The usual way turns the first attitude by what the gyroscope reads. Errors of attitude are rotations from the true to
# the found one.

turn = robot.q_slice(base)
body = robot.v_slice(base)
R = kf.frame_pose(robot, q[:1], "chest").rotation[0].T @ kf.frame_pose(robot, q[:1], "trunk").rotation[0]
reckoned = np.tile(prior[0], (N, 1))
for k in range(N - 1):
    rate = np.zeros(robot.nv)
    rate[body][:3] = R.T @ readings[2][k]
    reckoned[k + 1] = kf.integrate(robot, reckoned[k], dt * rate)


def turned(found):
    """By how many degrees an attitude is off."""
    return np.degrees(np.linalg.norm(kf.difference(robot, q, found)[:, body][:, :3], axis=1))


errors = {"gyroscope alone": turned(reckoned), "extended filter": turned(filt.q), "smoother": turned(post.q)}
for name, error in errors.items():
    print(f"{name}: {error[-1]:.1f}° off at the end")
assert errors["smoother"][-1] < 0.5 * errors["gyroscope alone"][-1]
inside = np.abs(post.v - v) < 1.96 * post.std("v")
print(f"{100 * inside.mean():.0f} % of all velocities lie in their 95 % bands")
assert inside.mean() > 0.85

# %%
# The figure
# ----------
#
# The bias is hardly known while the body is stretched: reading and momentum are then two unknowns of one kind. It is
# told by the change of inertia, when the body tucks.

figure = plt.figure(figsize=(10, 7.4), layout="constrained")
grid = figure.add_gridspec(2, 2, height_ratios=(1.1, 1))
above, left, right = figure.add_subplot(grid[0, :]), figure.add_subplot(grid[1, 0]), figure.add_subplot(grid[1, 1])
for k in np.linspace(0, N - 1, 6).astype(int):
    draw_system(above, robot, q[k], color=COLORS["pale"], linewidth=5.0)
    draw_system(above, robot, post.q[k], color=COLORS["blue"], linewidth=1.5)
above.plot(*kf.center_of_mass(robot, post.q)[:, [0, 2]].T, color=COLORS["blue"], linestyle=":", linewidth=1.2)
above.set(aspect="equal", xlabel="x [m]", ylabel="z [m]", title="A leap, true (pale) and found (blue)")
for (name, error), color in zip(errors.items(), ("orange", "sky", "blue")):
    left.plot(t, error, color=COLORS[color], label=name)
left.set(xlabel="time [s]", ylabel="attitude off by [degrees]", xlim=(0, t[-1]), ylim=(0, None))
left.legend(loc="upper left")
for i, color in enumerate(("blue", "orange", "green")):
    bias, sure = filt.biases["gyroscope"][:, i], filt.std("gyroscope")[:, i]
    right.fill_between(t, bias - 2 * sure, bias + 2 * sure, color=COLORS[color], alpha=0.2, linewidth=0)
    right.plot(t, bias, color=COLORS[color], label=f"about {'xyz'[i]}")
    right.axhline(GYRO[i], color=COLORS[color], linestyle="--", linewidth=1.0)
right.set(xlabel="time [s]", ylabel="gyroscope's bias [rad/s]", xlim=(0, t[-1]), ylim=(-0.5, 0.5))
right.legend(loc="upper right", ncols=3)
plt.show()
