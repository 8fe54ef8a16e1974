"""Every function of the textbook takes rational numbers, stays rational, and means what it means with floats."""

import inspect
from fractions import Fraction

import numpy as np
import pytest

from kfdyn.textbook import part, r86, sko, srb

F = Fraction
N = 3

# What takes no numbers (a robot, callables), draws with floats, differentiates by complex steps, or only holds results.
APART = {
    "r86": {"arm_of", "draw_9_1_to_9_3"},
    "sko": {"model_of", "recipe", "lagrange"},
    "part": set(),
    "srb": {"summary_table", "free_motion", "measure_formulations"},
}


def rational(*shape, seed=0):
    """An array of small rational numbers."""
    rng = np.random.default_rng(seed)
    out = np.empty(shape, dtype=object)
    for at in np.ndindex(shape):
        out[at] = F(int(rng.integers(-9, 10)), int(rng.integers(1, 6)))
    return out


def definite(n, seed=0):
    """A symmetric positive definite one."""
    root = rational(n, n, seed=seed)
    return root @ root.T + np.array([[F(int(i == j)) for j in range(n)] for i in range(n)], dtype=object)


def the_arm():
    """Three links with axes and turns that are rational: (2, 1, 2)/3 is a unit vector, (3, 4)/5 cosine and sine."""
    turn = r86.rotation(np.array([F(2, 3), F(1, 3), F(2, 3)], dtype=object), F(3, 5), F(4, 5))
    links = []
    for k in range(N):
        m, p = F(k + 1), rational(3, seed=k)
        I = definite(3, k) + m * ((p @ p) * np.array(np.eye(3, dtype=int), dtype=object) - np.outer(p, p))
        h = np.array([[F(0), F(0), F(1)], [F(2, 3), F(1, 3), F(2, 3)], [F(0), F(1), F(0)]][k], dtype=object)
        links.append(r86.Link(m, I, p, rational(3, seed=9 + k), h, turn))
    return r86.Arm(tuple(links), np.array([F(0), F(1), F(-10)], dtype=object))


