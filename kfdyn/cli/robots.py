"""Robots and their states as the command line names them: a file or ``builtin:puma560``; numbers or a word."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, ShapeError, SingularError

if TYPE_CHECKING:
    from kfdyn.io import Loaded
    from kfdyn.multibody import System


BUILTIN = "builtin:"
SIZED = ("chain", "four_bar_chain", "random_tree", "uniform_chain")  # built-in systems that take a number of bodies
SEEDED = ("chain", "random_tree")
_NUMBER = r"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|nan|inf)"  # the last two to be refused by name
_WORDS = ("neutral", "zero", "random")
_NUMBERS = re.compile(rf"{_NUMBER}(,{_NUMBER})*,?")


def add_robot(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Add FILE, with a default (or "" for no robot) if it may be left out, and how it is read."""
    about = "URDF or MJCF file, or a built-in robot: builtin:puma560, builtin:random_tree:300 (bodies)"
    if default is None:
        parser.add_argument("file", metavar="FILE", help=about)
    else:
        parser.add_argument(
            "file",
            metavar="FILE",
            nargs="?",
            default=default,
            help=about + (f" (default: {default})" if default else ""),
        )
    parser.add_argument("--floating-base", action="store_true", help="URDF: put the root link on a free hinge")
    parser.add_argument(
        "--indefinite-inertia",
        choices=("refuse", "warn"),
        default="refuse",
        help="what to do with a link whose inertia no body has, say a negative moment (%(default)s)",
    )


def add_state(parser: argparse.ArgumentParser) -> None:
    """Add ``--q``, ``--v`` and ``--seed``."""
    words = "numbers in the order of 'kfdyn info', 'neutral', or 'random' from the seed (default)"
    parser.add_argument("--q", metavar="Q", default="random", help=f"configuration: {words}")
    parser.add_argument("--v", metavar="V", default="random", help="velocity: numbers, 'zero', or 'random' (default)")
    parser.add_argument("--seed", type=count, default=0, metavar="S", help="seed of all that is random (%(default)s)")


