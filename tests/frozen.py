"""Record what every public function answers on a zoo of systems and models, and compare after a change.

    python tests/frozen.py record before.pkl     # arrays to the bit, and the words of errors and warnings
    python tests/frozen.py compare before.pkl    # run again; list what differs, and by how much

A change of the code's layout must leave every bit. Where an algorithm is replaced, the differences are listed here and
explained in the commit.
"""

from __future__ import annotations

import dataclasses
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import kfdyn as kf
from kfdyn.quantities import quantities

sys.path.insert(0, str(Path(__file__).parent / "dynamics"))
import flexible_cases

Case = tuple[str, Callable[[], Any]]

# What callers read of results whose fields also hold workspaces.
PUBLIC = {
    "Filtered": "P D G P_plus z eps nu z_plus llf kalman_gain innovations predicted_state_cov filtered_state_cov",
    "SmoothedBatch": "a x costate llf",
    "Smoothed": "a x costate Lambda S smoothed_state smoothed_state_cov costate_cov",
    "Score": "phi H Q R xi eta",
    "StateSpace": "phi H Q R xi eta",
}


def systems() -> Iterator[tuple[str, Any, np.ndarray]]:
    """Systems of every kind, each with a configuration that its loops allow."""
    models, rng = kf.models, np.random.default_rng(7)
    arm = models.puma560()
    gear = kf.Coupling(arm.hinge_names[1:3], [[1.0], [-0.5]], [0.0, 0.1])
    two = kf.Coupling(arm.hinge_names[3:6], [[1.0, 0.0], [0.0, 1.0], [0.5, 2.0]])
    trees = {
        "pendulum": models.pendulum(),
        "puma560": arm,
        "stanford_arm": models.stanford_arm(),
        "humanoid": models.humanoid(),
        "free_flyer": models.free_flyer(),
        "random_0": models.random_tree(9, 0),
        "random_1": models.random_tree(14, 1),
        "random_2": models.random_tree(20, 2),
        "specialised": kf.specialise(arm),
        "coupled": kf.System(arm.bodies, couplings=[gear]),
        "coupled_twice": kf.System(arm.bodies, couplings=[gear, two]),
        "flexible": flexible_cases.tree(0),
        "flexible_1": flexible_cases.random_tree(3),
    }
    for name, system in trees.items():
        yield name, system, system.random_configuration(rng)
    yield "four_bar", models.four_bar(), models.four_bar_configuration(0.7)
    yield "delta", models.delta_robot(), models.delta_configuration([0.1, -0.05, -0.7])
    yield "stewart", models.stewart_platform(), models.stewart_configuration([0.05, 0.02, 0.9])