def r86_cases(arm, u_dot, tau, cosine, sine):
    """Every result of r86 for one arm, by name; angles all have the same cosine and sine."""
    link, T, f = arm.link(2), tau, u_dot
    angles = {"cosine": lambda _: cosine, "sine": lambda _: sine}
    chain = r86.chain_of(arm, u_dot, u_dot, **angles)
    filtered = r86.filter_8(chain, tau)
    smoothed = r86.smoother_8(chain, filtered)
    solution = r86.boundary_value_6(chain, tau)
    minus, plus = r86.velocities_5_1_to_5_3(chain.N, chain.phi, chain.H, u_dot)
    lam, _ = r86.accelerations_5_4_5_5(chain, tau)
    form = r86.ClosedForm(chain, tau)
    P, H, D, G = filtered.P_minus[2], chain.H[2], filtered.D[2], filtered.G[2]
    z, e = filtered.z_minus[2], filtered.e_minus[2]
    out = {
        "rotation": r86.rotation(link.h, cosine, sine),
        "change_of_frame": r86.change_of_frame(link, cosine, sine),
        "transition_3_5": r86.transition_3_5(link.L),
        "spatial_inertia_3_1": r86.spatial_inertia_3_1(link),
        "kinetic_energy_3_2": r86.kinetic_energy_3_2(link, minus[2]),
        "kinetic_energy_3_3": r86.kinetic_energy_3_3(link, minus[2]),
        "bias_force_4_4": r86.bias_force_4_4(link, minus[2], T, f),
        "bias_force_4_4_as_printed": r86.bias_force_4_4_as_printed(link, minus[2], T, f),
        "bias_acceleration_5_6": r86.bias_acceleration_5_6(plus[2], link.h, u_dot[1]),
        "chain_of": (*chain, r86.chain_of(arm, u_dot, u_dot, **angles, as_printed=True).xi),
        "velocities_5_1_to_5_3": (minus, plus),
        "accelerations_5_4_5_5": lam,
        "forces_4_1_to_4_3": r86.forces_4_1_to_4_3(chain, lam),
        "boundary_value_6": solution,
        "residuals_6_1_to_6_6": list(r86.residuals_6_1_to_6_6(chain, tau, solution).values()),
        "inverse_dynamics_7": r86.inverse_dynamics_7(chain, tau),
        "transition": r86.transition(chain, 3, 1),
        "co_state_7_2": r86.co_state_7_2(chain, tau, 1),
        "state_7_3": r86.state_7_3(chain, lam, 3),
        "state_7_4": r86.state_7_4(chain, tau, 2),
        "state_7_6": r86.state_7_6(chain, tau, 2),
        "kernel_7_7": r86.kernel_7_7(chain, 3, 2),
        "kernel_table": r86.kernel_table(chain, 3, 2),
        "composite_7_8": r86.composite_7_8(chain, 2),
        "composites_7_9": r86.composites_7_9(chain),
        "inertia_matrix_7_11": r86.inertia_matrix_7_11(chain),
        "bias_moments_7_11": r86.bias_moments_7_11(chain),
        "equation_of_motion_7_1": r86.equation_of_motion_7_1(chain, tau),
        "state_prediction_8_3": r86.state_prediction_8_3(chain.phi[2], z, chain.xi[2]),
        "inertia_prediction_8_4": r86.inertia_prediction_8_4(chain.phi[2], P, chain.M[2]),
        "gain_8_5": r86.gain_8_5(P, H),
        "innovation_8_6": r86.innovation_8_6(tau[1], H, z),
        "inertia_update_8_9": r86.inertia_update_8_9(P, H, D),
        "state_update_8_7": r86.state_update_8_7(z, G, e, P, chain.eta[2]),
        "residual_8_8": r86.residual_8_8(D, e),
        "inertia_updates_8_25": r86.inertia_updates_8_25(P, G, H),
        "filter_8": filtered,
        "smoother_8": smoothed,
        "co_state_update_8_13": r86.co_state_update_8_13(chain, filtered, smoothed, 2),
        "forward_dynamics_8": r86.forward_dynamics_8(chain, tau),
        "mean_and_covariance": r86.mean_and_covariance(chain),
        "conditional": r86.conditional(chain, tau, 2, 2),
        "innovation_9_5": r86.innovation_9_5(chain, tau, 2),
        "innovation_covariance_9_7": r86.innovation_covariance_9_7(chain, 2),
        "update_9_9": r86.update_9_9(P, H, D),
        "smoothed_9_14": r86.smoothed_9_14(filtered, smoothed.lam_minus, 2),
        "co_states_9_15_9_16": r86.co_states_9_15_9_16(chain, filtered),
        "co_state_covariances_9_20_9_21": r86.co_state_covariances_9_20_9_21(chain, filtered),
        "smoothed_covariance_9_18": r86.smoothed_covariance_9_18(P, form.Lambda_minus[2]),
    }
    arguments = {"k": 2, "i": 1, "z_minus": z, "z_plus_outer": filtered.z_plus[1], "lam_inner": smoothed.lam_minus[3]}
    for name, method in inspect.getmembers(r86.ClosedForm, inspect.isfunction):
        if name.startswith("_"):
            continue
        wanted = [p for p in list(inspect.signature(method).parameters.values())[1:] if p.default is p.empty]
        given = [arguments.get(p.name, smoothed.lam_minus[3]) for p in wanted]
        if name == "psi_minus_minus_10_21":
            given = [2, 1]
        out[f"ClosedForm.{name}"] = getattr(form, name)(*given)
    return out


def the_model():
    """A ragged tree of four nodes, the root a free body, with rotors and biases."""
    parent, n, m = [2, 2, 3, -1], [2, 3, 2, 2], [1, 2, 1, 2]
    A = [rational(n[p], n[k], seed=k) if p >= 0 else None for k, p in enumerate(parent)]
    H = [rational(m[k], n[k], seed=20 + k) for k in range(4)]
    R = [definite(m[k], 40 + k) for k in range(4)]
    R[3] = 0 * R[3]
    return sko.Model(
        parent, A, H, [definite(k, 30 + i) for i, k in enumerate(n)], R,
        [rational(k, seed=50 + i) for i, k in enumerate(n)], [rational(k, seed=60 + i) for i, k in enumerate(n)],
    )  # fmt: skip


