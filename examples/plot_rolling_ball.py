r"""
A ball that rolls
=================

A ball on a table may turn about any axis, but its centre moves only as it rolls: :math:`v = \omega \times r n` for the
radius r and the normal n. That is a hinge with three degrees of freedom whose map

.. math::

   H = \begin{bmatrix} 1 & r\,\tilde n \end{bmatrix}

is constant in the *table's* axes and so turns in the ball's own: no list of angles has these velocities as its rates,
and a custom :class:`~kfdyn.multibody.Hinge`, constant in the child's frame, cannot have it. The engine does not mind.
It wants (H, φ, Q) of this moment, and whatever moves the table enters as a known acceleration, the rheonomic term of
the lectures: :math:`V = \phi^* V_p + H^*\beta + U(t)`.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp

import kfdyn as kf
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

n = np.array([0.0, 0.0, 1.0])
mass, radius, g = 0.4, 0.05, 9.81


def tilde(v):
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


H = np.hstack([np.eye(3), radius * tilde(n)])  # v = ω × r n = −r n~ω, so H* = [1; −r n~]
assert np.allclose(H.T[3:] @ [1, 2, 3], np.cross([1, 2, 3], radius * n))
M = np.diag([0.4 * mass * radius**2] * 3 + [mass] * 3)  # homogeneous, about its centre


def rolling(drift, force=(0, 0, 0)):
    """Angular acceleration of the ball; ``drift`` is the acceleration the table gives its contact point."""
    eta = np.concatenate([np.zeros(3), np.asarray(drift, float)])
    xi = np.concatenate([np.zeros(3), -np.asarray(force, float)])
    ss = kf.StateSpace([-1], [None], [H], [M], xi=xi, eta=eta)
    return kf.bryson_frazier(ss, kf.kalman_filter(ss, np.zeros(3)), covariances=False).a


# %%
# Down a slope
# ------------
#
# Five sevenths of what would slide: in the filter, D = HMH* is the ball's inertia about the point it touches.

slope = np.radians(20)
a = rolling((0, 0, 0), mass * g * np.array([np.sin(slope), 0, -np.cos(slope)]))
assert np.isclose(np.cross(a, radius * n)[0], 5 / 7 * g * np.sin(slope), rtol=1e-12)
print(f"rolls at {np.cross(a, radius * n)[0]:.4f} m/s², slides at {g * np.sin(slope):.4f}")

# %%
# On a turntable
# --------------
#
# The table turns with Ω, and the ball does not fly off: it runs in circles, twice for every seven turns of the table,
# wherever it starts and however fast. The contact point moves with Ω × x, which is U(t); its derivative along the
# ball's path is the drift Ω × v.

Omega = 2 * np.pi * 0.5 * n  # half a turn a second


def motion(t, state, Omega=Omega):
    x, omega = state[:3], state[3:]
    v = np.cross(omega, radius * n) + np.cross(Omega, x)
    return np.concatenate([v, rolling(np.cross(Omega, v))])


starts = {"at rest": (np.array([0.3, 0, 0]), np.zeros(3)), "pushed": (np.array([0.2, 0, 0]), np.array([0.15, 0.35, 0]))}
paths, turns = {}, 7 / 2 / 0.5
for name, (x, v) in starts.items():
    omega = np.cross(n, v - np.cross(Omega, x)) / radius  # so that the ball rolls with this velocity
    times = np.linspace(0, turns, 200)
    solved = solve_ivp(
        motion, (0, turns), np.concatenate([x, omega]), t_eval=times, rtol=1e-9, atol=1e-11, method="DOP853"
    )
    paths[name] = solved.y[:3].T
    velocity = np.array([motion(t, y)[:3] for t, y in zip(solved.t, solved.y.T)])
    centre = x + np.cross(n, v) / (2 / 7 * np.linalg.norm(Omega))
    distance = np.linalg.norm(paths[name] - centre, axis=1)
    assert np.abs(distance - distance[0]).max() < 1e-6  # a circle
    assert np.linalg.norm(paths[name][-1] - x) < 1e-6  # closed after 7/2 turns of the table
    assert np.abs(np.linalg.norm(velocity, axis=1) - np.linalg.norm(v)).max() < 1e-6

# %%
# A ball with something inside
# ----------------------------
#
# A second body hangs in the ball on a pin and swings: two nodes, the rolling hinge at the root. Nothing else changes.
# Energy is kept, and the ball wobbles along as its bob swings across the direction of travel.

bob, arm = 0.1, 0.03
pin = np.array([0.0, 1.0, 0.0])  # in the ball's frame


def assemble(R, angle, omega, rate):
    """(H, φ, M, ξ, η) of ball and bob in world axes, from THEORY's formulas for a point of reference."""
    axis = R @ pin
    hang = R @ kf.spatial.rotation_vector_to_matrix(pin * angle) @ [0, 0, -arm]
    inertia = bob * np.block([[-tilde(hang) @ tilde(hang), tilde(hang)], [-tilde(hang), np.eye(3)]])
    turning = omega + axis * rate
    xi = np.concatenate([np.zeros(6), np.zeros(3), bob * np.cross(turning, np.cross(turning, hang))])
    xi[6:9] = bob * np.cross(hang, np.cross(turning, np.cross(turning, hang)))
    eta = np.concatenate([np.zeros(5), [g], np.cross(turning, axis * rate), np.zeros(3)])
    maps = [H, np.concatenate([axis, np.zeros(3)])[None]]
    return kf.StateSpace([-1, 0], [None, np.eye(6)], maps, [M, inertia], xi=xi, eta=eta), hang


