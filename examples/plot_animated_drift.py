r"""
Energy that comes back, and energy that does not
================================================

The same double pendulum twice, with steps of 20 ms that are too long for it: the variational step lets its energy swing
and return, the semi-implicit Euler step feeds it. The film shows the second one beside its energies.
"""

import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
from kfdyn.viz import STYLE, animate

plt.style.use(STYLE)

bodies = kf.models.double_pendulum(mass=(1.0, 0.7), length=(1.0, 0.8)).bodies
pendulum = kf.System(bodies, frames={"bob": kf.Frame("lower", position=[0.0, 0.0, -0.8])})
t = np.linspace(0, 4, 201)
start = np.array([2.0, 0.7]), np.zeros(2)
euler, variational = (kf.simulate(pendulum, *start, t, method=method) for method in ("euler", "symplectic"))

moving = animate(
    euler, fps=10, trail="bob", energy=True, figure=plt.figure(figsize=(7, 3.5), dpi=60, layout="constrained")
)

# %%
# How far each strays, against the largest kinetic energy:

for motion in (euler, variational):
    total = motion.kinetic + motion.potential
    print(f"{motion.method:>10}: {np.abs(total - total[0]).max() / motion.kinetic.max():.3f}")
strays = [np.abs(m.kinetic + m.potential - m.kinetic[0] - m.potential[0]).max() for m in (euler, variational)]
assert strays[0] > 2 * strays[1]

plt.show()