def count(text: str, least: int = 0) -> int:
    """Parse a whole number, 0 (or ``least``) or more; 1e6 and 1_000_000 are such."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if value >= 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is too large; give a whole number below 2**63")
    if not (least <= value and value == int(value)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, {least} or more")
    return int(value)


def positive(text: str) -> int:
    """Parse a whole number, 1 or more."""
    return count(text, least=1)


def join_numbers(argv: Sequence[str]) -> list[str]:
    """Join the numbers that follow ``--q`` or ``--v`` to one argument, which argparse may not take for options.

    A word like ``zero`` after numbers is joined too, to be refused with them; and so are other words in their place.
    """
    rest, joined = list(argv), []
    while rest:
        token = rest.pop(0)
        numbers: list[str] = []
        while token in ("--q", "--v") and rest and (_NUMBERS.fullmatch(rest[0]) or _is_word(rest[0], numbers)):
            numbers.append(rest.pop(0).rstrip(","))
        joined.append(f"{token}={','.join(numbers)}" if numbers else token)
    return joined


def _is_word(text: str, before: Sequence[str]) -> bool:
    """Return True for a word in the place of a number: one of ours after others, or one that is no file."""
    if text in _WORDS:
        return bool(before)
    return text.isalpha() and all(word.isalpha() for word in before) and not Path(text).exists()


def open_robot(args: argparse.Namespace) -> Loaded:
    """Load the FILE of the options, or make the built-in robot that it names."""
    from kfdyn.io import Loaded, read
    from kfdyn.multibody import models

    name: str = args.file
    if name.startswith(BUILTIN):
        if args.floating_base:
            raise ModelError(
                f"{name}: --floating-base is for URDF files; builtin:free_flyer and builtin:humanoid float"
            )
        return Loaded(_builtin(name), name)
    try:
        return read(name, floating_base=args.floating_base, indefinite_inertia=args.indefinite_inertia)
    except FileNotFoundError:
        if name in models.__all__:
            raise ModelError(f"there is no file {name!r}; the built-in robot is {BUILTIN}{name}") from None
        raise


def expect_covariances(system: System) -> None:
    """Refuse inertias that are no covariances: ``--indefinite-inertia warn`` lets them in, but none can be drawn."""
    for body in system.bodies:
        lowest, *_, largest = np.linalg.eigvalsh(body.inertia)
        if lowest < -1e-12 * max(abs(lowest), largest):
            raise ModelError(
                f"link {body.name!r}: its inertia has the negative eigenvalue {lowest:.3g}, so it is no covariance and "
                "nothing can be confronted with it; mend the file, or see what is in it by 'kfdyn info'"
            )


def _builtin(name: str) -> System:
    from kfdyn.multibody import models

    kind, *arguments = name.removeprefix(BUILTIN).split(":")
    if kind not in models.__all__:
        raise ModelError(f"there is no {name!r}; built in are {', '.join(models.__all__)}")
    wanted = f"{BUILTIN}{kind}" + ":BODIES" * (kind in SIZED) + "[:SEED]" * (kind in SEEDED)
    most = (kind in SIZED) + (kind in SEEDED)
    if not (kind in SIZED) <= len(arguments) <= most or not all(text.isdecimal() for text in arguments):
        raise ModelError(f"{name!r} should be {wanted}")
    system: System = getattr(models, kind)(*map(int, arguments))
    return system


def read_state(system: System, args: argparse.Namespace) -> tuple[Array, Array]:
    """Return q (nq,) and v (nv,) of the options; random ones are drawn from the seed, q first."""
    rng = np.random.default_rng(args.seed)
    q, v = system.random_configuration(rng), rng.standard_normal(system.nv)
    if args.q == "neutral":
        q = system.neutral()
    elif args.q != "random":
        q = _numbers(args.q, "q", ("neutral", "random"), system.nq, system)
    if args.v == "zero":
        v = np.zeros(system.nv)
    elif args.v != "random":
        v = _numbers(args.v, "v", ("zero", "random"), system.nv, system)
    return q, v


@contextmanager
def naming_hinges(system: System, q: Array) -> Iterator[None]:
    """Name the hinge that moves no mass; the engine knows only a node and its output."""
    try:
        yield
    except SingularError:
        from kfdyn.dynamics import dynamics_filter

        try:
            dynamics_filter(system, q, np.zeros(system.nv), np.zeros(system.nv))
        except SingularError as error:
            if not str(error).startswith("node"):  # as it does where hinges are coupled, several to a node
                raise
        raise SingularError(
            f"hinge {_lightest(system, q)!r} moves next to no mass of its own in this configuration, so that the mass "
            "matrix has no inverse; give its body an inertia or it an armature, or try another --q or --seed"
        ) from None


def _lightest(system: System, q: Array) -> str:
    """Return the hinge that has most of the motion with the least kinetic energy."""
    from kfdyn.dynamics import mass_matrix

    M = mass_matrix(system, q)
    units = np.sqrt(np.maximum(np.diag(M), np.finfo(float).tiny))
    dof = int(np.abs(np.linalg.eigh(M / units / units[:, None])[1][:, 0]).argmax()) if np.diag(M).all() else -1
    dof = int(np.diag(M).argmin()) if dof < 0 else dof
    return next(name for name in _independent(system) if dof in range(system.nv)[system.v_slice(name)])


def _numbers(text: str, what: str, words: tuple[str, str], size: int, system: System) -> Array:
    try:
        values = np.array([float(part) for part in re.split(r"[,\s]+", text.strip(" ,")) if part])
    except ValueError:
        raise ModelError(f"--{what} {text!r}: give {size} numbers, {words[0]!r} or {words[1]!r}") from None
    if not np.isfinite(values).all():
        raise ModelError(f"--{what} holds {values[~np.isfinite(values)][0]}, which is not finite; give {size} numbers")
    if values.size != size:
        raise ShapeError(
            f"--{what} has {values.size} numbers, but {system.name!r} takes {size}: " + ", ".join(_places(system, what))
        )
    return values


def _independent(system: System) -> list[str]:
    """Return the names of the hinges that follow no others."""
    following = {name for c in system.couplings for name in c.hinges if name not in c.named}
    return [name for name in system.hinge_names if name not in following]


def _places(system: System, what: str, most: int = 12) -> Iterator[str]:
    """Name each hinge with the number of coordinates it takes."""
    place = system.q_slice if what == "q" else system.v_slice
    hinges = _independent(system)
    for hinge in hinges[:most]:
        at = place(hinge)
        size = at.stop - at.start
        yield hinge if size == 1 else f"{hinge} ({size})"
    if len(hinges) > most:
        yield f"and {len(hinges) - most} more hinges"
