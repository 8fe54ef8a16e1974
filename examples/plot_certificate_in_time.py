r"""
The certificate in time: does a log belong to its robot?
========================================================

A robot's file says what its links weigh and how its hinges drag; its log says what its encoders read while torques were
ordered. If the file is right, what the filter does not foresee is white noise, and no mass would rather be another:

.. math::

   z_i = \frac{g_i}{\sqrt{I_{ii}}} \sim N(0, 1), \qquad \text{noticed if off by } \frac{3.6}{\sqrt{I_{ii}}},

with :math:`g` the score of the log and :math:`I` its information. :func:`kfdyn.motion.check_log` asks this of three
logs that MuJoCo made: of the robot in the file, of one that carries 100 g more, and of one whose gears give way
a little and rub, which no mass or damper in the file can imitate.
"""

import matplotlib.pyplot as plt
import mujoco
import numpy as np

import kfdyn as kf
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

# %%
# Three robots
# ------------
#
# A gear that gives way is a second hinge with a spring behind the motor's; the encoder sits on the motor.

DT, N, HINGES = 0.005, 1200, 3


def arm(payload=0.0, soft=False):
    """An arm of three hinges for MuJoCo."""
    links = f'<geom type="sphere" size=".03" pos="0 0 -.25" mass="{payload}"/>' if payload else ""
    for i in reversed(range(HINGES)):
        axis = ["0 0 1", "0 1 0", "0 1 0"][i]
        at, rub = f'pos="{0.05 * i} 0 {-0.3 * (i > 0)}"', ' frictionloss="0.15"' if soft else ""
        motor = f'<joint name="joint_{i + 1}" axis="{axis}" armature=".05" damping=".3"{rub}/>'
        link = f'<geom type="capsule" size=".04" fromto="0 0 0 .05 0 -.3" mass="{2 - 0.5 * i}"/>{links}'
        if soft:
            spring = f'<joint name="gear_{i + 1}" axis="{axis}" stiffness="250" damping="1"/>'
            link = f'<inertial pos="0 0 0" mass="1e-4" diaginertia="1e-6 1e-6 1e-6"/><body>{spring}{link}</body>'
        links = f'<body name="link_{i + 1}" {at}>{motor}{link}</body>'
    flags = '<flag contact="disable"/>'
    return f'<mujoco><option timestep="{DT}">{flags}</option><worldbody>{links}</worldbody></mujoco>'


def log(seed, **more):
    """Encoders and ordered torques of a swing, with random torques beside them."""
    rng, robot = np.random.default_rng(seed), mujoco.MjModel.from_xml_string(arm(**more))
    plant = mujoco.MjData(robot)
    motors = [robot.joint(f"joint_{i + 1}").id for i in range(HINGES)]
    q, tau = np.empty((N, HINGES)), np.empty((N, HINGES))
    for k in range(N):
        s = 2.0 * np.pi * DT * k * np.array([0.4, 0.6, 0.9])
        q[k] = plant.qpos[motors]
        tau[k] = 40 * (0.7 * np.sin(s) - q[k]) - 4 * plant.qvel[motors]
        plant.qfrc_applied[motors] = tau[k] + 0.05 * rng.normal(size=HINGES)
        mujoco.mj_step(robot, plant)
    return q + 2e-5 * rng.normal(size=q.shape), tau


file = kf.load(arm())
model = kf.MotionModel(
    file, DT, [kf.sensors.JointPosition(1e-9, name="encoders")], np.full(HINGES, 0.01), method="implicit", damping=True
)
logs = {"as in the file": {}, "100 g more": {"payload": 0.1}, "soft gears that rub": {"soft": True}}
reports = {}
for seed, (name, more) in enumerate(logs.items()):
    q, tau = log(seed, **more)
    reports[name] = kf.motion.check_log(model, [q], tau[:-1])
    print(f"--- {name}\n{reports[name]}\n")

right, heavy, soft = reports.values()
assert right.passed and not heavy.passed and not soft.passed
assert right.residuals["encoders"].fine
last = next(one for one in heavy.suspects if one.name == "link_3/mass")
assert last.p_value < 1e-6 and last.wanted > last.limit
assert max(heavy.residuals["encoders"].whiteness, soft.residuals["encoders"].whiteness) < 1e-99

# %%
# A mass that is wrong is named with its sign. With soft gears all numbers are blamed at once; but what is left is not
# white either, and that no mass or damper mends: fitted as well as they can be, they leave it so.

q, tau = log(2, soft=True)
fitted = kf.identify(model, [q], tau[:-1], ["*/mass", "*/damping", "force_noise", "encoders/cov"])
left = fitted.residual_tests()["encoders"]
print(f"all masses and dampers fitted to the soft robot: whiteness p = {left.whiteness:.2g}")
assert left.whiteness < 1e-6

# %%
# The figure
# ----------
#
# Left: what each log asks of each number, in units of the least error that would be noticed; the band holds what is
# not. Right: the largest correlation of an error with one of the ten before it, about 0 for white noise.

figure, (asked, white) = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained", width_ratios=(3, 2))
colors = (COLORS["blue"], COLORS["orange"], COLORS["vermilion"])
for i, ((name, report), color) in enumerate(zip(reports.items(), colors)):
    wanted = [one.wanted / one.limit for one in report.suspects]
    asked.plot(np.arange(len(wanted)) + 0.2 * (i - 1), wanted, "o", color=color, label=name)
    test = report.residuals["encoders"]
    white.barh(i, test.correlation, color=color)
    said = f"p = {test.whiteness:.2f}" if test.whiteness > 0.005 else "p < 1e-99"
    white.annotate(said, (test.correlation, i), xytext=(5, 0), textcoords="offset points", va="center")
asked.axhspan(-1, 1, color=COLORS["pale"], alpha=0.4, linewidth=0)
asked.set_xticks(range(len(right.suspects)), [one.name.replace("/", "\n") for one in right.suspects], fontsize=9)
asked.set(ylabel="asked for / noticed if off by", title="What logs ask of masses and dampers")
white.set(xlim=(0, 0.8), yticks=[], xlabel="largest correlation of residuals", title="Is what is left white noise?")
white.invert_yaxis()
figure.legend(loc="outside lower center", ncols=3)
plt.show()
