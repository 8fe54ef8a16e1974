"""Dynamics called from JAX and PyTorch, with gradients, beside the bare functions and what these programs call else."""

import os
import re
import tempfile
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import kfdyn as kf
from benchmarks.report import Report
from benchmarks.timing import environment, race
from kfdyn.multibody import models
from kfdyn.sweeps import alone

Runs = dict[str, Callable[[], object]]
#: Answers of peers that differ by more are not timed; pytorch_kinematics keeps a robot's lengths in single precision.
CLOSE, SINGLE = 1e-12, 1e-6
#: Calls that are timed together: the processor's clock is late at times with what other threads of XLA's did.
TOGETHER = 20

_SIZES = {"one state": (), "1,024 states": (1024,)}


class Arm:
    """The arm as a system, and as the file that others read: an iiwa where frax is there, which brings it along."""

    def __init__(self, folder: Path) -> None:
        try:
            file = import_module("frax.assets").KUKA_ASSETS_DIR / "iiwa14.urdf"
        except ImportError:
            self.system, self.text = models.random_tree(7, seed=1, hinges=["revolute"], branching=0.0), None
            return
        shapes = r"<(visual|collision)\b[^>]*>.*?</\1>"  # whose files are elsewhere
        self.text = re.sub(shapes, "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
        self.path = folder / "arm.urdf"
        self.path.write_text(self.text, encoding="utf-8")
        self.system = kf.load(self.path)


def frax(arm: Arm) -> Callable[..., Any]:
    robot = import_module("frax").load_iiwa()
    return lambda q, v, tau: robot.forward_dynamics(q, v, tau, None)


def adam(arm: Arm) -> Callable[..., Any]:
    """A mass matrix and a bias of a robot on a fixed base, and a solution."""
    jnp, gravity = import_module("jax.numpy"), np.array([*arm.system.gravity, 0, 0, 0])
    robot = import_module("adam.jax").KinDynComputations(str(arm.path), list(arm.system.hinge_names), gravity=gravity)

    def forward_dynamics(q: Any, v: Any, tau: Any) -> Any:
        base = jnp.broadcast_to(jnp.eye(4), (*q.shape[:-1], 4, 4)), jnp.zeros((*q.shape[:-1], 6))
        M, bias = robot.mass_matrix(base[0], q), robot.bias_force(base[0], q, base[1], v)
        return jnp.linalg.solve(M[..., 6:, 6:], (tau - bias[..., 6:])[..., None])[..., 0]

    return forward_dynamics


def mjx(arm: Arm) -> Callable[..., Any]:
    """MuJoCo in JAX, without constraints and dampers."""
    mujoco, own = import_module("mujoco"), import_module("mujoco.mjx")
    model = mujoco.MjModel.from_xml_string(arm.text)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    model.dof_damping[:], model.opt.gravity[:] = 0.0, arm.system.gravity
    device = own.put_model(model)
    data = own.make_data(device)
    return lambda q, v, tau: own.forward(device, data.replace(qpos=q, qvel=v, qfrc_applied=tau)).qacc


PEERS = {"frax": frax, "ADAM": adam, "MJX": mjx}


def by_jax(arm: Arm, *given: Any) -> Runs:
    """Forward dynamics in a compiled program, and the gradient of its sum; of kfdyn and of peers that are right."""
    jax = import_module("jax")
    jax.config.update("jax_enable_x64", True)
    kj = import_module("kfdyn.bridge.jax")
    at, runs, wanted = [jax.numpy.asarray(x) for x in given], {}, kf.forward_dynamics(arm.system, *given)

    def add(name: str, f: Callable[..., Any]) -> None:
        a, slope = jax.jit(f), jax.jit(jax.grad(lambda *x: f(*x).sum(), (0, 1, 2)))
        error = float(abs(np.asarray(a(*at)) - wanted).max() / abs(wanted).max())
        if not error < CLOSE:
            raise AssertionError(f"{name} answers otherwise: {error:.1e}")
        runs[f"JAX, {name}"] = lambda: jax.block_until_ready(a(*at))
        runs[f"JAX, {name}, gradient"] = lambda: jax.block_until_ready(slope(*at))

    sum_of = jax.jit(lambda q, v, tau: q + v + tau)
    runs["JAX, a sum of three vectors"] = lambda: jax.block_until_ready(sum_of(*at))
    add("kfdyn", lambda *x: kj.forward_dynamics(arm.system, *x))
    for name, made in PEERS.items() if arm.text else ():
        try:
            f = made(arm)
        except ImportError:
            continue
        add(name, f if given[0].ndim == 1 or name == "ADAM" else jax.vmap(f))  # ADAM has batches of its own
    return runs


def by_torch(arm: Arm, *given: Any) -> Runs:
    """The same in PyTorch, on one thread; and Jacobians of the last link, which pytorch_kinematics has, too."""
    torch = import_module("torch")
    torch.set_num_threads(1)
    kt, system, frame = import_module("kfdyn.bridge.torch"), arm.system, arm.system.body_names[-1]
    at = [torch.from_numpy(x) for x in given]
    leaves = [x.clone().requires_grad_() for x in at]

    def gradient(f: Callable[..., Any]) -> Callable[[], object]:
        return lambda: torch.autograd.grad(f(*leaves).sum(), leaves)

    runs = {
        "PyTorch, kfdyn": lambda: kt.forward_dynamics(system, *at),
        "PyTorch, a product of three vectors, gradient": gradient(lambda q, v, tau: q * v * tau),
        "PyTorch, kfdyn, gradient": gradient(lambda *x: kt.forward_dynamics(system, *x)),
        "PyTorch, Jacobian, kfdyn": lambda: kt.jacobian(system, at[0], frame),
    }
    try:
        chain = import_module("pytorch_kinematics").build_serial_chain_from_urdf
        robot = chain(arm.text.encode(), frame).to(dtype=torch.float64)
    except (ImportError, AttributeError):
        return runs
    ours, theirs = (
        kf.jacobian(system, given[0], frame),
        robot.jacobian(at[0]).numpy().reshape(*given[0].shape[:-1], 6, -1),
    )
    if not abs(np.roll(theirs, 3, -2) - ours).max() < SINGLE:
        raise AssertionError("pytorch_kinematics answers otherwise")
    return runs | {"PyTorch, Jacobian, pytorch_kinematics": lambda: robot.jacobian(at[0])}


def run(quick: bool = False) -> Report:
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")  # as frax advises
    budget, rows, numbers, missing = 0.02 if quick else 0.3, [], {}, []
    with tempfile.TemporaryDirectory() as folder, alone(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arm = Arm(Path(folder))
        for size, lead in _SIZES.items():
            rng, count = np.random.default_rng(0), int(np.prod(lead, dtype=int))
            given = [rng.normal(size=(*lead, arm.system.nv)) for _ in range(3)]
            runs: Runs = {
                "bare": lambda given=given: kf.forward_dynamics(arm.system, *given),
                "bare, derivatives": lambda given=given: kf.forward_dynamics_derivatives(arm.system, *given),
            }
            for framework in (by_jax, by_torch):
                try:
                    runs |= framework(arm, *given)
                except ModuleNotFoundError as error:
                    missing = [*missing, str(error.name)]
            tens = {name: lambda run=run: [run() for _ in range(TOGETHER)] for name, run in runs.items()}
            took = {name: t / TOGETHER for name, t in race(tens, budget).items()}
            numbers[size] = took
            rows += [[size, name, f"{1e6 * t:.1f}", f"{1e6 * t / count:.3f}"] for name, t in took.items()]
    return Report(
        "bridge",
        "Forward dynamics of an arm of seven hinges, called from JAX and PyTorch",
        ["states", "called from", "µs a call", "µs a state"],
        rows,
        environment(
            ["kfdyn", "numpy", "llvmlite", "jax", "torch", "frax", "adam-robotics", "mujoco-mjx", "pytorch_kinematics"]
        ),
        [
            "Processor time, one thread of kfdyn's. Gradients are of the sum of accelerations in q, v and tau.",
            f"Answers were compared first: those in JAX are within {CLOSE:g} of kfdyn's own, those of "
            f"pytorch_kinematics within {SINGLE:g}.",
            "The sum and the product of vectors are what a program of the framework's takes by itself.",
            *(f"{name} is not installed." for name in sorted(set(missing))),
        ],
        {"seconds": numbers},
        words=2,
    )
