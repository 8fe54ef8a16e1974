r"""
Each free hinge takes inertia away
==================================

Turn an arm at one of its joints: how much inertia resists? If everything outboard were welded together, the
composite inertia :math:`\mathcal R(k)`. But the joints outboard give way, and what resists is the articulated-body
inertia :math:`P(k)`. It is the prediction covariance of a Kalman filter that runs from the tip to the base,

.. math::

   P(k) = \varphi P^+ \varphi^* + Q(k), \qquad P^+ = P - G D G^*, \qquad D = H P H^* + R ,

while :math:`\mathcal R` is the covariance of the same states without any measurement,
:math:`\mathcal R(k) = \varphi \mathcal R \varphi^* + Q(k)`, Q(k) being the inertia of the link itself.
Each hinge that can move is a measurement, and each measurement takes some covariance away:
:math:`Q \preceq P \preceq \mathcal R`.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.dynamics import as_estimation, composite_inertias
from kfdyn.dynamics.simulation.motion_arguments import with_armature
from kfdyn.spatial import TriangleInequalityWarning, spatial_inertia
from kfdyn.viz import COLORS, STYLE, draw_inertias, draw_system, ellipse_points

plt.style.use(STYLE)

OWN, ARTICULATED, COMPOSITE, ARM = "black", COLORS["blue"], COLORS["orange"], COLORS["grey"]

# %%
# The arm
# -------
#
# A PUMA 560 holds a box of 4 kg. Its geared motors are heavy: seen from the joints, their rotors weigh as much as the
# links. A rotor is measurement noise (R), and a noisy measurement takes little covariance away; so we look at
# the arm with its rotors, and at the same arm with direct drives (R = 0).

puma = kf.models.puma560()
box = kf.Body("box", spatial_inertia(4.0, [0, 0, 0], 0.02 * np.eye(3)), parent="link_6", position=[0, 0, 0.3])
with warnings.catch_warnings():
    warnings.simplefilter("ignore", TriangleInequalityWarning)  # link 3 as it was published
    arm = kf.System([*puma.bodies, box])
direct = with_armature(arm, np.zeros(arm.nv))
q = np.radians([0.0, -35.0, 75.0, 40.0, 60.0, 0.0])


def inertias(system):
    """Own, articulated and composite inertia of every body."""
    ss = as_estimation(system, q)
    return ss.Q, kf.riccati(ss).P, composite_inertias(ss)


own, P_direct, composite = inertias(direct)
_, P_geared, _ = inertias(arm)

# %%
# Beside each other
# -----------------
#
# The ellipsoid at each hinge shows the angular block of its inertia: how much moment of inertia resists a turn about
# each axis through the hinge (semi-axes are square roots of moments). On the left the hinges outboard are free,
# on the right they are locked.

SIZE = 0.13  # metres for the square root of one kg m²

figure = plt.figure(figsize=(10, 4.6), layout="none")
for number, (title, P, color) in enumerate(
    [("articulated, $P$", P_direct, ARTICULATED), (r"composite, $\mathcal{R}$", composite, COMPOSITE)], 1
):
    ax = figure.add_subplot(1, 2, number, projection="3d", computed_zorder=False)
    draw_inertias(ax, direct, q, P, SIZE, block="angular", bodies=range(6), color=color, alpha=0.3)
    draw_system(ax, direct, q, color=ARM)
    ax.set_title(title, color=color, fontsize=14, y=0.93)
    ax.set(xlim=(-0.3, 0.95), ylim=(-0.35, 0.55), zlim=(-0.35, 0.5), xlabel="x [m]", ylabel="y [m]", zlabel="z [m]")
    ax.set_box_aspect((1.25, 0.9, 0.85), zoom=0.98)
    ax.zaxis.labelpad = 2  # more, and the axes beside it would cover the label
    ax.view_init(elev=16, azim=-66)
    ax.locator_params(nbins=4)
figure.subplots_adjust(left=0.0, right=0.95, bottom=0.02, top=1.0, wspace=0.06)

# %%
# Tip to base
# -----------
#
# The same filter run, hinge by hinge from the tip to the base; each ellipse is the shadow of its ellipsoid on the
# horizontal plane. At the tip nothing outboard gives way, and the articulated inertia is the composite one. Inboard,
# free hinges take away what the box and the forearm would add, about just the axes those hinges have. With
# rotors the articulated inertia lies in between: :math:`R \to \infty` would weld the hinges.

figure, axes = plt.subplots(2, 3, figsize=(9.5, 6.6))
for ax, k in zip(axes.flat, range(5, -1, -1)):
    for P, color, style, label in (
        (composite, COMPOSITE, "-", r"composite $\mathcal{R}$ (hinges locked)"),
        (P_geared, ARTICULATED, "--", "articulated $P$, with rotors"),
        (P_direct, ARTICULATED, "-", "articulated $P$, direct drives"),
        (own, OWN, ":", "own inertia $M$"),
    ):
        ax.plot(*ellipse_points(np.asarray(P[k])[:2, :2]).T, style, color=color, linewidth=1.8, label=label)
    ax.set(title=f"hinge {k + 1}", aspect="equal")
    ax.locator_params(nbins=5)
    ax.tick_params(labelsize=8)
    ax.margins(0.12)
for ax in axes[1]:
    ax.set_xlabel(r"about x [$\sqrt{\mathrm{kg\,m^2}}$]")
for ax in axes[:, 0]:
    ax.set_ylabel(r"about y [$\sqrt{\mathrm{kg\,m^2}}$]")
figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)

# %%
# The order of the four is a theorem, and holds for the whole 6 × 6 matrices:

for k in range(arm.n_bodies):
    for larger, smaller in ((composite, P_geared), (P_geared, P_direct), (P_direct, own)):
        assert np.linalg.eigvalsh(np.asarray(larger[k]) - np.asarray(smaller[k])).min() > -1e-9

plt.show()
