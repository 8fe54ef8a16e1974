r"""
A soft loop is a noisy sensor
=============================

Physics engines often close loops softly: the constraint gives way a little, in proportion to the force. In the
estimation problem this is measurement noise. A rigid loop reports :math:`J a = c` exactly; with noise :math:`R` it is
believed as far as its variance deserves:

.. math::

   a = a_0 + \mathcal M^{-1} J^* (\Omega + R)^{-1} (c - J a_0) .

With MuJoCo's ``efc_R`` for :math:`R` and ``efc_aref`` for :math:`c` this is MuJoCo's own acceleration, to rounding.
"""

import matplotlib.pyplot as plt
import mujoco
import numpy as np

import kfdyn as kf
from kfdyn.multibody.loops.closure import constraint_drift
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

# %%
# A linkage in MuJoCo
# -------------------

TEXT = """<mujoco><compiler angle="radian"/><option><flag contact="disable"/></option><worldbody>
<body name="crank"><joint name="a" axis="0 1 0"/><geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.5"/>
<body name="coupler" pos="0 0 0.5"><joint name="b" axis="0 1 0"/>
<geom type="capsule" size="0.02" fromto="0 0 0 0.8 0 0"/></body></body>
<body name="rocker" pos="0.8 0 0"><joint name="c" axis="0 1 0"/>
<geom type="capsule" size="0.03" fromto="0 0 0 0 0 0.5"/></body></worldbody>
<equality><connect body1="coupler" body2="rocker" anchor="0.8 0 0"/></equality></mujoco>"""

model = mujoco.MjModel.from_xml_string(TEXT)
linkage = kf.load(TEXT)
q = kf.assemble(linkage, [0.4, -0.4, 0.4])
v = kf.minimal_coordinates(linkage, q).X @ [1.0]
state = kf.to_mujoco(linkage, model, q, v)
data = mujoco.MjData(model)
data.qpos[:], data.qvel[:] = state.q, state.v
mujoco.mj_forward(model, data)

# %%
# The same update
# ---------------
#
# MuJoCo's rows are the other way round and in the world's axes; its target leaves :math:`\dot J v` out.

turn = kf.frame_pose(linkage, q, linkage.loops[0].frame_a).rotation.T
reference = -turn @ data.efc_aref + constraint_drift(linkage, q, v)
soft = kf.cut_joint(linkage, q, v, np.zeros(3), noise=data.efc_R, reference=reference)
assert np.allclose(soft.a, data.qacc, rtol=1e-7)  # what MuJoCo's iterative solver leaves

# %%
# From rigid to open
# ------------------
#
# Between no noise and noise without end lie the rigid loop and the open tree.

levels = np.geomspace(1e-6, 1e6, 61)
scale = np.trace(kf.cut_joint(linkage, q, v, np.zeros(3)).compliance) / 3
a = np.array([kf.cut_joint(linkage, q, v, np.zeros(3), noise=r * scale * np.ones(3)).a for r in levels])
rigid = kf.forward_dynamics(linkage, q, v, np.zeros(3))
free = kf.forward_dynamics(linkage.open_tree, q, v, np.zeros(3))
assert np.allclose(a[0], rigid, atol=1e-3 * np.abs(free).max())
assert np.allclose(a[-1], free, atol=1e-3 * np.abs(free).max())

figure, ax = plt.subplots(figsize=(7.5, 4))
for i, (name, color) in enumerate(zip(("crank", "coupler", "rocker"), ("blue", "orange", "green"))):
    ax.semilogx(levels, a[:, i], color=COLORS[color], label=name)
    ax.plot(levels[0], rigid[i], "o", color=COLORS[color])
    ax.plot(levels[-1], free[i], "s", color=COLORS[color])
    ax.plot(np.mean(data.efc_R) / scale, data.qacc[i], "D", color=COLORS[color], markerfacecolor="white")
ax.set(xlabel="noise of the loop, in units of its compliance", ylabel="acceleration [rad/s²]")
ax.set_title("rigid (circles), MuJoCo (diamonds), open (squares)")
ax.legend()
plt.show()
