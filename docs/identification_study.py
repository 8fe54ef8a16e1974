"""Calibration of kf.identify over many simulated logs; writes identification_study.json beside this file.

    python docs/identification_study.py      two robots, 200 logs, some minutes of processor time

Half of the logs come from the model's own step, half from MuJoCo's, whose damping is implicit as the model's is. Beside
it stands the joint mode over states, forces and parameters, for logs of the first robot with noise levels known.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

import kfdyn as kf
from kfdyn.multibody.system import rebuilt
from kfdyn.spatial import spatial_inertia

HERE = Path(__file__).parent
S = kf.sensors
DT = 0.01
NOISE, ENCODER, GYRO = 1.0, 1e-6, 1e-4


def rods():
    """Two rods in a plane."""
    about_y = kf.Hinge.revolute([0, 1, 0])
    upper = spatial_inertia(1.2, [0.02, 0.01, -0.5], np.diag([0.05, 0.06, 0.03]))
    lower = spatial_inertia(0.8, [0.0, 0.03, -0.4], np.diag([0.04, 0.05, 0.02]))
    return kf.System(
        [
            kf.Body("upper", upper, about_y, hinge_name="shoulder", damping=0.05),
            kf.Body("lower", lower, about_y, "upper", position=[0, 0, -1], hinge_name="elbow", damping=0.02),
        ],
        name="two rods",
    )


def arm():
    """Three hinges that leave no plane."""
    base = spatial_inertia(3.0, [0.0, 0.02, 0.1], np.diag([0.03, 0.03, 0.02]))
    upper = spatial_inertia(2.0, [0.2, 0.0, 0.01], np.diag([0.004, 0.03, 0.031]))
    lower = spatial_inertia(1.0, [0.15, 0.02, -0.03], np.diag([0.003, 0.012, 0.011]))
    y = kf.Hinge.revolute([0, 1, 0])
    return kf.System(
        [
            kf.Body("base", base, kf.Hinge.revolute([0, 0, 1]), hinge_name="waist", damping=0.3),
            kf.Body("upper", upper, y, "base", position=[0, 0, 0.3], hinge_name="shoulder", damping=0.2),
            kf.Body("lower", lower, y, "upper", position=[0.4, 0, 0], hinge_name="elbow", damping=0.1),
        ],
        name="arm of three hinges",
    )


ROBOTS = {
    "two rods": (rods, ["lower/mass", "*/damping", "force_noise", "*/cov"], 1000),
    "arm": (arm, ["lower/com", "*/damping", "force_noise", "*/cov"], 1000),
}


def model_of(system):
    """Encoders, and a gyroscope on the last body; the prior is flat."""
    sensors = [S.JointPosition(ENCODER, name="encoders"), S.Gyroscope(system.body_names[-1], GYRO, name="gyro")]
    noise = np.full(system.nv, NOISE)
    return kf.MotionModel(system, DT, sensors, noise, damping=True, method="implicit")


def torques(system, N):
    """Sines of several frequencies beside what holds the robot."""
    t = DT * np.arange(N)
    swing = np.sin(np.outer(t, 2.0 + 1.3 * np.arange(system.nv)) + np.arange(system.nv))
    return swing * [[4.0, 3.0], [3.0, 4.0, 2.0]][system.nv - 2]


def moved_by_mujoco(system, model, q, v, forces):
    """States (N, 2 nv) under MuJoCo's steps."""
    plant = mujoco.MjModel.from_xml_string(kf.save_urdf(system))
    plant.opt.timestep, plant.opt.integrator = DT, mujoco.mjtIntegrator.mjINT_EULER
    plant.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
    plant.dof_damping[:] = system.damping
    data = mujoco.MjData(plant)
    data.qpos[:], data.qvel[:] = q, v
    out = [np.concatenate([q, v])]
    for force in forces:
        data.qfrc_applied[:] = force
        mujoco.mj_step(plant, data)
        out.append(np.concatenate([data.qpos, data.qvel]))
    return np.array(out)


def moved_by_the_model(system, model, q, v, forces):
    """The same under the model's own."""
    out, none = [np.concatenate([q, v])], np.zeros((1, model.p))
    for force in forces:
        out.append(model.advance(out[-1][None], none, force[None], np.array([0]))[0])
    return np.array(out)


PLANTS = {"model": moved_by_the_model, "MuJoCo": moved_by_mujoco}
FIRST = {"model": 0, "MuJoCo": 1000}  # seeds: the plants agree to 1e-14, so that equal seeds would be equal logs


