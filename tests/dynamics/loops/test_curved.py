"""Hinges that follow others by functions, against Lagrange's equations, MuJoCo with a dense KKT system, and energy."""

import pickle
from functools import cache

import mpmath
import mujoco
import numpy as np
import pytest
import sympy as sp
from scipy.interpolate import CubicSpline

import kfdyn as kf
from kfdyn.dynamics.forward import FORWARD
from kfdyn.dynamics.inverse import INVERSE
from kfdyn.errors import KfdynError, ModelError, ShapeError
from kfdyn.multibody import Pose
from kfdyn.multibody.calls.packed_model import gears_of
from kfdyn.spatial import spatial_inertia

TX, TY, TURN = [0.01, 0.2, -0.13, 0.04, 0.03], [0.0, -0.1, 0.11, 0.0, -0.02], [0.1, -0.7, 0.3, 0.15, 0.05]


def planar(functions=(TX, TY, TURN)):
    """A planar knee: an angle that leads two slides and another angle, and an ankle that is free."""
    nothing, z = np.zeros((6, 6)), [0, 0, 1]
    bodies = [
        kf.Body("thigh", spatial_inertia(2.0, [0.2, 0, 0], 0.1 * np.eye(3)), kf.Hinge.revolute(z)),
        kf.Body("tx", nothing, kf.Hinge.prismatic([1, 0, 0]), "thigh", position=[0.4, 0, 0]),
        kf.Body("ty", nothing, kf.Hinge.prismatic([0, 1, 0]), "tx", armature=0.3),
        kf.Body("shank", spatial_inertia(1.5, [0.1, 0, 0], 0.05 * np.eye(3)), kf.Hinge.revolute(z), "ty"),
        kf.Body("foot", spatial_inertia(0.5, [0.1, 0, 0], 0.02 * np.eye(3)), kf.Hinge.revolute(z), "shank",
                position=[0.3, 0, 0]),
    ]  # fmt: skip
    coupling = kf.Coupling.by_functions("thigh", dict(zip(("tx", "ty", "shank"), functions)))
    frames = {"tip": kf.Frame("foot", position=[0.2, 0, 0])}
    return kf.System(bodies, [0, -9.81, 0], frames, couplings=[coupling])


@cache
def lagrange():
    """Lagrange's equations 𝓜a = right of the planar knee, and slopes, as functions of (s, p, ṡ, ṗ, τ₁, τ₂)."""
    s, p, ds, dp, t1, t2 = names = sp.symbols("s p ds dp t1 t2")
    x, y, turn = (sum(sp.Rational(str(c)) * s**k for k, c in enumerate(f)) for f in (TX, TY, TURN))

    def rate(f):
        return sp.diff(f, s) * ds + sp.diff(f, p) * dp

    def at(angle, r):
        return sp.Matrix([r * sp.cos(angle), r * sp.sin(angle)])

    knee = at(s, sp.Rational(4, 10) + x) + sp.Matrix([-sp.sin(s), sp.cos(s)]) * y
    shank, foot = s + turn, s + turn + p
    ankle = knee + at(shank, sp.Rational(3, 10))
    tenth = sp.Rational(1, 10)
    L = 0
    for m, J, place, angle in (
        (2, tenth, at(s, 2 * tenth), s),
        (sp.Rational(3, 2), tenth / 2, knee + at(shank, tenth), shank),
        (sp.Rational(1, 2), tenth / 5, ankle + at(foot, tenth), foot),
    ):
        v = place.applyfunc(rate)
        L += m * (v.dot(v) / 2 - sp.Rational(981, 100) * place[1]) + J * rate(angle) ** 2 / 2
    L += sp.Rational(3, 10) * rate(y) ** 2 / 2  # the rotor of a slide
    P = sp.Matrix([sp.diff(L, ds), sp.diff(L, dp)])
    M = P.jacobian([ds, dp])
    right = sp.Matrix([t1, t2]) + sp.Matrix([sp.diff(L, s), sp.diff(L, p)]) - P.jacobian([s, p]) * sp.Matrix([ds, dp])
    parts = [M, right, *(M.diff(x) for x in names[:4]), *(right.diff(x) for x in names[:4])]
    return sp.lambdify(names, parts, "mpmath", cse=True)


