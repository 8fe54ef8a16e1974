"""A step of a tree in long double, by Newton and Euler and plain elimination: for differences of many digits."""

import numpy as np

from kfdyn.multibody.parts.hinge import Coordinates

LONG = np.longdouble


def skew(x):
    """x ×."""
    zero = LONG(0)
    return np.array([[zero, -x[2], x[1]], [x[2], zero, -x[0]], [-x[1], x[0], zero]])


def cross(V):
    """V × of twists [angular; linear]."""
    out = np.zeros((6, 6), LONG)
    out[:3, :3] = out[3:, 3:] = skew(V[:3])
    out[3:, :3] = skew(V[3:])
    return out


def exponential(V):
    """Rotation and shift of exp(V)."""
    w = V[:3]
    angle, W = np.sqrt(w @ w), skew(w)
    if angle < 1e-5:
        a, b, c = 1 - angle**2 / 6, LONG(0.5) - angle**2 / 24, LONG(1) / 6 - angle**2 / 120
    else:
        a, b = np.sin(angle) / angle, (1 - np.cos(angle)) / angle**2
        c = (1 - a) / angle**2
    one = np.eye(3, dtype=LONG)
    return one + a * W + b * W @ W, (one + b * W + c * W @ W) @ V[3:]


def inward(R, p):
    """What brings twists of the outer frame to the inner one that is at p, turned by R."""
    out = np.zeros((6, 6), LONG)
    out[:3, :3] = out[3:, 3:] = R.T
    out[3:, :3] = -R.T @ skew(p)
    return out


def rotation(q):
    """Matrix of a quaternion (x, y, z, w)."""
    x = q[:3]
    return np.eye(3, dtype=LONG) + 2 * q[3] * skew(x) + 2 * skew(x) @ skew(x)


def turned(q, w):
    """Quaternion after a turn by w in its own axes."""
    half = np.sqrt(w @ w) / 2
    s = LONG(0.5) - half**2 / 12 if half < 1e-5 else np.sin(half) / (2 * half)
    x, y, c = q[:3], s * w, np.cos(half)
    return np.append(q[3] * y + c * x + np.cross(x, y), q[3] * c - x @ y)


class LongTree:
    """A tree of hinges of screws, balls and free ones."""

    def __init__(self, system):
        self.system, self.nv = system, system.nv
        self.gravity = np.append(np.zeros(3, LONG), -np.asarray(system.gravity, LONG))

    def _hinge(self, body, q, v):
        """R, p, S and Ṡv in the outboard frame."""
        if body.hinge.coordinates is not Coordinates.SCREWS:
            S = np.eye(6, dtype=LONG)[:, 6 - body.hinge.nv :] if body.hinge.nv == 6 else np.eye(6, dtype=LONG)[:, :3]
            p = q[:3] if body.hinge.nv == 6 else np.zeros(3, LONG)
            return rotation(q[-4:]), p, S, np.zeros(6, LONG)
        R, p, columns = np.eye(3, dtype=LONG), np.zeros(3, LONG), []
        bias = np.zeros(6, LONG)
        for screw, x in zip(np.asarray(body.hinge.screws, LONG), q):
            turn, shift = exponential(screw * x)
            columns = [inward(turn, shift) @ one for one in columns] + [screw]
            R, p = R @ turn, p + R @ shift
        moving = np.zeros(6, LONG)
        for one, rate in reversed(list(zip(columns, v))):
            bias -= cross(moving) @ one * rate
            moving = moving + one * rate
        return R, p, np.array(columns).T, bias

    def torques(self, q, v, a, gravity):
        """Inverse dynamics."""
        system, tau, known = self.system, np.zeros(self.nv, LONG), {}
        order = list(system.layout.order)
        for k in order:
            body, parent = system.bodies[k], int(system.parent[k])
            own, at = system.v_slice(body.hinge_name), system.q_slice(body.hinge_name)
            R, p, S, bias = self._hinge(body, q[at], v[own])
            placed = np.asarray(body.rotation, LONG)
            X = inward(placed @ R, np.asarray(body.position, LONG) + placed @ p)
            V0, A0 = known[parent][:2] if parent >= 0 else (np.zeros(6, LONG), gravity)
            rate = S @ v[own]
            V = X @ V0 + rate
            A = X @ A0 + S @ a[own] + bias + cross(V) @ rate
            M = np.asarray(body.inertia, LONG)
            known[k] = [V, A, M @ A - cross(V).T @ (M @ V), X, S, own, parent]
        for k in reversed(order):
            _, _, force, X, S, own, parent = known[k]
            tau[own] = S.T @ force
            if parent >= 0:
                known[parent][2] = known[parent][2] + X.T @ force
        return tau + np.asarray(system.layout.armature, LONG) * a

    def accelerations(self, q, v, tau):
        """Forward dynamics, by elimination on M."""
        n, none = self.nv, np.zeros(self.nv, LONG)
        still = np.zeros(6, LONG)
        M = np.array([self.torques(q, none, one, still) for one in np.eye(n, dtype=LONG)])
        b = tau - self.torques(q, v, none, self.gravity)
        for i in range(n):
            for j in range(i + 1, n):
                c = M[j, i] / M[i, i]
                M[j, i:] -= c * M[i, i:]
                b[j] -= c * b[i]
        for i in reversed(range(n)):
            b[i] = (b[i] - M[i, i + 1 :] @ b[i + 1 :]) / M[i, i]
        return b

    def moved(self, q, d):
        """q ⊕ d."""
        out = np.array(q, LONG)
        for body in self.system.bodies:
            own, at = self.system.v_slice(body.hinge_name), self.system.q_slice(body.hinge_name)
            if body.hinge.coordinates is Coordinates.SCREWS:
                out[at] = q[at] + d[own]
                continue
            out[at][-4:] = turned(q[at][-4:], d[own][:3])
            if body.hinge.nv == 6:
                out[at][:3] = q[at][:3] + rotation(q[at][-4:]) @ exponential(d[own])[1]
        return out

    def gap(self, q, near):
        """near ⊖ q for what is as near as 1e-5."""
        out = np.empty(self.nv, LONG)
        for body in self.system.bodies:
            own, at = self.system.v_slice(body.hinge_name), self.system.q_slice(body.hinge_name)
            if body.hinge.coordinates is Coordinates.SCREWS:
                out[own] = near[at] - q[at]
                continue
            R = rotation(q[at][-4:])
            turn = R.T @ rotation(near[at][-4:])
            w = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]) / 2
            w = w * (1 + w @ w / 6)
            out[own][:3] = w
            if body.hinge.nv == 6:
                W = skew(w)
                out[own][3:] = (np.eye(3, dtype=LONG) - W / 2 + W @ W / 12) @ R.T @ (near[at][:3] - q[at][:3])
        return out

    def step(self, q, v, tau, dt):
        """Euler's step."""
        after = v + dt * self.accelerations(q, v, tau)
        return self.moved(q, dt * after), after

    def jacobian(self, q, v, tau, dt, h=1e-6):
        """Of the step's tangent in (q, v, τ), by central differences: right to 1e-12."""
        n, h = self.nv, LONG(h)
        q, v, tau, dt = (np.asarray(x, LONG) for x in (q, v, tau, dt))
        there, _ = self.step(q, v, tau, dt)

        def end(d):
            q1, v1 = self.step(self.moved(q, d[:n]), v + d[n : 2 * n], tau + d[2 * n :], dt)
            return np.append(self.gap(there, q1), v1)

        units = h * np.eye(3 * n, dtype=LONG)
        return np.array([(end(d) - end(-d)) / (2 * h) for d in units], np.float64).T
