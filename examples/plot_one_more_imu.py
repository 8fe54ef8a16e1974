r"""
What does one more inertial unit buy?
=====================================

How surely sensors determine a robot's accelerations and forces does not depend on what they read: covariances are
known beforehand. So layouts can be compared before anything is bolted on. A humanoid with noisy torques, known to
touch the ground with its left foot in an unknown way, gets inertial units one by one, each where it helps most.
"""

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.viz import COLORS, STYLE, draw_ellipse, draw_observability, draw_system

plt.style.use(STYLE)

# %%
# The robot and what it has
# -------------------------
#
# No wrench on the pelvis, torques to 1 N m at all other hinges, a foot on the ground, of whose force nothing is known
# but that it is of some hundred newtons, and an inertial unit in the pelvis.

robot = kf.models.humanoid()
q = robot.neutral()
S = kf.sensors
base, *others = robot.hinge_names
have = [
    S.JointTorque(0.0, base),
    S.JointTorque(1.0, others),
    S.ExternalForce("left_foot", np.r_[np.full(3, 5.0**2), np.full(3, 100.0**2)]),
    S.Imu("pelvis", np.r_[np.full(3, 1.0), np.full(3, 0.1)] ** 2),
]
before = kf.observability(robot, q, have)
assert before.determined

# %%
# Where next?
# -----------
#
# Every body is a candidate. The question is the right hand's acceleration; the answer of a greedy search is a list.

unit = np.r_[np.full(3, 1.0), np.full(3, 0.1)] ** 2
candidates = [S.Imu(body, unit) for body in robot.body_names if body != "pelvis"]


def hand(seen):
    """Root mean variance of the right hand's linear acceleration."""
    k = robot.body_index("right_hand")
    return float(np.sqrt(np.mean(seen.std("body_accelerations")[k, 3:] ** 2)))


placed = kf.place_sensors(robot, q, have, candidates, count=3, target=hand)
print(placed)
assert placed.chosen[0] == S.Imu("right_hand", unit)  # at the hand itself, of course
assert all(now < then for then, now in zip(placed.rms, placed.rms[1:]))
after = kf.observability(robot, q, [*have, placed.chosen[0]])

# %%
# Not only the hand
# -----------------
#
# The same unit sharpens the estimates all along the arm and in the trunk, because the dynamics connects them. Nothing
# gets worse anywhere: information only adds.

for key in ("a", "tau", "hinge_forces", "external_forces"):
    assert (after.std(key) <= before.std(key) * (1 + 1e-9) + 1e-4).all()  # of exact zeros, roots of roundings
gain = before.std("a") / np.maximum(after.std("a"), 1e-12)

nothing = [np.full(s.size(robot), 0.0) for s in have]
ellipses = []
for extra in ([], [placed.chosen[0]]):
    est = kf.estimate_dynamics(robot, q, None, [*have, *extra], [*nothing, *[np.zeros(6)] * len(extra)])
    ellipses.append(
        {body: est.cov(("body_accelerations", body))[3:, 3:] for body in ("right_hand", "left_hand", "head")}
    )

# %%
# The figure
# ----------

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 5), width_ratios=(1, 1, 1.1))
largest = before.std("a").max()
for ax, seen, title in ((left, before, "one unit, in the pelvis"), (middle, after, "and one in the right hand")):
    marks = draw_observability(ax, seen, plane="yz", largest=largest)
    ax.set(title=title, xlabel="y [m]")
left.set_ylabel("z [m]")
left.legend(loc="upper left", fontsize=7)
figure.colorbar(marks, ax=[left, middle], label="standard deviation of a hinge's acceleration [rad/s²]", shrink=0.8)
draw_system(right, robot, q, plane="yz", color=COLORS["pale"], linewidth=2)
for covs, color, word, style in zip(ellipses, ("vermilion", "blue"), ("before", "after"), ("-", "--")):
    for i, (body, cov) in enumerate(covs.items()):
        at = kf.frame_pose(robot, q, body).position[1:]
        shape = {
            "facecolor": "none",
            "edgecolor": COLORS[color],
            "lw": 1.6,
            "ls": style,
            "label": word if i == 0 else None,
        }
        draw_ellipse(right, 0.03**2 * cov[1:, 1:], at, **shape)
right.margins(0.3, 0.05)
right.set(aspect="equal", xlabel="y [m]", title="accelerations: 1σ\n(3 cm for 1 m/s²)")
right.legend(loc="lower left")

plt.show()