def exact(values):
    """a, ∂a/∂q and ∂a/∂v, computed in 40 digits: 𝓜⁻¹ right, and 𝓜⁻¹(∂right − ∂𝓜 a)."""
    with mpmath.workdps(40):
        M, right, *slopes = (mpmath.matrix(x) for x in lagrange()(*(mpmath.mpf(float(x)) for x in values)))
        a = mpmath.lu_solve(M, right)
        columns = [mpmath.lu_solve(M, slopes[4 + i] - slopes[i] * a) for i in range(4)]
        a, *columns = (np.array(x.tolist(), float)[:, 0] for x in (a, *columns))
    return a, np.stack(columns[:2], axis=1), np.stack(columns[2:], axis=1)


def close(found, expected, tolerance=1e-12):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max(initial=0.0)))


def as_functions(c):
    """A polynomial as four functions, which no recursion knows."""
    p = np.polynomial.Polynomial(c)
    return [p, p.deriv(1), p.deriv(2), p.deriv(3)]


@pytest.mark.parametrize("kind", ["polynomials", "functions"])
@pytest.mark.parametrize("state", [(0.4, -0.3, 0.7, -1.1, 0.2, 0.5), (0,) * 6, (-1.3, np.pi / 2, 2.0, 0.3, 0, 0)])
def test_lagrange(kind, state):
    """Forward dynamics and its derivatives, in which f''' is; the neutral pose and a right angle among the states."""
    system = planar() if kind == "polynomials" else planar([as_functions(c) for c in (TX, TY, TURN)])
    q, v, tau = np.array(state, float).reshape(3, 2)
    a, by_q, by_v = exact(state)
    for method in ("filter", "engine", "embedding", "mass_matrix"):
        close(kf.forward_dynamics(system, q, v, tau, method=method), a)
    close(kf.inverse_dynamics(system, q, v, a), tau)
    found = kf.forward_dynamics_derivatives(system, q, v, tau)
    close(found.da_dq, by_q, 1e-11)
    close(found.da_dv, by_v, 1e-11)
    close(found.da_dtau, kf.mass_matrix_inverse(system, q))
    inverse = kf.inverse_dynamics_derivatives(system, q, v, a)
    M = kf.mass_matrix(system, q)
    close(inverse.dtau_dq, -M @ by_q, 1e-11)
    close(inverse.dtau_dv, -M @ by_v, 1e-11)
    close(inverse.dtau_da, M)


def random_model(rng, bodies):
    """An MJCF tree with references, rotors and polynomials between joints, polynomials of polynomials among them."""
    text, names, ends = [], [], []
    for i in range(bodies):
        joints = ""
        for j in range(int(rng.integers(1, 4))):
            name, kind = f"j{i}_{j}", rng.choice(["hinge", "slide"])
            axis, ref, rotor = " ".join(map(str, rng.normal(size=3))), rng.normal(), abs(rng.normal())
            joints += f'<joint name="{name}" type="{kind}" axis="{axis}" ref="{ref:.3f}" armature="{rotor:.3f}"/>'
            names.append(name)
        size, place = (" ".join(f"{x:.3f}" for x in y) for y in (rng.uniform(0.05, 0.2, 3), rng.normal(size=3)))
        text.append(f'<body name="b{i}" pos="{place}">{joints}<geom type="box" size="{size}" pos="{place}"/>')
        ends.append("</body>")
        if rng.random() < 0.4:
            text.append(ends.pop())
    equalities = ""
    for k in range(1, len(names)):
        draw = rng.random() if k > 1 else 0.0
        if draw < 0.45:  # a joint follows an earlier one
            c = rng.normal(size=5) * 0.4 * (rng.random(5) < 0.7)
            second = f' joint2="{names[int(rng.integers(k))]}"' if draw < 0.4 else ""
            equalities += f'<joint joint1="{names[k]}"{second} polycoef="{" ".join(map(repr, c.tolist()))}"/>'
    return (
        f'<mujoco><compiler angle="radian"/><worldbody>{"".join(text)}{"".join(ends)}</worldbody>'
        f"<equality>{equalities}</equality></mujoco>"
    )


