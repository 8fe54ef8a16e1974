"""``kfdyn check-log``: the certificate in time, a robot's log against its file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from kfdyn.arrays import Array
from kfdyn.cli.log_file import UNITS, read_log
from kfdyn.cli.robots import add_robot, open_robot
from kfdyn.cli.terminal import clean, complain
from kfdyn.errors import ModelError

ABOUT = "test a robot's log against its file: is what is left noise, and which mass would have been noticed?"
EXAMPLES = (
    "kfdyn check-log robot.urdf log.csv",
    "kfdyn check-log robot.urdf log.csv --encoder-std 1e-4 --force-std 0.1",
    "kfdyn check-log robot.urdf log.csv --degrees --time-unit ms",
    "kfdyn check-log robot.urdf log.csv --json > report.json",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_robot(parser)
    parser.add_argument(
        "log",
        metavar="LOG",
        type=Path,
        help="CSV with a header: t, then q:HINGE, tau:HINGE and perhaps v:HINGE of each hinge; gaps are empty, or rows "
        "that are missing",
    )
    for option, what in (("--encoder-std", "of q:"), ("--velocity-std", "of v:"), ("--force-std", "of forces")):
        parser.add_argument(option, type=float, metavar="S", help=f"standard deviation {what} (default: fitted)")
    parser.add_argument("--degrees", action="store_true", help="angles and their rates are in degrees, not radians")
    parser.add_argument("--time-unit", choices=tuple(UNITS), default="s", help="of t (%(default)s)")
    parser.add_argument("--level", type=float, default=0.01, help="of the verdict (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def run(args: argparse.Namespace) -> int:
    """Print the report; 0 if it passed, 1 if rejected."""
    import kfdyn as kf

    loaded = open_robot(args)
    for note in loaded.warnings:
        complain(f"warning: {note}")
    system = loaded.system
    dt, q, v, tau, notes = read_log(args.log, system, args.time_unit, args.degrees)
    for note in notes:
        complain(f"note: {args.log}: {note}")
    known = [args.encoder_std, args.force_std, *([] if v is None else [args.velocity_std])]
    if any(one is not None and not one > 0.0 for one in known):
        raise ModelError("standard deviations must be positive numbers")
    fit = any(one is None for one in known)
    sensors = [kf.sensors.JointPosition((args.encoder_std or _roughness(q)) ** 2, name="encoders")]
    readings = [q]
    if v is not None:
        sensors.append(kf.sensors.JointVelocity((args.velocity_std or _roughness(v)) ** 2, name="velocities"))
        readings.append(v)
    force = args.force_std or 0.02 * float(np.sqrt(np.mean(tau**2))) or 1.0
    model = kf.MotionModel(
        system, dt, sensors, np.full(system.nv, force**2), method="implicit", damping=True, friction=True
    )
    report = kf.motion.check_log(model, readings, tau, fit_noise=fit, level=args.level)
    if args.json:
        residuals = {name: test._asdict() for name, test in report.residuals.items()}
        suspects = [one._asdict() for one in report.suspects]
        found = {"passed": report.passed, "residuals": residuals, "suspects": suspects, "p_values": report.p_values}
        print(json.dumps({"file": args.file, "log": str(args.log), **found}, indent=2))
    else:
        print(clean(report.table()))
    return 0 if report.passed else 1


def _roughness(x: Array) -> float:
    """Standard deviation of noise on smooth columns, by third differences."""
    jumps = np.diff(x, n=3, axis=0)
    found = float(np.sqrt(np.nanmedian(np.nanmean(jumps**2, axis=0)) / 20.0)) if len(jumps) else 0.0
    return found if found > 0.0 else 1e-6
