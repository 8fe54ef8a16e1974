"""Loops and couplings: a humanoid on two feet and a gripper arm beside Pinocchio, and many local loops; on one core."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import kfdyn as kf
from benchmarks.report import Report
from benchmarks.robots import packaged
from benchmarks.timing import best_of, environment, race

FEET = ("left_sole_link", "right_sole_link")
ARM = "panda.urdf"


def run(quick: bool) -> Report:
    """Time them; states are random, feet and fingers as the files have them."""
    from kfdyn.sweeps import thread_pool

    size, budget = (64, 0.1) if quick else (1024, 3.0)
    with warnings.catch_warnings(), thread_pool.alone():
        warnings.simplefilter("ignore")  # what a file says and dynamics does not use
        feet, gripper = on_two_feet(size, budget), gripper_arm(size, budget)
        chains = {n: chain_of_linkages(n, budget) for n in ((5, 10) if quick else (25, 50, 100))}
    rows = [
        ["TALOS on two feet", "constraintDynamics", *_told(*feet)],
        ["Panda, fingers geared", "crba, nle, G*𝓜G, Cholesky", *_told(*gripper)],
        *(
            [f"{n} four-bars in a chain", "", f"{1e6 * t:.0f} µs", "", f"{1e6 * t / n:.1f} µs a loop"]
            for n, t in chains.items()
        ),
    ]
    return Report(
        "loops",
        "Loops, gears and contacts",
        ["forward dynamics of", "peer", "kfdyn", "peer's", "peer / kfdyn"],
        rows,
        environment(["kfdyn", "numpy", "pin"]),
        [
            f"Batches of {size} random states on one core, by the processor's clock; Pinocchio is called one by one "
            "from Python, as a user does.",
            "TALOS: talos_reduced.urdf, floating, 38 dofs, both soles held in six rows; results agree to 1e-8.",
            "Chain: one state, method 'embedding', each linkage on the coupler of the one before.",
        ],
        {"feet": feet, "gripper": gripper, "chains": chains},
        words=2,
    )


def _told(ours: float, peer: float) -> tuple[str, str, str]:
    return f"{1e6 * ours:.2f} µs", f"{1e6 * peer:.2f} µs", f"{peer / ours:.1f}"


def on_two_feet(size: int, budget: float) -> tuple[float, float]:
    """Seconds a state: kfdyn's batch, and constraintDynamics in a loop."""
    import pinocchio as pin

    file = packaged("example-robot-data", "talos_reduced.urdf")
    robot = kf.load(file, floating_base=True, mimic="free")
    standing = robot.with_loops([kf.Loop(None, foot, "pose") for foot in FEET])
    rng = np.random.default_rng(0)
    q = np.stack([robot.random_configuration(rng) for _ in range(size)])
    v, tau = kf.impact(standing, q, rng.normal(size=(size, robot.nv))).v, 10 * rng.normal(size=(size, robot.nv))
    model = pin.buildModelFromUrdf(str(file), pin.JointModelFreeFlyer())
    there = kf.to_pinocchio(robot, model, q, v, tau=tau)
    data, models, datas = model.createData(), pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for foot in FEET:
        frame = model.frames[model.getFrameId(foot)]
        contact = pin.RigidConstraintModel(
            pin.ContactType.CONTACT_6D, model, 0, pin.SE3.Identity(), frame.parentJoint, frame.placement, pin.LOCAL
        )
        models.append(contact)
        datas.append(contact.createData())
    pin.initConstraintDynamics(model, data, models, datas)
    settings = pin.ProximalSettings(1e-12, 1e-12, 1e-14, 1)
    states = list(zip(there.q, there.v, there.tau))

    def peer() -> Any:
        for x, y, z in states:
            a = pin.constraintDynamics(model, data, x, y, z, models, datas, settings)
        return a

    ours = kf.forward_dynamics(standing, q, v, tau)
    _agree(kf.to_pinocchio(robot, model, q[-1], v[-1], ours[-1]).a, peer())
    return _both(lambda: kf.forward_dynamics(standing, q, v, tau), peer, size, budget)


def gripper_arm(size: int, budget: float) -> tuple[float, float]:
    """Seconds a state: kfdyn's batch, and G*𝓜G from Pinocchio's crba and nle of the free joints."""
    import pinocchio as pin
    from scipy.linalg import cho_factor, cho_solve

    file = packaged("example-robot-data", ARM)
    arm = kf.load(file)
    model = pin.buildModelFromUrdf(str(file))
    rng = np.random.default_rng(0)
    q = np.stack([arm.random_configuration(rng) for _ in range(size)])
    v, tau = rng.normal(size=(2, size, arm.nv))
    G = arm.expansion(q[0])
    there = kf.to_pinocchio(arm.open_tree, model, arm.expand(q), v @ G.T)
    one = np.eye(arm.open_tree.nv)
    P = kf.to_pinocchio(arm.open_tree, model, np.tile(arm.expand(q[0]), (len(one), 1)), one).v.T @ G
    data, states = model.createData(), list(zip(there.q, there.v, tau))

    def peer() -> Any:
        for x, y, z in states:
            M = pin.crba(model, data, x)
            M = np.triu(M) + np.triu(M, 1).T
            c = pin.nonLinearEffects(model, data, x, y)
            a = cho_solve(cho_factor(P.T @ M @ P), z - P.T @ c)
        return a

    _agree(kf.forward_dynamics(arm, q, v, tau)[-1], peer())
    return _both(lambda: kf.forward_dynamics(arm, q, v, tau), peer, size, budget)


def chain_of_linkages(count: int, budget: float) -> float:
    """Seconds of one forward dynamics by embedding of so many four-bars, each on the coupler of the one before."""
    system, q = linkages(count)
    tau = np.zeros(system.nv)
    return best_of(lambda: kf.forward_dynamics(system, q, None, tau, method="embedding"), budget)


def linkages(count: int) -> tuple[kf.System, np.ndarray]:
    """So many four-bars in a chain: the ground of each is the coupler of the one before."""
    from dataclasses import replace

    one, tree = kf.models.four_bar(), kf.models.four_bar().open_tree
    coupler = one.loops[0].frame_b
    assert coupler is not None
    bodies, frames, loops, ground = [], {}, [], None
    for i in range(count):
        for body in tree.bodies:
            parent = ground if body.parent is None else f"{body.parent} {i}"
            bodies.append(replace(body, name=f"{body.name} {i}", hinge_name=f"{body.hinge_name} {i}", parent=parent))
        for key, frame in tree.frames.items():
            frames[f"{key} {i}"] = kf.Frame(f"{frame.body} {i}", frame.rotation, frame.position)
        loops += [kf.Loop(f"{loop.frame_a} {i}", f"{loop.frame_b} {i}", loop.rows) for loop in one.loops]
        ground = f"{tree.bodies[tree.locate(coupler)[0]].name} {i}"
    system = kf.System(bodies, frames=frames, name=f"{count} four-bars").with_loops(loops)
    return system, np.tile(kf.models.four_bar_configuration(0.7), count)


def _both(ours: Callable[[], Any], peer: Callable[[], Any], size: int, budget: float) -> tuple[float, float]:
    times = race({"kfdyn": ours, "peer": peer}, budget)
    return times["kfdyn"] / size, times["peer"] / size


def _agree(a: np.ndarray, b: np.ndarray) -> None:
    apart = np.abs(a - b).max() / np.abs(b).max()
    if not apart < 1e-8:
        raise AssertionError(f"kfdyn and its peer differ by {apart:.1e}")
