r"""
Riccati against Lyapunov: floppy against frozen
===============================================

Two recursions run along a chain of rods. Frozen, it has the composite inertia, which only ever adds up; floppy, the
articulated one, from which each hinge takes away what it measures:

.. math::

   \mathcal R(k) = \varphi \mathcal R \varphi^* + M \quad\text{(Lyapunov)}, \qquad
   P(k) = \varphi\,(P - P H^* D^{-1} H P)\, \varphi^* + M \quad\text{(Riccati)} .

Estimation knows the difference well: an unmeasured random walk spreads for ever, a measured one does not. So the
inertia that a hinge feels grows like the cube of the number of frozen rods, but of floppy rods it soon feels no more
than the first two or three.
"""

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.dynamics import as_estimation, composite_inertias
from kfdyn.dynamics.simulation.motion_arguments import with_armature
from kfdyn.viz import COLORS, STYLE, draw_ellipse, draw_system

plt.style.use(STYLE)
PIN = kf.Hinge.revolute([0, 1, 0])

# %%
# A straight chain
# ----------------
#
# Rods of one kilogram and one metre. Both limits are known in closed form: n frozen rods have the moment of inertia
# n³/3, and the fixed point of the Riccati recursion is a quadratic equation that gives
#
# .. math:: D_\infty = \Bigl(\tfrac13 + \tfrac{1}{\sqrt{12}}\Bigr) m l^2 \approx 0.622\, m l^2 .
#
# Rotors are measurement noise, and lie in between: the more noise, the more of the chain is felt.

N = 100
rods = kf.models.uniform_chain(N, hinge=PIN)
outboard = np.arange(N, 0, -1)  # rods that hinge k carries, its own included


def felt(armature):
    """Inertia about each hinge, D less the rotor's own, when all hinges have this rotor."""
    return kf.riccati(as_estimation(with_armature(rods, np.full(N, armature)), np.zeros(N))).D.flat - armature


ss = as_estimation(rods, np.zeros(N))
frozen = np.array([(H @ R @ H.T).item() for H, R in zip(ss.H, composite_inertias(ss))])
assert np.allclose(frozen, outboard**3 / 3, rtol=1e-10)
floppy = felt(0.0)
limit = 1 / 3 + 1 / np.sqrt(12)
assert np.isclose(floppy[0], limit, rtol=1e-12)
assert abs(floppy[N - 4] / limit - 1) < 1e-3  # the fourth rod from the tip already feels no tip

# %%
# A curled chain
# --------------
#
# What opposes a pull at the hinge, without turning? Of the frozen chain its whole mass, whatever the direction. The
# floppy chain opposes a pull along itself, but across it gives way: the ellipses are long along the chain and thin
# across. They show the linear block of each inertia (semi-axes are square roots of masses).

n = 16
curl = kf.models.uniform_chain(n, hinge=PIN)
q = np.array([-0.2] + [0.29] * (n - 1))
curled = as_estimation(curl, q)
P, composite = kf.riccati(curled).P, composite_inertias(curled)
for k in range(n):
    assert np.linalg.eigvalsh(composite[k] - P[k]).min() > -1e-9
    assert np.allclose(composite[k][3:, 3:], (n - k) * np.eye(3))

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), width_ratios=(1.05, 1))
left.loglog(outboard, frozen, color=COLORS["orange"], linewidth=2.2)
left.text(24, 6e3, r"frozen, $H\mathcal{R}H^* = n^3/3$", color=COLORS["orange"], ha="right", fontsize=10)
for armature in (10.0, 1.0, 0.1):
    left.loglog(outboard, felt(armature), color=COLORS["sky"])
    left.text(106, felt(armature)[0], f"rotors of {armature:g} kg m²", color=COLORS["sky"], va="center", fontsize=8)
left.loglog(outboard, floppy, color=COLORS["blue"], linewidth=2.2)
left.text(106, floppy[0], "no rotors", color=COLORS["blue"], va="center", fontsize=8)
left.text(
    9, 0.22, r"floppy, $HPH^* \to (\frac{1}{3} + \frac{1}{\sqrt{12}})\, m l^2$", color=COLORS["blue"], fontsize=10
)
left.set(xlim=(1, 100), ylim=(0.12, 4e5), xlabel="rods n that the hinge carries", ylabel="inertia it feels [kg m²]")
left.set_title("the inertia about a hinge")

for k in range(n):
    at = kf.frame_pose(curl, q, f"rod_{k}").position[[0, 2]]
    for inertia, color in ((composite[k], COLORS["orange"]), (P[k], COLORS["blue"])):
        block = inertia[np.ix_([3, 5], [3, 5])]
        draw_ellipse(right, block, at, 0.28, facecolor=color, alpha=0.25 if color == COLORS["orange"] else 0.6)
draw_system(right, curl, q, color=COLORS["grey"], linewidth=1.8)
right.plot([], [], "o", color=COLORS["orange"], alpha=0.5, markersize=10, label=r"frozen: $\mathcal{R}$, a sphere")
right.plot([], [], "o", color=COLORS["blue"], alpha=0.7, markersize=8, label="floppy: $P$, long along the chain")
right.set(aspect="equal", xlabel="x [m]", ylabel="z [m]", title="the mass that opposes a pull")
right.legend(loc="center left", bbox_to_anchor=(0.0, 0.5))

plt.show()