class Kkt:
    """MuJoCo's 𝓜 and c of all joints, and rows of its equalities made from the coefficients in its tables."""

    def __init__(self, text):
        self.model = mujoco.MjModel.from_xml_string(text)
        self.data = mujoco.MjData(self.model)

    def at(self, system, q, v):
        model, data = self.model, self.data
        state = kf.to_mujoco(system, model, q, v)
        data.qpos[:], data.qvel[:] = state.q, state.v
        mujoco.mj_forward(model, data)
        assert data.ne == model.neq
        close(data.efc_pos[: data.ne], np.zeros(data.ne), 1e-13)  # its equalities hold
        self.M = np.zeros((model.nv, model.nv))
        unit = np.eye(model.nv)
        for i in range(model.nv):
            mujoco.mj_mulM(model, data, self.M[i], unit[i])
        self.J, self.drift = np.zeros((model.neq, model.nv)), np.zeros(model.neq)
        for e in range(model.neq):
            one, two = model.eq_obj1id[e], model.eq_obj2id[e]
            self.J[e, one] = 1.0
            if two >= 0:
                p = np.polynomial.Polynomial(model.eq_data[e, :5])
                x, rate = data.qpos[two] - model.qpos0[two], data.qvel[two]
                self.J[e, two] -= p.deriv(1)(x)
                self.drift[e] = -p.deriv(2)(x) * rate**2
        close(self.J @ state.v, np.zeros(model.neq), 1e-12 * max(1.0, np.abs(state.v).max()))
        return data.qfrc_bias.copy()

    def solve(self, force):
        """Accelerations of all joints under forces on all of them."""
        n, r = self.M.shape[0], len(self.J)
        whole = np.block([[self.M, -self.J.T], [self.J, np.zeros((r, r))]])
        return np.linalg.solve(whole, np.r_[force, -self.drift])[:n]


@pytest.mark.parametrize("seed", range(12))
def test_mjcf_models_against_a_dense_kkt_system(seed):
    rng = np.random.default_rng(seed)
    text = random_model(rng, 4)
    system, kkt = kf.load(text), Kkt(text)
    q, v, tau = 0.5 * rng.normal(size=system.nq), rng.normal(size=system.nv), rng.normal(size=system.nv)
    bias = kkt.at(system, q, v)
    dofs = {kkt.model.joint(j).name: kkt.model.jnt_dofadr[j] for j in range(kkt.model.njnt)}
    order = [dofs[name] for name in system.hinge_names]
    own = [i for i, has in zip(order, system._expansion.has_own) if has]
    force = np.zeros(kkt.model.nv)
    force[own] = tau
    every = kkt.solve(force - bias)
    a = kf.forward_dynamics(system, q, v, tau)
    close(a, every[own], 1e-11)
    close(kf.forward_dynamics(system, q, v, tau, method="embedding"), every[own], 1e-11)
    close(kf.inverse_dynamics(system, q, v, a), tau, 1e-11)
    close(kf.to_mujoco(system, kkt.model, q, v, a).a, every, 1e-11)
    back = kf.from_mujoco(system, kkt.model, *kf.to_mujoco(system, kkt.model, q, v, a)[:3])
    for found, expected in zip(back, (q, v, a)):
        close(found, expected, 1e-13)
    X = system.expansion(q)[np.argsort(order)]
    M = X.T @ kkt.M @ X
    close(kf.mass_matrix(system, q), M)
    close(kf.mass_matrix_inverse(system, q), np.linalg.inv(M), 1e-10)
    close(kf.mass_matrix_logdet(system, q), np.linalg.slogdet(M)[1])
    drift = np.zeros(kkt.model.nv)  # Ẋv: what joints accelerate by at a = 0, from the KKT solution
    drift[:] = every - X @ every[own]
    close(kf.bias_forces(system, q, v), X.T @ (bias + kkt.M @ drift), 1e-11)


