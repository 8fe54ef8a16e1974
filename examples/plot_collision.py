r"""
A collision detector with a stated rate of false alarms
=======================================================

Sensors that agree with the dynamics leave normalised innovations squared (NIS) with a :math:`\chi^2` distribution:
nothing to tune. A threshold at the quantile :math:`1 - 10^{-3}` raises one false alarm in a thousand samples, because
it was computed so. The usual detector integrates a momentum observer,

.. math::

   r(t) = K \Bigl( p(t) - p(0) - \int_0^t (\tau + C^* v - g + r)\, \mathrm ds \Bigr),

and compares :math:`r` with a threshold that somebody has to find. Both look at the same arm here; MuJoCo is the plant.
"""

import matplotlib.pyplot as plt
import mujoco
import numpy as np
from scipy.stats import binom, chi2

import kfdyn as kf
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

# %%
# The plant
# ---------
#
# An arm of four hinges follows a sine. After 1.2 s something pushes its forearm with 5 N for 80 ms.

links = ""
for i, axis in reversed(list(enumerate(("0 0 1", "0 1 0", "0 1 0", "1 0 0")))):
    site = '<site name="tip" pos="0 .05 -.2" euler="0 20 0"/>' if i == 3 else ""
    links = f"""<body name="link_{i}" pos="{0.02 * i} 0 -.25"><joint name="j{i}" axis="{axis}" armature=".02"/>
    <geom type="capsule" size=".04" fromto="0 0 0 .02 .01 -.25" mass="{3 - 0.5 * i}"/>{site}{links}</body>"""
motors = "".join(f'<motor joint="j{i}"/>' for i in range(4))
text = f"""<mujoco><option timestep="0.001"><flag contact="disable"/></option><worldbody>{links}</worldbody>
<actuator>{motors}</actuator><sensor><accelerometer site="tip"/></sensor></mujoco>"""
model = mujoco.MjModel.from_xml_string(text)
plant, arm = mujoco.MjData(model), kf.load(text)
PUSH, START, STOP = np.array([0.0, 5.0, 0.0]), 1.2, 1.28
body = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, "link_2")
q, v, a, tau, acc = [], [], [], [], []
while plant.time < 2.0:
    goal = 0.6 * np.sin(3 * plant.time + np.arange(4))
    speed = 1.8 * np.cos(3 * plant.time + np.arange(4))
    plant.ctrl[:] = 60 * (goal - plant.qpos) + 6 * (speed - plant.qvel)
    plant.xfrc_applied[body, :3] = PUSH if START <= plant.time < STOP else 0.0
    mujoco.mj_forward(model, plant)
    for kept, value in zip(
        (q, v, a, tau, acc), (plant.qpos, plant.qvel, plant.qacc, plant.qfrc_actuator, plant.sensordata)
    ):
        kept.append(value.copy())
    mujoco.mj_step(model, plant)
q, v, a, tau, acc = map(np.array, (q, v, a, tau, acc))
t = 0.001 * np.arange(len(q))

# %%
# Two detectors
# -------------
#
# Torques are read to 0.15 N m, accelerations of the hinges to 0.6 rad/s², the accelerometer at the tip to 0.15 m/s².

rng = np.random.default_rng(4)
STD = (0.15, 0.6, 0.15)
readings = [x + s * rng.normal(size=x.shape) for x, s in zip((tau, a, acc), STD)]
S = kf.sensors
sensors = [S.JointTorque(STD[0] ** 2), S.JointAcceleration(STD[1] ** 2), S.Accelerometer("tip", STD[2] ** 2)]
est = kf.estimate_dynamics(arm, q, v, sensors, readings)
RATE = 1e-3
alarm = est.p_value < RATE
calm = (t < START) | (t > STOP + 0.01)
count = int(alarm[calm].sum())
low, high = binom.ppf([1e-4, 1 - 1e-4], calm.sum(), RATE)
assert low <= count <= high, count  # the stated rate
hit = (t >= START) & (t < STOP)
delay = t[hit][alarm[hit]][0] - START
assert delay < 0.01 and alarm[hit].mean() > 0.2

GAIN = 60.0
mass = kf.mass_matrix(arm, q)
momentum = np.einsum("tij,tj->ti", mass, v)
# C*v − g: the rate of the mass matrix times v, less all bias forces
rate = np.gradient(mass, t, axis=0)
drift = np.einsum("tij,tj->ti", rate, v) - kf.bias_forces(arm, q, v)
observer, total = np.zeros_like(tau), np.zeros(4)
for i in range(1, len(t)):
    total += 0.001 * (readings[0][i - 1] + drift[i - 1] + observer[i - 1])
    observer[i] = GAIN * (momentum[i] - momentum[0] - total)
level = np.abs(observer[(t > 0.1) & (t < START)]).max()  # the least that stays silent, known only afterwards
late = t[hit][(np.abs(observer[hit]) > level).any(1)]
print(f"NIS: {count} false alarms in {calm.sum()} samples, first alarm after {1e3 * delay:.0f} ms")
print(f"momentum observer at its best threshold: first alarm after {1e3 * (late[0] - START):.0f} ms")

# %%
# The figure
# ----------

figure, (above, below) = plt.subplots(2, 1, figsize=(9, 5.6), sharex=True)
above.semilogy(t, est.nis, color=COLORS["blue"], lw=0.7)
above.axhline(
    chi2.isf(RATE, est.dof[0]), color=COLORS["vermilion"], label=f"threshold: one false alarm in {1 / RATE:.0f}"
)
above.axhline(float(est.dof[0]), color=COLORS["pale"], label="expected")
above.set(ylabel="NIS", title=f"sensors against dynamics, {est.dof[0]} degrees of freedom")
below.plot(t, observer, lw=0.8)
for sign in (-1, 1):
    below.axhline(
        sign * level, color=COLORS["vermilion"], label="lowest threshold without a false alarm" if sign == 1 else None
    )
below.set(xlabel="time [s]", ylabel="residual [N m]", title="momentum observer, one line per hinge")
for ax in (above, below):
    ax.axvspan(START, STOP, color=COLORS["orange"], alpha=0.25, lw=0)
    ax.legend(loc="upper left")

plt.show()