def log(system, plant, seed, N):
    """Readings of a run and the torques that were ordered."""
    rng, model, tau = np.random.default_rng(seed), model_of(system), torques(system, N)
    forces = tau[:-1] + rng.normal(scale=np.sqrt(NOISE), size=(N - 1, system.nv))
    start = 0.3 * rng.normal(size=(2, system.nv))
    x = PLANTS[plant](system, model, *start, forces)
    y = model.read(x, np.zeros((N, model.p)), tau, np.arange(N))
    y += rng.normal(size=y.shape) * np.sqrt(np.diag(model.R))
    return [y[:, own] for own in model.seen.points_of], tau[:-1]


def guess(system):
    """The robot as a maker's file might have it: the last body lighter, dampers forgotten."""
    last = len(system.bodies) - 1
    bodies = tuple(
        replace(body, inertia=(0.7 if k == last else 1.0) * body.inertia, damping=0.01 + 0.0 * body.damping)
        for k, body in enumerate(system.bodies)
    )
    return rebuilt(bodies, system.gravity, {}, system.name, "refuse")


def truth_of(system, names):
    """True numbers, by their names."""
    body, known = system.bodies[-1], {}
    six, m = body.inertia, body.inertia[3, 3]
    lever = six[:3, 3:] / m
    known[f"{body.name}/mass"] = m
    known |= {f"{body.name}/com_{x}": c for x, c in zip("xyz", (lever[2, 1], lever[0, 2], lever[1, 0]))}
    known |= {f"{name}/damping": d for name, d in zip(system.hinge_names, system.damping)}
    known |= {f"force_noise[{name}]": NOISE for name in system.hinge_names}
    known |= {"encoders/cov": ENCODER, "gyro/cov": GYRO}
    return [float(known[name]) for name in names]


def one(robot, plant, seed):
    """One log identified: numbers, standard errors and whether each interval of 95 % has the truth."""
    make, parameters, N = ROBOTS[robot]
    system = make()
    readings, tau = log(system, plant, seed, N)
    found = kf.identify(model_of(guess(system)), readings, tau, parameters)
    truth = np.array(truth_of(system, found.names))
    low, high = found.conf_int().T
    by_log = np.array(["cov" in name or "noise" in name or name.endswith("/mass") for name in found.names])
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.where(by_log, np.log(found.params / truth) * found.params, found.params - truth) / found.stderr
    return {
        "plant": plant, "seed": seed, "converged": bool(found.converged), "names": list(found.names),
        "covered": ((low <= truth) & (truth <= high)).tolist(),
        "sigmas": [round(x, 3) if np.isfinite(x) else None for x in error.tolist()],  # None: at a bound
    }  # fmt: skip


def joint_mode(seed):
    """Mass and dampers of the two rods where states, forces and parameters are most probable together."""
    make, _, N = ROBOTS["two rods"]
    system = make()
    readings, tau = log(system, "model", seed, N)
    start = [None]

    def cost(theta):
        bodies = list(system.bodies)
        bodies[1] = replace(bodies[1], inertia=np.exp(theta[0]) * bodies[1].inertia, damping=theta[2])
        bodies[0] = replace(bodies[0], damping=theta[1])
        model = model_of(rebuilt(tuple(bodies), system.gravity, {}, system.name, "refuse"))
        post = kf.iterated_kalman_smoother(
            model, readings, tau=tau, start="prior" if start[0] is None else start[0], covariances=False
        )
        start[0] = (post.x, post.noise)
        return float(post.cost[-1])

    q = np.concatenate([readings[0], np.gradient(readings[0], DT, axis=0)], axis=1)
    start[0] = (q, np.zeros((N - 1, system.nv)))
    found = minimize(cost, [0.0, *system.damping], method="L-BFGS-B", bounds=[(-1, 1), (0, 1), (0, 1)])
    return {"seed": seed, "mass": float(np.exp(found.x[0]) * 0.8), "damping": found.x[1:].tolist()}


def robot_study(robot, runs):
    """All logs of one robot, names once."""
    found = [one(robot, plant, FIRST[plant] + seed) for plant in PLANTS for seed in range(runs)]
    return {"names": found[0]["names"], "runs": [{key: x for key, x in run.items() if key != "names"} for run in found]}


def main():
    """Write the study."""
    runs, joint = (int(arg) for arg in (*sys.argv[1:], "50", "20")[:2])
    study = {"runs a robot and plant": runs, "robots": {}, "joint mode": []}
    with threadpool_limits(1):
        for robot in ROBOTS:
            study["robots"][robot] = robot_study(robot, runs)
            print(robot, np.mean([run["covered"] for run in study["robots"][robot]["runs"]], axis=0), flush=True)
        study["joint mode"] = [joint_mode(seed) for seed in range(joint)]
    (HERE / "identification_study.json").write_text(json.dumps(study) + "\n")


if __name__ == "__main__":
    main()