def chained(coefficients):
    """An MJCF chain in which every joint follows the one before it by the same polynomial."""
    places = range(len(coefficients) + 1)
    bodies = "".join(
        f'<body name="b{i}" pos="0.1 0 0"><joint name="j{i}" axis="0 {i % 2} {1 - i % 2}"/>'
        '<geom size="0.05" pos="0.1 0 0.02" mass="1"/>'
        for i in places
    )
    rules = "".join(
        f'<joint joint1="j{i + 1}" joint2="j{i}" polycoef="{" ".join(map(repr, c))}"/>'
        for i, c in enumerate(coefficients)
    )
    ends = "</body>" * len(places)
    return f"<mujoco><worldbody>{bodies}{ends}</worldbody><equality>{rules}</equality></mujoco>"


def test_polynomials_of_polynomials_keep_their_digits():
    """T₄ of T₄ of T₄ is T₆₄(cos θ) = cos 64θ; its coefficients reach 1e23, and their sum had no digit left."""
    text = chained([[1.0, 0.0, -8.0, 0.0, 8.0]] * 3)
    system, kkt = kf.load(text), Kkt(text)
    turn = np.linspace(0.1, 3.0, 50)[:, None]
    # a change of cos θ by its rounding changes cos 64θ by 64 sin 64θ/sin θ of it, which is the bound here
    close(system.expand(np.cos(turn)), np.cos(turn * [1, 4, 16, 64]), 1e-12)
    close(system.expansion(np.cos(turn))[..., 0], [1, 4, 16, 64] * np.sin(turn * [1, 4, 16, 64]) / np.sin(turn), 1e-11)
    q, v, tau = np.array([0.3]), np.array([0.01]), np.array([0.2])
    bias = kkt.at(system, q, v)
    a = kf.forward_dynamics(system, q, v, tau)
    close(kf.to_mujoco(system, kkt.model, q, v, a).a, kkt.solve(np.append(tau, np.zeros(3)) - bias), 1e-11)
    found, h = kf.forward_dynamics_derivatives(system, q, v, tau), 1e-6

    def slope(at):
        return (8 * (at(h) - at(-h)) - at(2 * h) + at(-2 * h)) / (12 * h)

    close(found.da_dq[0], slope(lambda x: kf.forward_dynamics(system, q + x, v, tau)), 1e-7)  # differences
    close(found.da_dv[0], slope(lambda x: kf.forward_dynamics(system, q, v + x, tau)), 1e-7)
    again = pickle.loads(pickle.dumps(system))
    close(kf.forward_dynamics(again, q, v, tau), a, 1e-15)


def test_polynomials_of_lines_stay_polynomials():
    """A line leaves the degree as it is, so that compiled code still knows the function."""
    line, bent = [0.2, -0.5, 0.0, 0.0, 0.0], [0.1, 0.3, 0.2, 0.0, 0.1]
    system = kf.load(chained([line, bent, line]))
    x = np.linspace(-1, 1, 11)
    expected = [x]
    for c in (line, bent, line):
        expected.append(np.polyval(c[::-1], expected[-1]))
    assert system._expansion.is_polynomial
    close(system.expand(x[:, None]), np.stack(expected, axis=1), 1e-14)


@pytest.mark.filterwarnings("ignore:.*too close to singular:kfdyn.io.load_result.LoadWarning")
def test_mujoco_is_asked_where_slides_alone_would_have_no_inertia():
    """Four slides of one body: the open tree's mass matrix is singular, and its inverse was MuJoCo's answer."""
    slides = "".join(f'<joint name="s{i}" type="slide" axis="{a}"/>' for i, a in enumerate(("1 0 0", "0 1 0", "0 0 1")))
    text = (
        '<mujoco><worldbody><body name="thigh"><joint name="hip" axis="0 1 0"/><geom size="0.1" pos="0 0 -0.2"/>'
        f'<body name="shank" pos="0 0 -0.4">{slides}<joint name="more" type="slide" axis="1 1 0"/>'
        '<joint name="knee" axis="0 1 0"/><geom size="0.1" pos="0 0 -0.2"/></body></body></worldbody><equality>'
        '<joint joint1="s0" joint2="knee" polycoef="0.01 0.1 0.02 0 0"/><joint joint1="s1" joint2="knee" '
        'polycoef="0 0.05 0 0.01 0"/><joint joint1="s2" joint2="knee" polycoef="0 0 0.03 0 0"/>'
        '<joint joint1="more" joint2="hip" polycoef="0 0.04 0.03 0 0"/></equality></mujoco>'
    )
    report = kf.cross_check(kf.load(text), [0.2, 0.4], samples=3000, seed=0)
    assert report.passed
    assert "𝓜⁻¹ of its text" in str(report)


