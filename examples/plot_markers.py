r"""
A walk seen by markers
======================

Cameras follow markers on a person's skin. The usual way from there to joint torques has three parts that do not know
of each other: inverse kinematics, a frame at a time; a low-pass filter, by whose cut-off every result stands or falls;
inverse dynamics of what comes out. None of them tells how sure it is.

Here it is one problem. :class:`kfdyn.MotionModel` says that the person moves by mechanics, under forces that nobody
knows beforehand but which have a size; the mode of the whole motion, by :func:`kfdyn.iterated_kalman_smoother`, is
positions, velocities and torques, with bands.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.signal import savgol_filter

import kfdyn as kf
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)
rng = np.random.default_rng(0)

# %%
# A person with markers
# ---------------------
#
# Three markers on every body, a few centimetres from its joint and along its bone.

person = kf.models.humanoid()
frames = dict(person.frames)
for name in person.body_names:
    for i, place in enumerate(([0.06, 0.0, -0.05], [0.0, 0.06, -0.12], [-0.05, -0.04, -0.2])):
        frames[f"{name} {i}"] = kf.Frame(name, position=place)
person = kf.System(person.bodies, gravity=person.gravity, frames=frames, name=person.name)
markers = [name for name in frames if name[-1].isdigit()]

# %%
# How it walks
# ------------
#
# Legs and arms swing in turn while the pelvis goes ahead and bobs twice a stride. Velocities and accelerations are
# differences of a thousandth of a step, so that torques are known to compare with.

dt, N = 0.01, 80
t = dt * np.arange(N)


def pose(at):
    """Configurations at these times."""
    d = np.zeros((len(at), person.nv))
    phase = 2 * np.pi * 0.9 * at
    d[:, person.v_slice("pelvis")][:, 3] += 1.2 * at
    d[:, person.v_slice("pelvis")][:, 5] += 0.02 * np.cos(2 * phase)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        d[:, person.v_slice(f"{side}_thigh")][:, 1] += -sign * 0.4 * np.sin(phase)
        d[:, person.v_slice(f"{side}_shank")][:, 0] += 0.5 * (1 - np.cos(phase + sign * np.pi / 2))
        d[:, person.v_slice(f"{side}_upper_arm")][:, 1] += sign * 0.3 * np.sin(phase)
    return kf.integrate(person, person.neutral(), d)


h = 1e-4
q = pose(t)
v = kf.difference(person, pose(t - h), pose(t + h)) / (2 * h)
v_after = kf.difference(person, pose(t), pose(t + 2 * h)) / (2 * h)
v_before = kf.difference(person, pose(t - 2 * h), pose(t)) / (2 * h)
torque = kf.inverse_dynamics(person, q, v, (v_after - v_before) / (2 * h))

error = 0.004
seen = [kf.frame_pose(person, q, name).position + error * rng.normal(size=(N, 3)) for name in markers]
gap = rng.random((len(markers), N)) < 0.1  # a marker is hidden now and then
for one, hidden in zip(seen, gap):
    one[hidden] = np.nan

# %%
# One call
# --------
#
# The forces of a person are taken for random ones, as large as accelerations of some 2 rad/s² or m/s² need, about those
# that hold the body up. That is all the tuning there is.

start = person.neutral()
M = np.diag(kf.mass_matrix(person, start))
model = kf.MotionModel(person, dt, [kf.sensors.Position(name, error**2) for name in markers], (2.0 * M) ** 2)
hold = np.tile(kf.gravity_torques(person, start), (N - 1, 1))
prior = (q[0], v[0], np.concatenate([np.full(person.nv, 0.01), np.full(person.nv, 1.0)]))
post = kf.iterated_kalman_smoother(model, seen, tau=hold, prior=prior)
print(post.message)
assert post.converged

found, deviation = hold + post.force, post.std("force")
knee = person.v_slice("left_shank").start
inside = np.abs(post.v[:, knee] - v[:, knee]) < 1.96 * post.std("v")[:, knee]

# %%
# The usual way
# -------------
#
# Inverse kinematics of every frame, here with the same markers and weights, then Savitzky and Golay's filter, then
# inverse dynamics.

still = kf.MotionModel(person, dt, model.seen.sensors, 1.0)
angles = np.empty((N, person.nq))
guess = q[0]
for k in range(N):
    vague = (guess, np.zeros(person.nv), np.concatenate([np.full(person.nv, 0.25), np.full(person.nv, 1e-12)]))
    guess = kf.iterated_kalman_smoother(still, [one[k : k + 1] for one in seen], prior=vague, covariances=False).q[0]
    angles[k] = guess
moved = kf.difference(person, np.tile(start, (N, 1)), angles)
rates, turned = (savgol_filter(moved, 13, 3, deriv=order, delta=dt, axis=0) for order in (1, 2))
usual = kf.inverse_dynamics(person, angles, rates, turned)

inner = slice(10, N - 10)


def rms(x, y):
    """Root mean square error at the knee, away from both ends."""
    return np.sqrt(np.mean((x[inner, knee] - y[inner, knee]) ** 2))


print(f"knee velocity wrong by {rms(post.v, v):.3f} rad/s, the usual way {rms(rates, v):.3f}")
print(f"knee torque   wrong by {rms(found, torque):.2f} N m,   the usual way {rms(usual, torque):.2f}")
print(f"{100 * inside.mean():.0f} % of the knee's velocities lie in their 95 % bands")
assert rms(found, torque) < 0.5 * rms(usual, torque)
assert inside.mean() > 0.9

# %%
# The figure
# ----------
#
# A tenth of a second at both ends is left out, where a torque is known from one side alone: there it is drawn towards
# those that hold the body, and the bands, which take forces of one time and the next for independent, are too narrow.

figure, axes = plt.subplots(2, 1, figsize=(10, 6.0), sharex=True, layout="constrained")
for axis, what, times, mine, band, other, true in (
    (axes[0], "knee velocity [rad/s]", t, post.v, post.std("v"), rates, v),
    (axes[1], "knee torque [N m]", t[:-1], found, deviation, usual[:-1], torque[:-1]),
):
    times, mine, band, other, true = (array[inner] for array in (times, mine, band, other, true))
    low, high = mine[:, knee] - 2 * band[:, knee], mine[:, knee] + 2 * band[:, knee]
    axis.fill_between(times, low, high, color=COLORS["blue"], alpha=0.25, linewidth=0)
    axis.plot(
        times, other[:, knee], color=COLORS["orange"], linewidth=1.0, label="inverse kinematics, filter, dynamics"
    )
    axis.plot(times, mine[:, knee], color=COLORS["blue"], label="one smoother, two deviations")
    axis.plot(times, true[:, knee], color=COLORS["grey"], linestyle="--", linewidth=1.2, label="true")
    axis.set(ylabel=what, xlim=(times[0], times[-1]))
axes[0].set_title("A walk seen by 57 markers with errors of 4 mm")
axes[0].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
axes[1].set_xlabel("time [s]")
plt.show()
