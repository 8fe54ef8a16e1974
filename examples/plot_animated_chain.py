r"""
A falling chain, in motion
==========================

Twelve rods on hinges, held out level and let go. Every acceleration of the film is one sweep of a Kalman filter from
the tip to the wall and one of a smoother back. :func:`kfdyn.viz.animate` draws it with matplotlib alone and writes a
page or a GIF of it.
"""

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.viz import STYLE, animate

plt.style.use(STYLE)

chain = kf.System(kf.models.uniform_chain(12, length=0.1).bodies, gravity=(0.0, -9.81, 0.0), name="chain")
fall = kf.simulate(chain, np.zeros(chain.nv), np.zeros(chain.nv), np.linspace(0, 1.2, 1201))

moving = animate(
    fall, plane="xy", fps=20, trail="rod_11", figure=plt.figure(figsize=(4, 4), dpi=60, layout="constrained")
)

# %%
# Nothing drives it and nothing brakes it: what it loses in height it has in speed.

total = fall.kinetic + fall.potential
drift = np.abs(total - total[0]).max() / fall.kinetic.max()
print(f"energy kept to {drift:.1e} of the largest kinetic energy")
assert drift < 1e-5

plt.show()