def test_a_batch_has_the_rows_of_its_states_and_plain_code_says_the_same():
    system, rng = planar(), np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, 4, 3, 2))
    a, tau_back = np.empty((2, 12, 2))
    together = kf.forward_dynamics(system, q, v, tau)
    flat = [x.reshape(12, 2) for x in (q, v, tau)]
    gears = gears_of(system)
    assert FORWARD.variants["curved"].entry.plain(gears, *flat, None, system.gravity, a) == 1
    close(a.reshape(4, 3, 2), together)
    assert INVERSE.variants["curved"].entry.plain(gears, flat[0], flat[1], a, None, system.gravity, tau_back) == 1
    close(tau_back, flat[2], 1e-11)
    for at in np.ndindex(4, 3):
        assert np.array_equal(kf.forward_dynamics(system, q[at], v[at], tau[at]), together[at])
    close(kf.forward_dynamics(system, q.tolist(), v, tau[0, 0]), kf.forward_dynamics(system, q, v, 0 * tau + tau[0, 0]))


def test_polynomials_of_degree_one_are_linear_couplings_to_the_bit():
    arm, rng = kf.models.puma560(), np.random.default_rng(1)
    names = arm.hinge_names
    made = kf.Coupling.by_functions(names[1], {names[2]: [0.2, -0.5, 0, 0, 0], names[4]: [0.1]})
    line = kf.Coupling([names[1], names[2], names[4]], [1.0, -0.5, 0.0], [0.0, 0.2, 0.1])
    assert not made.curves
    one, two = arm.with_couplings([made]), arm.with_couplings([line])
    q, v, tau = rng.normal(size=(3, 5, 4))
    assert np.array_equal(kf.forward_dynamics(one, q, v, tau), kf.forward_dynamics(two, q, v, tau))
    # and a curve whose bends are too small to count gives their numbers by its own code
    bent = kf.Coupling.by_functions(names[1], {names[2]: [0.2, -0.5, 1e-200], names[4]: [0.1]})
    curved = arm.with_couplings([bent])
    assert curved.is_curved
    close(kf.forward_dynamics(curved, q, v, tau), kf.forward_dynamics(two, q, v, tau))
    close(kf.mass_matrix(curved, q), kf.mass_matrix(two, q))


def test_a_follower_at_rest_and_one_that_is_all_the_inertia():
    """f' = 0 stops a hinge: nothing is wrong with that, unless it alone had inertia."""
    system = planar([[0.1, 0, 1.0], [0, 0, 0, 1.0], [0.2]])
    close(system.expansion([0.0, 0.3])[1:4, 0], np.zeros(3))
    a = kf.forward_dynamics(system, [0.0, 0.3], [1.0, 0.2], [0.1, 0.2])
    close(kf.inverse_dynamics(system, [0.0, 0.3], [1.0, 0.2], a), [0.1, 0.2])
    bodies = [
        kf.Body("cam", np.zeros((6, 6)), kf.Hinge.revolute()),
        kf.Body("valve", np.diag([0.1] * 3 + [1] * 3), kf.Hinge.prismatic([0, 0, 1])),
    ]
    engine = kf.System(bodies, couplings=[kf.Coupling.by_functions("cam", {"valve": [0, 0, 0.5]})])
    close(kf.forward_dynamics(engine, [0.5], [2.0], [0.0]), [(-9.81 - 4.0) / 0.5])  # x = s²/2, s s̈ + ṡ² = −g
    for function in (kf.mass_matrix_inverse, lambda s, q: kf.forward_dynamics(s, q, None, [1.0])):
        with pytest.raises(KfdynError, match="cam"):
            function(engine, [0.0])