def rows(system: Any, q: np.ndarray, size: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Several states near q: with loops all at q, for these have to stay closed."""
    v, tau, a = rng.normal(size=(3, size, system.nv))
    if getattr(system, "loops", ()):
        v = v @ kf.mass_matrix_inverse(system, q)  # rates that the loops allow, and accelerations
        q = np.tile(q, (size, 1))
        return q, v, tau, kf.forward_dynamics(system, q, v, tau)
    return kf.integrate(system, np.tile(q, (size, 1)), 0.3 * rng.normal(size=(size, system.nv))), v, tau, a


def of_system(name: str, system: Any, q0: np.ndarray) -> Iterator[Case]:
    """Every function of a system, on one state, a list, batches small and large, odd strides, axes that broadcast."""
    rng = np.random.default_rng(11)
    q, v, tau, a = rows(system, q0, 70, rng)
    force = rng.normal(size=(70, system.n_bodies, 6))
    frame = system.body_names[-1]
    other = system.body_names[0]
    g = np.array([0.3, -0.2, -9.0])
    held = np.arange(system.nv) % 2 == 0

    def of(f: str, *extra: Any, **options: Any) -> Callable[..., Any]:
        return lambda *state: getattr(kf, f)(system, *state, *extra, **options)

    functions: list[tuple[str, Callable[..., Any], tuple[np.ndarray, ...]]] = [
        ("forward_dynamics pushed", of("forward_dynamics"), (q, v, tau, force)),
        ("forward_dynamics gravity", of("forward_dynamics", None, g), (q, v, tau)),
        ("inverse_dynamics pushed", of("inverse_dynamics"), (q, v, a, force)),
        ("bias_forces", of("bias_forces"), (q, v)),
        ("mass_matrix_logdet", of("mass_matrix_logdet"), (q,)),
        ("mass_matrix_logdet_gradient", of("mass_matrix_logdet_gradient"), (q,)),
        ("mass_matrix_trace", of("mass_matrix_trace"), (q,)),
        ("hybrid_dynamics", of("hybrid_dynamics", held), (q, v, tau, a)),
        ("operational_space_compliance", of("operational_space_compliance", [other, frame]), (q,)),
        ("computed_torque", of("computed_torque", 4.0, 2.0), (q, v, q, v, a)),
        ("jacobian", of("jacobian", frame), (q,)),
        ("frame_pose", of("frame_pose", frame), (q,)),
        ("frame_velocity", of("frame_velocity", frame), (q, v)),
        ("frame_acceleration", of("frame_acceleration", frame), (q, v, a)),
        ("frame_bias_acceleration", of("frame_bias_acceleration", frame), (q, v)),
        ("kinetic_energy", of("kinetic_energy"), (q, v)),
        ("potential_energy", of("potential_energy"), (q,)),
        ("center_of_mass", of("center_of_mass"), (q,)),
        ("momentum", of("momentum"), (q, v)),
        ("centroidal_momentum", of("centroidal_momentum"), (q, v)),
        ("integrate", of("integrate"), (q, v)),
        ("difference", of("difference"), (q, q[::-1].copy())),
        ("constraint_forces", of("constraint_forces"), (q, v, tau)),
        ("cut_joint", of("cut_joint"), (q, v, tau)),
        ("acceleration_causes", of("acceleration_causes"), (q, v, tau)),
    ]
    given = {"q": q, "v": v, "tau": tau, "a": a}
    functions += [
        (name, of(name), tuple(given[x] for x in one.wants))
        for name, one in quantities().items()
        if name != "bias_forces"
    ]
    functions += [
        (f"forward_dynamics {m}", of("forward_dynamics", method=m), (q, v, tau))
        for m in ("engine", "mass_matrix", "embedding", "cut", "proximal")
    ]
    functions += [(f"inverse_dynamics {m}", of("inverse_dynamics", method=m), (q, v, a)) for m in ("operators",)]
    functions += [(f"mass_matrix {m}", of("mass_matrix", method=m), (q,)) for m in ("columns", "operator")]
    functions += [(f"mass_matrix_inverse {m}", of("mass_matrix_inverse", method=m), (q,)) for m in ("engine",)]
    for what, f, args in functions:
        wide = [np.asfortranarray(x) for x in args]
        bad = [x.copy() for x in args]
        bad[-1][3].flat[0] = np.nan
        few = [x[:5] for x in args]
        shaped = [few[0][:4].reshape(2, 2, -1), *few[1:]]
        forms = {
            "one": [x[0] for x in args],
            "list": [x[0].tolist() for x in args],
            "few": few,
            "many": args,
            "odd strides": wide,
            "broadcast": [args[0][:5], *(x[0] for x in args[1:])],
            "axes": [x[:4].reshape(2, 2, *x.shape[1:]) for x in args],
            "none": [x[:0] for x in args],
            "nan": bad,
            "misfit": shaped,
            "short": [args[0][..., :-1], *args[1:]],
            "text": ["q", *args[1:]],
        }
        for form, state in forms.items():
            yield f"{name}: {what}, {form}", lambda f=f, state=state: f(*state)
    for what in ("dynamics_filter", "decompose_forces"):
        yield f"{name}: {what}", lambda what=what: getattr(kf, what)(system, q[0], v[0], tau[0])
    yield f"{name}: as_estimation", lambda: kf.as_estimation(system, q[0], v[0], force[0])
    yield f"{name}: minimal_coordinates", lambda: kf.minimal_coordinates(system, q[0], v[0])
    yield f"{name}: impact", lambda: kf.impact(system, q[0], v[0])
    yield f"{name}: modes", lambda: kf.modes(system, q[0])
    t = np.linspace(0.0, 0.05, 11)
    for method in ("rk4", "euler", "symplectic", "implicit", "RK45"):
        yield (
            f"{name}: simulate {method}",
            lambda method=method: kf.simulate(system, q[0], 0.1 * v[0], t, method=method),
        )
        yield (
            f"{name}: simulate {method}, few",
            lambda method=method: kf.simulate(system, q[:3], 0.1 * v[:3], t, method=method),
        )
    S = kf.sensors
    sensors = [S.JointTorque(0.1), S.JointAcceleration(0.2), S.Accelerometer(frame, 0.01)]
    for form, k in (("one", 0), ("few", slice(0, 5))):
        readings = [tau[k], a[k], rng.normal(size=(*np.shape(tau[k])[:-1], 3))]
        yield (
            f"{name}: estimate_dynamics, {form}",
            lambda k=k, readings=readings: kf.estimate_dynamics(system, q[k], v[k], sensors, readings),
        )
    yield f"{name}: observability", lambda: kf.observability(system, q[0], sensors, v[0])


def models() -> Iterator[tuple[str, Any]]:
    """Ragged trees and chains of several sizes of blocks: full noise, exact outputs, flat priors, factors."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        nodes = 12
        parent = [-1, *[int(rng.integers(max(0, k - 3), k)) for k in range(1, nodes)]]
        n, m = rng.integers(1, 7, nodes), rng.integers(0 if seed == 4 else 1, 4, nodes)
        phi = [None if p < 0 else 0.5 * rng.normal(size=(n[p], n[k])) for k, p in enumerate(parent)]
        H = [rng.normal(size=(m[k], n[k])) for k in range(nodes)]
        Q, R = ([(A := rng.normal(size=(s, s))) @ A.T for s in sizes] for sizes in (n, m))
        xi, eta = rng.normal(size=(2, n.sum()))
        yield f"tree_{seed}", kf.StateSpace(parent, phi, H, Q, R, xi, eta)
        factors = [rng.normal(size=(s, max(1, s - 1))) for s in n]
        yield f"tree_{seed} of factors", kf.StateSpace(parent, phi, H, Q_factor=factors, R=R)
    for n, m in ((1, 1), (2, 1), (3, 2), (6, 1), (6, 3), (12, 6), (14, 7), (20, 4), (36, 18)):
        rng = np.random.default_rng(100 * n + m)
        N = 20
        F = np.eye(n) + 0.1 / np.sqrt(n) * rng.normal(size=(N - 1, n, n))
        H, A, B = rng.normal(size=(N, m, n)), rng.normal(size=(N - 1, n, n)), rng.normal(size=(N, m, m))
        Q, R = A @ A.swapaxes(1, 2), B @ B.swapaxes(1, 2)
        start = np.zeros(n), np.eye(n)
        yield f"chain {n} {m}", kf.StateSpace.chain(F, H, Q, R, *start)
        yield f"flat chain {n} {m}", kf.StateSpace.chain(F, H, Q, R)
        yield (
            f"constant chain {n} {m}",
            kf.StateSpace.chain(
                F[:1].repeat(N - 1, 0), H[:1].repeat(N, 0), Q[:1].repeat(N - 1, 0), R[:1].repeat(N, 0), *start
            ),
        )
        if m < n:
            yield f"exact chain {n} {m}", kf.StateSpace.chain(F, H, Q, 0.0 * R, *start)


def of_model(name: str, ss: Any) -> Iterator[Case]:
    """Filter, smoother, factor, score and draws, by every method, with gaps and batches."""
    rng = np.random.default_rng(5)
    T = rng.normal(size=(9, ss.n_outputs if hasattr(ss, "n_outputs") else kf.draw(ss, rng).T.size))
    gap = T[0].copy()
    gap[::4] = np.nan
    for method in ("block", "univariate", "square_root"):
        for form, y in (("one", T[0]), ("batch", T), ("gaps", gap), ("short", T[0, :-1])):

            def smoothed(y: Any = y, method: str = method) -> Any:
                filt = kf.kalman_filter(ss, y, method=method)
                return filt, kf.bryson_frazier(ss, filt)

            yield f"{name}: filter and smoother, {method}, {form}", smoothed
            yield f"{name}: score, {method}, {form}", lambda y=y, method=method: kf.score(ss, y, method=method)

        def factor(method: str = method) -> Any:
            F = kf.innovations_factor(ss, method=method)
            return F.solve(T), F.matvec(T), F.logdet(), F.whiten(T), F.inverse(), F.sample(np.random.default_rng(0), 3)

        yield f"{name}: innovations_factor, {method}", factor
        yield f"{name}: smooth_batch, {method}", lambda method=method: kf.smooth_batch(ss, T, method=method)
    yield f"{name}: draw", lambda: kf.draw(ss, np.random.default_rng(1), 4)
    yield f"{name}: draw_posterior", lambda: kf.draw_posterior(kf.kalman_filter(ss, T[0]), np.random.default_rng(1), 4)
    yield f"{name}: composite_inertias", lambda: kf.composite_inertias(ss)
    yield f"{name}: text", lambda: repr(ss)


def others() -> Iterator[Case]:
    """Outward trees, ready-made series and fits."""
    rng = np.random.default_rng(3)
    parent = [-1, 0, 0, 1, 1, 2, 2, 3]
    A, W, C, R = rng.normal(size=(8, 3, 3)), np.eye(3) * 0.4, rng.normal(size=(8, 2, 3)), np.eye(2) * 0.3
    y = rng.normal(size=16)
    tree = kf.OutwardTree(parent, A, [W] * 8, C, [R] * 8)
    yield "outward tree", lambda: tree.smooth(y)
    level = np.cumsum(rng.normal(size=60)) + rng.normal(size=60)
    yield "local level", lambda: kf.series.local_level().fit(level).params
    yield "trend and season", lambda: (kf.series.local_level() + kf.series.seasonal(4)).fit(level).llf


def cases() -> Iterator[Case]:
    """All of it."""
    for name, system, q in systems():
        yield from of_system(name, system, q)
    for name, ss in models():
        yield from of_model(name, ss)
    yield from others()


# ------------------------------------------------------------------ recording and comparing


def plain(x: Any, depth: int = 0) -> Any:
    """Numbers, texts and containers of them; of an object its public data."""
    if x is None or isinstance(x, bool | int | float | str):
        return x
    if isinstance(x, np.ndarray | np.generic):
        return np.array(x)
    if hasattr(x, "_asdict"):
        return {key: plain(value, depth + 1) for key, value in x._asdict().items()}
    if isinstance(x, list | tuple):
        return [plain(value, depth + 1) for value in x]
    if isinstance(x, dict):
        return {str(key): plain(value, depth + 1) for key, value in x.items()}
    if depth > 4 or isinstance(x, kf.System | kf.FlexibleSystem | kf.Tree | type) or callable(x):
        return type(x).__name__
    if hasattr(x, "flat") and hasattr(x, "__getitem__"):  # blocks
        return np.array(x.flat)
    if type(x).__name__ in PUBLIC:
        return {key: plain(public(x, key), depth + 1) for key in PUBLIC[type(x).__name__].split()}
    if dataclasses.is_dataclass(x):
        return {
            f.name: plain(getattr(x, f.name), depth + 1)
            for f in dataclasses.fields(x)
            if f.name[0] != "_" and f.name != "problem"
        }
    named = [key for key in getattr(x, "__dict__", {}) if key[0] != "_"]
    return {key: plain(getattr(x, key), depth + 1) for key in named} or type(x).__name__


def public(x: Any, key: str) -> Any:
    """One property of a result, or why it has none."""
    try:
        return getattr(x, key)
    except (kf.errors.KfdynError, AttributeError) as error:
        return str(error)


def answer(run: Callable[[], Any]) -> Any:
    """What a case answers, with its warnings; or its error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = plain(run())
        except Exception as error:  # whatever it is, it is compared
            found = f"{type(error).__name__}: {error}"
    return found, sorted({str(w.message) for w in caught})


def differences(old: Any, new: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """Where two answers differ, and how."""
    if isinstance(old, np.ndarray) and isinstance(new, np.ndarray):
        if old.shape != new.shape or old.dtype != new.dtype:
            yield at, f"{old.shape} {old.dtype} became {new.shape} {new.dtype}"
        elif old.tobytes() != new.tobytes() and not np.array_equal(old, new, equal_nan=old.dtype.kind == "f"):
            size = np.abs(old).max() if old.dtype.kind in "fc" else 1
            yield (
                at,
                f"{np.nanmax(np.abs(old.astype(float) - new.astype(float))) / max(size, 1e-300):.1e} of the largest",
            )
    elif isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            if key in old and key in new:
                yield from differences(old[key], new[key], f"{at}.{key}")
            else:
                yield f"{at}.{key}", "is new" if key in new else "is gone"
    elif isinstance(old, list | tuple) and isinstance(new, list | tuple) and len(old) == len(new):
        for i, (x, y) in enumerate(zip(old, new)):
            yield from differences(x, y, f"{at}[{i}]")
    elif type(old) is not type(new) or (old != new and not (old != old and new != new)):
        yield at, f"{str(old)[:300]!r} became {str(new)[:300]!r}"


def main(argv: list[str]) -> int:
    """Record or compare."""
    if len(argv) != 2 or argv[0] not in ("record", "compare"):
        print(__doc__)
        return 2
    found = {name: answer(run) for name, run in cases()}
    path = Path(argv[1])
    if argv[0] == "record":
        path.write_bytes(pickle.dumps(found))
        failed = sum(isinstance(x, str) for x, _ in found.values())
        print(f"{len(found)} cases, {failed} of them errors, in {path}")
        return 0
    before, count = pickle.loads(path.read_bytes()), 0
    for name in before.keys() | found.keys():
        if name not in before or name not in found:
            print(f"{name}: {'is new' if name in found else 'is gone'}")
            continue
        for at, how in differences(before[name], found[name]):
            count += 1
            print(f"{name}{at}: {how}")
    print(f"{len(found)} cases, {count} differences")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
