"""Command line of the benchmarks: ``python -m benchmarks [part ...] [--quick] [--output DIR]``."""

import argparse
from importlib import import_module
from pathlib import Path

PARTS = {
    "engine": "filter and smoother against statsmodels and filterpy",
    "sizes": "blocks of one to two hundred states, beside NumPy's plain filter and statsmodels",
    "scaling": "time and memory up to a million nodes",
    "batch": "100,000 right-hand sides on one tree",
    "startup": "import, first call, later calls",
    "dynamics": "robots beside Pinocchio and MuJoCo",
    "loops": "loops, gears and contacts beside Pinocchio",
    "calls": "one state, one call after the other, beside Pinocchio; steps of a motion",
    "steps": "symplectic steps of a motion beside those by Runge and Kutta",
    "bodies": "forward dynamics of 10 to 100,000 bodies",
    "rebuilding": "models built and rebuilt, likelihoods, scores, square roots: what a fit does again and again",
    "forms": "square roots, scores and blocks of a chain beside covariances",
    "fits": "whole fits beside statsmodels and PhyKIT",
    "fast_gain": "the gain propagated directly, beside Riccati, DARE and statsmodels",
    "motions": "motions smoothed and followed, beside Crocoddyl",
    "identification": "robots identified from their logs, beside mujoco.sysid",
    "sensing": "dynamics from sensors beside iDynTree's BERDY",
    "flexible": "bodies that bend, and PART's split of their modes",
    "control": "plans, linear-quadratic problems and a receding horizon beside Crocoddyl",
    "bridge": "dynamics called from JAX and PyTorch, with gradients",
    "samplers": "posteriors by NUTS and emcee on the likelihood and its score",
    "operations": "operations of the kernels and the peak of the core",
    "compilation": "first calls of dynamics, cold and from the cache",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Time the engine beside its peers. Shortest of many runs; see that the machine is otherwise idle.",
        epilog="parts: " + "; ".join(f"{name}: {what}" for name, what in PARTS.items()),
    )
    parser.add_argument("parts", nargs="*", metavar="part", help="which to run; all by default")
    parser.add_argument("--quick", action="store_true", help="small sizes and few repeats; writes only with --output")
    parser.add_argument("--output", type=Path, help="where to write (default: benchmarks/results)")
    args = parser.parse_args()
    unknown = [part for part in args.parts if part not in PARTS]
    if unknown:
        parser.error(f"no part '{unknown[0]}'; there are {', '.join(PARTS)}")
    folder = args.output or (None if args.quick else Path(__file__).parent / "results")
    for name in args.parts or PARTS:
        print(f"benchmark {name}: {PARTS[name]} ...", flush=True)
        report = import_module(f"benchmarks.{name}").run(args.quick)
        report.show()
        if folder is not None:
            report.write(folder)
    if folder is not None:
        print(f"written to {folder}")


if __name__ == "__main__":
    main()
