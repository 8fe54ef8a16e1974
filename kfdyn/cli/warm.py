"""``kfdyn warm``: compile ahead of time, for images and CI."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator

ABOUT = "compile now what the first use would compile, and keep it on disk"
EXAMPLES = (
    "kfdyn warm",
    "ENV KFDYN_CACHE_DIR=/opt/kfdyn            in a Dockerfile, so that every user of the image finds it,",
    "RUN kfdyn warm                            and then this",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("--couplings", action="store_true", help="for robots with gears and mimic joints, too")


def run(args: argparse.Namespace) -> int:
    """Call every function once, on a small robot and on small models, and tell how long that took."""
    from kfdyn.first_use import folders

    os.environ["KFDYN_QUIET"] = "1"  # here the notice would be no news
    begin = time.perf_counter()
    for what, work in chores(args.couplings):
        start = time.perf_counter()
        work()
        print(f"{what:<44}{time.perf_counter() - start:7.1f} s", flush=True)
    print(f"{'all':<44}{time.perf_counter() - begin:7.1f} s")
    found = folders()
    print(f"Nothing was kept: {found.trouble}." if found.kept_in is None else f"Kept in {found.kept_in}.")
    return 0


def chores(couplings: bool) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield calls that compile something on first use, each with a description."""
    import numpy as np

    import kfdyn as kf
    from kfdyn.quantities import quantities

    rng = np.random.default_rng(0)
    arm, tree = kf.models.puma560(), kf.models.random_tree(8, 0)
    geared = arm.with_couplings([kf.Coupling(arm.hinge_names[-2:], [1.0, -1.0])])
    tip = arm.body_names[-1]

    def states(system: kf.System, lead: tuple[int, ...]) -> list[np.ndarray]:
        q = np.empty((*lead, system.nq))
        for at in np.ndindex(lead):
            q[at] = system.random_configuration(rng)
        return [q, *rng.normal(size=(2, *lead, system.nv))]

    def dynamics(*systems: kf.System) -> None:
        for system in systems:
            for lead in ((), (9,)):
                q, v, u = states(system, lead)
                for quantity in quantities().values():
                    quantity(system, q=q, v=v, tau=u, a=u)
                kf.hybrid_dynamics(system, q, v, u, u, prescribed=np.arange(system.nv) % 2 == 0)
                kf.mass_matrix_trace(system, q)
                kf.mass_matrix_logdet(system, q)
        for q in (states(arm, ())[0], states(arm, (9,))[0]):
            kf.mass_matrix_logdet_gradient(arm, q)

    def kinematics(*systems: kf.System) -> None:
        for system in systems:
            q, v, a = states(system, ())
            kf.jacobian(system, q, tip)
            kf.frame_pose(system, q, tip)
            kf.frame_velocity(system, q, v, tip)
            kf.frame_acceleration(system, q, v, a, tip)
            kf.kinetic_energy(system, q, v)
            kf.potential_energy(system, q)
            kf.center_of_mass(system, q)
            kf.centroidal_momentum(system, q, v)
            kf.operational_space_compliance(system, q, tip)
        kf.difference(tree, tree.neutral(), kf.integrate(tree, tree.neutral(), np.full(tree.nv, 0.1)))

    def estimation() -> None:
        eye = np.eye(2)
        models = (
            kf.as_estimation(arm, arm.neutral()),
            kf.as_estimation(kf.models.chain(70), np.zeros(70)),
            kf.StateSpace.chain(1.0 * eye, eye[:1], eye, [[1.0]], [0.0, 0.0], eye, steps=5),
            kf.StateSpace.chain(1.0 * eye, eye[:1], eye, [[1.0]], [0.0, 0.0], eye, steps=100),
        )
        for ss in models:
            for lead in ((), (20,)):
                T = rng.normal(size=(*lead, int(ss.m.sum())))
                kf.bryson_frazier(ss, kf.kalman_filter(ss, T))
                factor = kf.innovations_factor(ss)
                factor.solve(T)
                factor.matvec(T)
                factor.whiten(T)
            factor.sample(rng, 20)
            kf.draw(ss, rng, 20)
            kf.draw_posterior(kf.kalman_filter(ss, T[0]), rng, 20)

    def checking() -> None:
        kf.cross_check(arm, arm.neutral(), samples=4000)

    def motion(*systems: kf.System) -> None:
        for system in systems:
            q, v, a = states(system, ())
            for method in ("rk4", "symplectic", "implicit"):
                kf.simulate(system, q, v, [0.0, 1e-3], method=method)
            kf.simulate(system, q, v, [0.0, 1e-3], lambda t, q, v: -v)
            kf.computed_torque(system, q, v, q, v, a, 1.0, 1.0)
            kf.operational_space_control(system, q, v, tip, kf.frame_pose(system, q, tip), 1.0, 1.0, axes=(3, 4, 5))

    yield "dynamics of robots", lambda: dynamics(arm, tree)
    yield "kinematics and energy", lambda: kinematics(arm)
    yield "filter, smoother, factor, sampling", estimation
    yield "simulation and control", lambda: motion(arm)
    yield "the cross-check", checking
    if couplings:
        yield "the same with couplings", lambda: [each(geared) for each in (dynamics, kinematics, motion)]