def loaded(t, state):
    R, angle, omega, rate = state[3:12].reshape(3, 3), state[12], state[13:16], state[16]
    ss, _ = assemble(R, angle, omega, rate)
    a = kf.bryson_frazier(ss, kf.kalman_filter(ss, np.zeros(4)), covariances=False).a
    return np.concatenate([np.cross(omega, radius * n), (tilde(omega) @ R).ravel(), [rate], a])


def energy(state):
    R, angle, omega, rate = state[3:12].reshape(3, 3), state[12], state[13:16], state[16]
    _, hang = assemble(R, angle, omega, rate)
    v = np.cross(omega, radius * n)
    speed = v + np.cross(omega + R @ pin * rate, hang)
    ball = 0.5 * mass * v @ v + 0.5 * M[0, 0] * omega @ omega
    return ball + 0.5 * bob * speed @ speed + bob * g * hang[2]


begin = np.concatenate([np.zeros(3), np.eye(3).ravel(), [1.0], [-2.0, 7.0, 2.0], [0.0]])
wobble = solve_ivp(loaded, (0, 2), begin, t_eval=np.linspace(0, 2, 300), rtol=1e-8, atol=1e-10)
levels = np.array([energy(y) for y in wobble.y.T])
assert np.abs(levels - levels[0]).max() < 1e-6 * np.ptp([bob * g * arm, -bob * g * arm])
print(f"energy {levels[0]:.6f} J, kept to {np.abs(levels - levels[0]).max():.1e}")

figure, (table, path) = plt.subplots(1, 2, figsize=(10.5, 4.3))
table.add_patch(plt.Circle((0, 0), 0.75, color=COLORS["grey"], alpha=0.12))
for name, color in zip(paths, ("blue", "orange")):
    table.plot(
        *paths[name][:, :2].T,
        color=COLORS[color],
        label=f"starts {name}" + (", and stays" if name == "at rest" else ""),
    )
    table.plot(*paths[name][0, :2], "o", color=COLORS[color])
table.plot(0, 0, "+", color="black")
table.set(xlabel="x [m]", ylabel="y [m]", title="on a turntable: circles, 2/7 as fast as the table", aspect="equal")
table.legend(loc="lower left")
path.plot(wobble.y[0], wobble.y[1], color=COLORS["blue"], label="loaded")
empty = np.outer(wobble.t, np.cross(begin[13:16], radius * n))
path.plot(empty[:, 0], empty[:, 1], ":", color=COLORS["grey"], label="empty: straight on")
path.set(xlabel="x [m]", ylabel="y [m]", title="a bob swinging inside")
path.legend(loc="upper left")

plt.show()
