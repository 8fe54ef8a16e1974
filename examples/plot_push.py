r"""
Where was it pushed?
====================

Somebody pushes a humanoid, and no sensor is where the hand was. The joint torques and two inertial units know: with an
external force of unknown size on *one* body, the readings of a moment have a likelihood, body by body, and the right
body wins. The estimate comes with its covariance, so the force comes with its ellipsoid.

MuJoCo is the plant, and its sensors are the data, with noise added, and a bias on one of the inertial units that
nobody has told the estimator of.
"""

import matplotlib.pyplot as plt
import mujoco
import numpy as np

import kfdyn as kf
from kfdyn.viz import COLORS, STYLE, draw_ellipse, draw_system

plt.style.use(STYLE)


# %%
# The plant
# ---------
#
# A floating trunk with a head, two arms and two legs, in the air; motors at all hinges, inertial units in the trunk
# and in the head.


def limb(name, at, upper, lower):
    """An arm or a leg: a joint with two axes, a rod, a joint with one, a rod."""
    rod = '<geom type="capsule" size=".045" fromto="0 0 0 {} {} {}" mass="{}"/>'
    return f"""<body name="{name}_upper" pos="{at}"><joint name="{name}_swing" axis="0 1 0"/>
    <joint name="{name}_spread" axis="1 0 0"/>{rod.format(0, 0, -upper, 3)}
    <body name="{name}_lower" pos="0 0 {-upper}"><joint name="{name}_bend" axis="0 1 0"/>
    {rod.format(0, 0, -lower, 2)}</body></body>"""


LIMBS = ("left_arm", "right_arm", "left_leg", "right_leg")
places = ("0 .25 .25", "0 -.25 .25", "0 .1 -.3", "0 -.1 -.3")
limbs = "".join(
    limb(name, at, 0.3 if "arm" in name else 0.42, 0.28 if "arm" in name else 0.42) for name, at in zip(LIMBS, places)
)
joints = ["neck", *(f"{name}_{part}" for name in LIMBS for part in ("swing", "spread", "bend"))]
text = f"""<mujoco><option timestep="0.002" integrator="implicitfast"><flag contact="disable"/></option>
<default><joint damping="1" armature=".05"/></default>
<worldbody><body name="trunk" pos="0 0 1.3"><freejoint name="float"/><geom type="box" size=".12 .2 .3" mass="25"/>
<site name="trunk_imu" pos=".1 0 .1" euler="0 0 30"/>
<body name="head" pos="0 0 .35"><joint name="neck" axis="0 1 0"/><geom type="sphere" size=".11" pos="0 0 .1" mass="4"/>
<site name="head_imu" pos="0 .03 .15" euler="20 0 0"/></body>{limbs}</body></worldbody>
<actuator>{"".join(f'<motor joint="{j}"/>' for j in joints)}</actuator>
<sensor><accelerometer name="trunk_acc" site="trunk_imu"/><accelerometer name="head_acc" site="head_imu"/>
<frameangacc name="trunk_spin" objtype="site" objname="trunk_imu"/></sensor></mujoco>"""
model = mujoco.MjModel.from_xml_string(text)
plant = mujoco.MjData(model)
robot = kf.load(text)

PUSHED, PUSH = "left_arm_lower", np.array([45.0, 10.0, 25.0])
rng = np.random.default_rng(1)
for _ in range(150):  # a moment's motion, so that nothing is at rest
    plant.ctrl[:] = 6 * np.sin(20 * plant.time + np.arange(model.nu)) - 10 * plant.qpos[7:]
    mujoco.mj_step(model, plant)

# %%
# The readings
# ------------
#
# Twenty samples within 40 ms while the push lasts: torques ± 0.5 N m, accelerometers ± 0.1 m/s², and 0.05 m/s² of bias
# in the head. The motors' torques less the joints' damping are what the hinges feel.

SAMPLES, STD = 20, (0.5, 0.1)
states, torques, accelerations = [], [], []
body = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, PUSHED)
plant.xfrc_applied[body, :3] = PUSH
for _ in range(SAMPLES):
    mujoco.mj_forward(model, plant)
    felt = plant.qfrc_actuator + plant.qfrc_passive
    states.append(kf.from_mujoco(robot, model, plant.qpos, plant.qvel, plant.qacc, felt))
    accelerations.append(plant.sensordata[:6].copy())
    mujoco.mj_step(model, plant)