def test_kinematics_energies_and_what_is_made_of_them():
    system, other, rng = planar(), planar([as_functions(c) for c in (TX, TY, TURN)]), np.random.default_rng(2)
    q, v, a = rng.normal(size=(3, 6, 2))
    tree, Q = system.open_tree, system.expand(q)
    X = system.expansion(q)
    V = np.einsum("bij,bj->bi", X, v)
    close(Q[:, [1, 2, 3]], np.stack([np.polyval(c[::-1], q[:, 0]) for c in (TX, TY, TURN)], axis=1), 1e-14)
    for made in (system, other):
        close(made.expand(q), Q, 1e-14)
        close(made.expansion(q), X, 1e-14)
        close(kf.jacobian(made, q, "foot"), kf.jacobian(tree, Q, "foot") @ X)
        close(kf.frame_velocity(made, q, v, "foot"), kf.frame_velocity(tree, Q, V, "foot"))
        close(kf.frame_pose(made, q, "foot").position, kf.frame_pose(tree, Q, "foot").position)
        close(kf.kinetic_energy(made, q, v), kf.kinetic_energy(tree, Q, V))
        close(kf.potential_energy(made, q), kf.potential_energy(tree, Q))
        close(kf.momentum(made, q, v), kf.momentum(tree, Q, V))
        close(kf.centroidal_momentum(made, q, v), kf.centroidal_momentum(tree, Q, V))
        close(kf.center_of_mass(made, q), kf.center_of_mass(tree, Q))
        close(kf.mass_matrix(made, q), np.swapaxes(X, 1, 2) @ kf.mass_matrix(tree, Q) @ X)
        J = kf.jacobian(made, q, "foot")
        close(
            kf.operational_space_compliance(made, q, ["foot"]),
            J @ kf.mass_matrix_inverse(made, q) @ np.swapaxes(J, 1, 2),
        )
        bend = np.stack([np.polynomial.Polynomial(c).deriv(2)(q[:, 0]) for c in (TX, TY, TURN)], axis=1)
        A = np.einsum("bij,bj->bi", X, a)
        A[:, 1:4] += bend * v[:, :1] ** 2
        close(kf.frame_acceleration(made, q, v, a, "foot"), kf.frame_acceleration(tree, Q, V, A, "foot"))
        A = A - np.einsum("bij,bj->bi", X, a)
        close(kf.frame_bias_acceleration(made, q, v, "foot"), kf.frame_acceleration(tree, Q, V, A, "foot"))
        assert np.array_equal(kf.integrate(made, q, v), q + v)
        close(kf.difference(made, q, q + v), v)
        push = rng.normal(size=(6, 5, 6))
        tau = kf.inverse_dynamics(made, q, v, a, push)
        work = np.einsum("bki,bki->b", push, np.stack([kf.frame_velocity(tree, Q, V, b.name) for b in tree.bodies], 1))
        close((v * (kf.inverse_dynamics(made, q, v, a) - tau)).sum(1), work, 1e-11)
        full, found = kf.hybrid_dynamics(made, q, v, tau, a, prescribed=[True, False], external_forces=push)
        close(full, tau, 1e-11)
        close(found, a, 1e-11)
        tau = kf.computed_torque(made, q, v, q + 0.1, v, a, kp=3.0, kd=2.0)
        close(kf.forward_dynamics(made, q, v, tau), a + 0.3, 1e-11)
        target = Pose(np.eye(3), kf.frame_pose(made, q, "tip").position)
        tau = kf.operational_space_control(made, q, v, "tip", target, 4.0, 1.0, axes=(3, 4))
        moved = kf.frame_acceleration(made, q, v, kf.forward_dynamics(made, q, v, tau), "tip")
        close(moved[:, 3:5], -kf.frame_velocity(made, q, v, "tip")[:, 3:5], 1e-10)