def sko_cases(model, T):
    """Every result of sko for one model, by name."""
    x = [a + b for a, b in zip(model.a, model.b)]
    prescribed = np.array([True, False, True, False, False, True])
    J = model.H[0]
    return {
        "operators": sko.operators(model),
        "gather": [*sko.gather(model, x), *sko.gather(model, x, strict=True)],
        "scatter": [*sko.scatter(model, x), *sko.scatter(model, x, strict=True)],
        "velocities": sko.velocities(model, T),
        "jacobian": sko.jacobian(model, 0),
        "newton_euler": sko.newton_euler(model, T),
        "bias": sko.bias(model),
        "composite_bodies": sko.composite_bodies(model),
        "composite_inverse_dynamics": sko.composite_inverse_dynamics(model, T),
        "mass_matrix": sko.mass_matrix(model),
        "mass_matrix_by_columns": sko.mass_matrix_by_columns(model),
        "articulated": sko.articulated(model)[:5],
        "forward_dynamics": sko.forward_dynamics(model, T),
        "forward_dynamics_inverse_first": sko.forward_dynamics_inverse_first(model, T),
        "forward_dynamics_quadratic": sko.forward_dynamics_quadratic(model, T),
        "forward_dynamics_cubic": sko.forward_dynamics_cubic(model, T),
        "forward_dynamics_operators": sko.forward_dynamics_operators(model, T),
        "hybrid_dynamics": sko.hybrid_dynamics(model, T, T, prescribed),
        "newton_euler_absolute": sko.newton_euler_absolute(model, T),
        "kane": sko.kane(model, T),
        "reroot": sko.reroot(model._replace(A=[*model.A[:2], model.M[2], None]), T, 2),
        "projected_dynamics": sko.projected_dynamics(model.M[1], np.hstack([J, J[:, :1]]), T[:1], T[:3], T[3:]),
    }


def part_cases(P, phi, H, H_prime, above):
    """Every result of part for one split hinge, by name."""
    both = part.parts_8(P, phi, H, H_prime)
    out = {"parts_8": both, "update_7": part.update_7(P, H), "upsilon_23": part.upsilon_23(both, above, phi)}
    out["joint_map_of_pins"] = part.joint_map_of_pins(P[:2, :3], [P[0, 0], P[1, 1]], [P[0, 1], P[1, 0]])
    out["unilateral"] = part.unilateral(P, -H[0])
    for name in ("D_9", "D_inverse_9", "G_10", "tau_11", "phi_G_14", "phi_tau_15", "information_16", "P_plus_18"):
        out[name] = getattr(part, name)(both)
    out["transported_19"] = part.transported_19(both)
    return out


def rigid(mass, l):
    """Spatial inertia (6, 6) of a body with principal moments 1, 2, 5/2 about its mass centre at l."""
    lever = np.array([[0, -l[2], l[1]], [l[2], 0, -l[0]], [-l[1], l[0], 0]], dtype=object)
    moments = np.array([[F(1), 0, 0], [0, F(2), 0], [0, 0, F(5, 2)]], dtype=object)
    one = np.array([[F(int(i == j)) for j in range(3)] for i in range(3)], dtype=object)
    return np.block([[moments - mass * (lever @ lever), mass * lever], [-mass * lever, mass * one]])


def srb_cases(M, b, H, eta, force, masses, places, axis):
    """Every result of srb for one body, by name."""
    p1, p2, u = places[0], places[1], axis
    body, turn = rigid(masses[1], places[0]), r86.rotation(axis, F(3, 5), F(4, 5))
    if M.dtype != object:
        body, turn = (np.array(x, dtype=float) for x in (body, turn))
    state = body, turn, places[1], force
    return {
        **{f"body_equations {key}": srb.body_equations(key, *state) for key in srb.FORMULATIONS},
        "body_equations": srb.body_equations("cm", *state).force(b),
        "body_acceleration": srb.body_acceleration(body, force, b),
        "point_acceleration": srb.point_acceleration(b, axis, places[0]),
        "convert_acceleration": srb.convert_acceleration("cm", "body", b, *state),
        "gyroscopic_about_point": srb.gyroscopic_about_point(body, force),
        "gyroscopic_about_body": srb.gyroscopic_about_body(body, force),
        "gyroscopic_in_frame": srb.gyroscopic_in_frame(body, force, b),
        "inertia_rate": srb.inertia_rate(body, b),
        "generalized_force": srb.generalized_force(H.T, force),
        "change_velocities": srb.change_velocities(H.T, M, b, force),
        "constraint_rows": srb.constraint_rows(H),
        "hinge_as_constraints": srb.hinge_as_constraints(M, b, H, eta, force),
        "particle_rates": srb.particle_rates(places[2], p1, p2, u),
        "natural_coordinates": srb.natural_coordinates(masses, places[2:], p1, p2, u),
        "pin_in_natural_coordinates": srb.pin_in_natural_coordinates(
            masses, places[2:], p1, p2, u, force[0], force[:3]
        ),
    }