q, v, a, tau = (np.array([getattr(state, key) for state in states]) for key in ("q", "v", "a", "tau"))
base = robot.hinge_names[0]
motors = [h for h in robot.hinge_names if h != base]
tau_read = tau[:, 6:] + STD[0] * rng.normal(size=(SAMPLES, len(motors)))
imu_read = np.array(accelerations) + STD[1] * rng.normal(size=(SAMPLES, 6))
imu_read[:, 3:] += 0.05

S = kf.sensors
sensors = [
    S.JointTorque(0.0, base),  # nothing drives the base
    S.JointTorque(STD[0] ** 2, motors),
    S.Accelerometer("trunk_imu", STD[1] ** 2),
    S.Accelerometer("head_imu", STD[1] ** 2),
    S.JointAcceleration(1.0, motors),  # encoders, differentiated twice: poor, but something
]
a_read = a[:, 6:] + rng.normal(size=(SAMPLES, len(motors)))
readings = [np.zeros(6), tau_read, imu_read[:, :3], imu_read[:, 3:], a_read]

# %%
# Body by body
# ------------
#
# A force of unknown size, 100 N say, at one body's mass centre at a time. The log-likelihood of the readings says which
# hypothesis they like best; without a push the normalised innovations squared (NIS) alone says that something is wrong.

candidates = [name for name in robot.body_names if robot.layout.mass[robot.body_index(name)] > 0]
frames = {f"{name} (centre)": kf.Frame(name, position=robot.layout.com[robot.body_index(name)]) for name in candidates}
robot = kf.System(robot.bodies, robot.gravity, {**robot.frames, **frames})
quiet = kf.estimate_dynamics(robot, q, v, sensors, readings)
assert (quiet.p_value < 1e-6).all()  # a push there was
guesses = {
    name: kf.estimate_dynamics(
        robot, q, v, [*sensors, S.ExternalForce(frame, 100.0**2, moment=False)], [*readings, None]
    )
    for name, frame in zip(candidates, frames)
}
evidence = {name: est.llf.sum() for name, est in guesses.items()}
found = max(evidence, key=evidence.get)
assert found == PUSHED
est = guesses[found]
assert est.p_value.min() > 1e-4  # and now nothing is left to explain

# %%
# How hard, and how surely
# ------------------------

force = est.external_forces[:, robot.body_index(found), 3:]
cov = est.cov(("external_forces", found))[:, 3:, 3:]
mean, spread = force.mean(0), cov.mean(0) / SAMPLES
error = mean - PUSH
assert error @ np.linalg.solve(spread, error) < 30  # the head's bias costs something
print(f"push on {found}: {np.round(mean, 1)} N, true {PUSH}, one sample ± {np.sqrt(np.diag(cov[0])).round(1)} N")

# %%
# The figure
# ----------

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 4.4), width_ratios=(1.1, 1, 1.2))
names = sorted(evidence, key=evidence.get)
shade = [COLORS["vermilion"] if name == found else COLORS["blue"] for name in names]
left.barh(names, [evidence[name] - quiet.llf.sum() for name in names], color=shade)
left.set(xlabel="log-likelihood gained over no push", title="where?")
draw_system(middle, robot, q[0], plane="xz", color="#888888", linewidth=2.4)
at = kf.frame_pose(robot, q[0], f"{found} (centre)").position
along = {"angles": "xy", "scale_units": "xy", "scale": 90.0, "width": 0.02, "zorder": 3}
middle.quiver(*at[[0, 2]], *mean[[0, 2]], color=COLORS["vermilion"], **along)
middle.set(aspect="equal", xlabel="x [m]", ylabel="z [m]", title="the robot, from the side", xlim=(-0.4, 0.75))
for one, block in zip(force, cov):
    draw_ellipse(
        right, block[np.ix_([0, 2], [0, 2])], one[[0, 2]], size=2, facecolor="none", edgecolor=COLORS["sky"], lw=0.7
    )
draw_ellipse(right, spread[np.ix_([0, 2], [0, 2])], mean[[0, 2]], size=2, facecolor=COLORS["vermilion"], alpha=0.5)
right.plot(*PUSH[[0, 2]], "k+", ms=12, mew=2, label="truth")
right.set(
    xlabel="force along x [N]", ylabel="force along z [N]", title="2σ: one sample each, and all twenty", aspect="equal"
)
right.legend(loc="upper left")

plt.show()