@pytest.mark.parametrize("method", ["rk4", "euler", "implicit", "symplectic"])
def test_motions(method):
    """Energy is kept, and compiled steps are those function by function; springs, dampers and pushes act on hinges."""
    system, other = planar(), planar([as_functions(c) for c in (TX, TY, TURN)])
    q, v, t = np.array([[0.4, 0.1], [-0.2, 0.5]]), np.array([[0.5, -1.0], [0.0, 0.0]]), np.linspace(0, 0.1, 51)
    forces = np.zeros((5, 6))
    forces[4] = [0.1, 0.2, 0.3, 1, 2, 0]
    for options in ({}, {"damping": [0.3, 0.1], "stiffness": [20.0, 0.0], "external_forces": forces}):
        one, two = (kf.simulate(each, q, v, t, method=method, **options) for each in (system, other))
        close(one.q, two.q, 1e-11)
        close(one.v, two.v, 1e-10)
        close(one.work, two.work, 1e-10)
    whole, half = (kf.simulate(system, q, v, t, method=method, substeps=n).worst_energy_drift for n in (1, 2))
    order = {"rk4": 4, "symplectic": 2}.get(method, 1)
    assert 0.6 * 2**order < whole / half < 1.6 * 2**order


def test_damping_of_a_hinge_that_follows_takes_its_power():
    bodies = [kf.Body(b.name, b.inertia, b.hinge, b.parent, position=b.position, damping=2.0, stiffness=5.0)
              for b in planar().bodies]  # fmt: skip
    system = kf.System(bodies, gravity=[0, -9.81, 0], couplings=planar().couplings)
    motion = kf.simulate(system, [0.4, 0.1], [1.0, -1.0], np.linspace(0, 0.2, 401), damping=True, stiffness=True)
    assert motion.work[-1] < -0.1
    assert motion.worst_energy_drift < 1e-8


def test_the_estimation_problem_and_its_samples():
    system, q, v = planar(), np.array([0.4, 0.1]), np.array([1.0, -0.5])
    ss = kf.as_estimation(system, q, v)
    tau = np.array([0.3, -0.2])
    a = kf.forward_dynamics(system, q, v, tau)
    assert kf.cross_check(system, q, samples=4000, seed=1).passed
    near = kf.minimal_coordinates(system, q, v)
    close(near.mass_matrix, kf.mass_matrix(system, q))
    close(near.bias, kf.bias_forces(system, q, v))
    close(kf.forward_dynamics(pickle.loads(pickle.dumps(system)), q, v, tau), a, 1e-15)
    close(kf.forward_dynamics(kf.specialise(system), np.tile(q, (9, 1)), v, tau), np.tile(a, (9, 1)))
    assert ss.n_outputs == 2
    # the rotor of a slide takes R Ẋv, which dynamics_filter leaves out of what is measured
    close(kf.dynamics_filter(system, q, v, tau)[1].a, a)
    modes = kf.modes(system, q, rest=q)
    close(modes.stiffness, 0.5 * (modes.stiffness + modes.stiffness.T))
    by_q = kf.inverse_dynamics_derivatives(system, q, None, np.zeros(2)).dtau_dq
    close(modes.stiffness, 0.5 * (by_q + by_q.T), 1e-9)


def test_loops_and_curves():
    """A foot that is held at a point: all methods agree, and the point does not accelerate."""
    for functions in ((TX, TY, TURN), [as_functions(c) for c in (TX, TY, TURN)]):
        tree = planar(functions)
        system = tree.with_loops([kf.Loop(None, "tip", rows=(4,))])
        q = np.array([0.4, 0.1])
        v = kf.minimal_coordinates(system, q).X @ [1.3]
        a = [kf.forward_dynamics(system, q, v, [0.1, 0.2], method=m) for m in ("cut", "embedding", "proximal")]
        close(a[1], a[0], 1e-11)
        close(a[2], a[0], 1e-8)  # iterated
        close(kf.frame_acceleration(tree, q, v, a[0], "tip")[4], 0.0, 1e-11)
        J = kf.jacobian(tree, q, "tip")[4]
        rest = kf.inverse_dynamics(tree, q, v, a[0]) - [0.1, 0.2]
        close(rest - J * (J @ rest) / (J @ J), np.zeros(2), 1e-11)