def floats(value):
    """The same with floats for rational numbers."""
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, np.ndarray):
        return value.astype(float) if value.dtype == object else value
    if isinstance(value, r86.Arm):
        return r86.Arm(tuple(floats(link) for link in value.links), floats(value.gravity))
    if hasattr(value, "_fields"):
        return type(value)(*(floats(x) for x in value))
    if isinstance(value, list | tuple):
        return type(value)(floats(x) for x in value)
    return value


def numbers(value):
    """All numbers of a result, in order."""
    if value is None or isinstance(value, str):
        return
    if isinstance(value, np.ndarray):
        yield from value.reshape(-1)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from numbers(one)
    else:
        yield value


ARGUMENTS = {
    "r86": (r86_cases, (the_arm(), rational(N, seed=1), rational(N, seed=2), F(3, 5), F(4, 5))),
    "sko": (sko_cases, (the_model(), rational(6, seed=3))),
    "part": (
        part_cases,
        (definite(4), rational(4, 4, seed=5), rational(1, 4, seed=6), rational(2, 4, seed=7), definite(4, 8)),
    ),
    "srb": (
        srb_cases,
        (
            definite(6), rational(6, seed=1), rational(2, 6, seed=2), rational(6, seed=3), rational(6, seed=4),
            np.array([F(1), F(2), F(3), F(1)], dtype=object), rational(6, 3, seed=5),
            np.array([F(2, 3), F(1, 3), F(2, 3)], dtype=object),
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("module", [r86, sko, part, srb], ids=lambda m: m.__name__.rpartition(".")[2])
def test_rational_numbers_stay_rational(module):
    name = module.__name__.rpartition(".")[2]
    cases, arguments = ARGUMENTS[name]
    exact, rounded = cases(*arguments), cases(*floats(arguments))
    for key, value in exact.items():
        mine, theirs = list(numbers(value)), list(numbers(rounded[key]))
        assert all(isinstance(x, Fraction | int | np.integer | np.bool_) for x in mine), key
        scale = max([1.0, *(abs(float(x)) for x in theirs)])
        # small random fractions are not chosen to be well conditioned: up to 1e6
        np.testing.assert_allclose([float(x) for x in mine], [float(x) for x in theirs], atol=1e-8 * scale, err_msg=key)
    public = {
        key
        for key, thing in vars(module).items()
        if inspect.isfunction(thing) and not key.startswith("_") and thing.__module__.startswith(module.__name__)
    }
    assert public - APART[name] <= set(exact), public - APART[name] - set(exact)


def test_symbols_pass_through():
    """Two carts in line, in letters: every way to forward dynamics gives one formula, that of Newton by hand."""
    sympy = pytest.importorskip("sympy")
    m1, m2, f1, f2 = sympy.symbols("m1 m2 f1 f2", positive=True)

    def cell(x):
        out = np.empty((1, 1), dtype=object)
        out[0, 0] = x
        return out

    one, none, still = cell(sympy.Integer(1)), cell(sympy.Integer(0)), cell(sympy.Integer(0))[0]
    carts = sko.Model([1, -1], [one, None], [one, one], [cell(m1), cell(m2)], [none, none], [still] * 2, [still] * 2)
    T = np.array([f1, f2], dtype=object)
    by_hand = f1 / m1 + (f1 - f2) / m2, (f2 - f1) / m2  # the first is driven against the second
    for solve in (
        sko.forward_dynamics, sko.forward_dynamics_inverse_first, sko.forward_dynamics_quadratic,
        sko.forward_dynamics_cubic, sko.forward_dynamics_operators, sko.kane,
        lambda model, T: sko.newton_euler_absolute(model, T)[0],
    ):  # fmt: skip
        assert all(sympy.simplify(mine - theirs) == 0 for mine, theirs in zip(solve(carts, T), by_hand))
