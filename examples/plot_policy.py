r"""
A policy learnt through a robot's motion
========================================

A pendulum hangs, and its motor is too weak to lift it: gravity pulls with :math:`m g l = 9.81` N m, the motor has 6.
A small network sees the angle and the velocity and says the torque, :math:`\tau = \pi_w(q, v)`. What it costs to move
as it says is a function of its weights, and JAX differentiates it: a scan of :func:`kfdyn.bridge.jax.step`, whose
derivatives are kfdyn's own,

.. math:: v_{k+1} = v_k + h\,a(q_k, v_k, \tau_k), \qquad q_{k+1} = q_k + h\,v_{k+1}.

Gradient descent then finds out by itself that one has to swing.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import kfdyn as kf
import kfdyn.bridge.jax as kj
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)
jax.config.update("jax_enable_x64", True)

STRONG, H, STEPS, STARTS = 6.0, 0.05, 80, 64
pendulum = kf.models.pendulum(length=1.0, mass=1.0)

# %%
# A motion under a policy, and what it costs
# ------------------------------------------
#
# All 64 starts move at once, in the lanes of the compiled recursions. Late in the motion the pendulum should stand.


def policy(weights, q, v):
    seen = jnp.concatenate([jnp.sin(q), jnp.cos(q), v / 4.0], -1)
    return STRONG * jnp.tanh(jnp.tanh(seen @ weights["in"] + weights["at"]) @ weights["out"])


def motion(weights, q, v):
    def move(state, _):
        tau = policy(weights, *state)
        after = kj.step(pendulum, *state, tau, H)
        return after, (*after, tau)

    return jax.lax.scan(move, (q, v), length=STEPS)[1]


draw = np.random.default_rng(0)
q0, v0 = jnp.asarray(draw.normal(0.0, 0.4, size=(2, STARTS, 1)))
late = jnp.linspace(0.0, 1.0, STEPS)[:, None, None] ** 2


def cost(weights):
    q, v, tau = motion(weights, q0, v0)
    return (late * (1.0 + jnp.cos(q) + 0.05 * v**2)).mean() + 1e-4 * (tau**2).mean()


# %%
# Learning
# --------
#
# Adam, with gradients no longer than 1.

weights = {"in": draw.normal(size=(3, 32)), "at": 0.1 * draw.normal(size=32), "out": 0.3 * draw.normal(size=(32, 1))}
weights = jax.tree.map(jnp.asarray, weights)
slope = jax.jit(jax.value_and_grad(cost))
first = second = jax.tree.map(jnp.zeros_like, weights)
before, costs = motion(weights, q0, v0), []
for k in range(1, 401):
    value, g = slope(weights)
    size = jnp.sqrt(sum(jnp.sum(x**2) for x in jax.tree.leaves(g)))
    g = jax.tree.map(lambda x, size=size: x / jnp.maximum(size, 1.0), g)
    first = jax.tree.map(lambda m, x: 0.9 * m + 0.1 * x, first, g)
    second = jax.tree.map(lambda s, x: 0.99 * s + 0.01 * x**2, second, g)
    rate = 0.01 * np.sqrt(1.0 - 0.99**k) / (1.0 - 0.9**k)
    weights = jax.tree.map(lambda w, m, s, rate=rate: w - rate * m / (jnp.sqrt(s) + 1e-8), weights, first, second)
    costs.append(float(value))
after = motion(weights, q0, v0)
standing = np.cos(np.asarray(after[0][-1])) < -0.95
print(f"cost {costs[0]:.2f} before, {costs[-1]:.3f} after; {standing.sum()} of {STARTS} stand")
assert costs[-1] < 0.25 * costs[0] and standing.mean() > 0.9
assert abs(np.asarray(after[2])).max() < STRONG

# %%
# What it has learnt
# ------------------
#
# It pumps: first away from where it wants to go, then back with the fall. Untrained the pendulum swings as it likes.

t = H * np.arange(1, STEPS + 1)
fig, (learning, angle, torque) = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
learning.semilogy(costs, color=COLORS["blue"])
learning.set(title="cost", xlabel="update")
turns = np.asarray(after[0][..., 0])
turns = turns - 2 * np.pi * np.round((turns[-1] - np.pi) / (2 * np.pi))  # all end near π
angle.plot(t, np.asarray(before[0][..., 0])[:, :8], color=COLORS["grey"], lw=0.8)
angle.plot(t, turns[:, :16], color=COLORS["blue"], lw=0.8)
angle.axhline(np.pi, color=COLORS["orange"], ls="--")
angle.set(title="angle: before grey, after blue", xlabel="time in s", ylabel="rad")
torque.plot(t, np.asarray(after[2][..., 0])[:, :16], color=COLORS["blue"], lw=0.8)
torque.axhline(9.81, color=COLORS["orange"], ls="--")
torque.set(title="torque; dashed: m g l", xlabel="time in s", ylabel="N m", ylim=(-7, 11))
plt.show()