def test_flexible_bodies_follow_curves():
    """The power of the torques is the change of energy."""
    joint = {"hinge": kf.Hinge.revolute(), "parent": "shank", "position": [0.3, 0, 0]}
    rod = kf.beam("rod", 0.5, 1.0, bending=(0.0, 20.0), modes=2, **joint)
    bodies = [*planar().open_tree.bodies[:4], rod]
    system = kf.FlexibleSystem(bodies, gravity=[0, -9.81, 0], couplings=planar().couplings)
    rng = np.random.default_rng(3)
    q, v, tau = system.random_configuration(rng), rng.normal(size=system.nv), rng.normal(size=system.nv)
    a = kf.forward_dynamics(system, q, v, tau)
    close(kf.inverse_dynamics(system, q, v, a), tau, 1e-10)
    h = 1e-4

    def energy(s):
        here, rate = kf.integrate(system, q, s * v + 0.5 * s * s * a), v + s * a
        return kf.kinetic_energy(system, here, rate) + kf.potential_energy(system, here)

    slope = (8 * (energy(h) - energy(-h)) - energy(2 * h) + energy(-2 * h)) / (12 * h)
    close(slope, v @ tau, 1e-8)  # differences


def test_a_spline_is_a_function():
    knots = np.linspace(-2, 2, 9)
    spline = CubicSpline(knots, np.sin(knots))
    system = planar([TX, TY, spline])
    q, v, tau = np.array([0.3, 0.1]), np.array([1.0, 2.0]), np.array([0.1, 0.0])
    a = kf.forward_dynamics(system, q, v, tau)
    close(kf.inverse_dynamics(system, q, v, a), tau)
    # on one piece it is a polynomial
    piece = spline.c[::-1, 4]
    local = np.polynomial.Polynomial(piece)(np.polynomial.Polynomial([-spline.x[4], 1.0]))
    close(a, kf.forward_dynamics(planar([TX, TY, local]), q, v, tau))


def test_what_is_refused():
    by = kf.Coupling.by_functions
    with pytest.raises(ModelError, match="does not tell its derivatives"):
        by("a", {"b": np.sin})
    with pytest.raises(ModelError, match="f and three derivatives"):
        by("a", {"b": [np.sin, np.cos]})
    with pytest.raises(ModelError, match="map names of hinges"):
        by("a", ["b"])
    with pytest.raises(ModelError, match="finite"):
        by("a", {"b": [0, np.nan]})
    with pytest.raises(ShapeError, match="coefficients"):
        by("a", {"b": [[0, 1.0], [1, 2]]})
    with pytest.raises(ModelError, match="named twice"):
        by("a", {"a": [0, 1, 2]})
    system = planar()
    for key in ("X", "offset"):
        with pytest.raises(ModelError, match="depends on q"):
            getattr(system.couplings[0], key)
    with pytest.raises(ModelError, match="give q"):
        system.expansion()
    with pytest.raises(ModelError, match="full matrix"):
        system.armature  # noqa: B018
    with pytest.raises(ModelError, match="follows 'thigh'"):
        system.v_slice("shank")
    with pytest.raises(ModelError, match="by a line"):
        kf.save_urdf(system)
    with pytest.raises(ModelError, match="functions"):
        kf.estimate_dynamics(system, [0.1, 0.2], None, [kf.sensors.JointTorque(0.1, ["thigh"])], [[0.0]])
    wrong = planar([TX, TY, [lambda s: np.zeros(3), np.cos, np.sin, np.cos]])
    with pytest.raises(ShapeError, match="'shank'"):
        kf.forward_dynamics(wrong, [0.1, 0.2], None, [0.0, 0.0])
    wrong = planar([TX, TY, [lambda s: s / 0.0, np.cos, np.sin, np.cos]])
    with pytest.raises(ModelError, match=r"'shank'.*not finite"), np.errstate(all="ignore"):
        kf.forward_dynamics(wrong, [0.1, 0.2], None, [0.0, 0.0])
    with pytest.raises(KfdynError, match="not finite"):
        kf.forward_dynamics(system, [1e100, 0.2], None, [0.0, 0.0])
