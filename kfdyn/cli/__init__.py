"""The command line, ``kfdyn``: its commands, each in a module of its name, and what it returns.

Exit status: 0 passed, 1 rejected, 2 bad input or usage, 70 an error of kfdyn's own, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence

from kfdyn import __version__
from kfdyn.cli import bench, check, check_log, demo, dictionary, explore, identities, info, warm
from kfdyn.cli.robots import join_numbers
from kfdyn.cli.terminal import complain, tolerate_letters
from kfdyn.errors import KfdynError

PASSED, REJECTED, BAD_INPUT, OWN_ERROR = 0, 1, 2, 70  # the last as in BSD's sysexits
INTERRUPTED, PIPE_CLOSED = 130, 141  # as shells count signals

EPILOG = """examples:
  kfdyn demo                                 the whole story in a minute or two
  kfdyn check robot.urdf                     a robot's mass matrix against statistics
  kfdyn check-log robot.urdf log.csv         a log of it against its file
  kfdyn info robot.urdf                      what is in the file
  kfdyn warm                                 compile now what the first use would compile

FILE is a URDF or MJCF file, or a built-in robot such as builtin:puma560.
Exit status: 0 passed, 1 rejected, 2 bad input, 70 an error of kfdyn's own, 130 interrupted."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process if not given.

    Returns
    -------
    int
        0, 1, 2, 70 or 130, see above; 141 if whoever reads the output stops reading.
    """
    tolerate_letters()
    parser = make_parser()
    try:
        args = parser.parse_args(join_numbers(sys.argv[1:] if argv is None else argv))
    except SystemExit as stop:  # argparse has said why
        return int(stop.code or 0)
    if args.command is None:
        parser.print_help()
        return PASSED
    try:
        status: int = args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains when it closes
        return PIPE_CLOSED
    except (KfdynError, ModuleNotFoundError) as error:
        complain(str(error))
        return BAD_INPUT
    except OSError as error:
        complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        return BAD_INPUT
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    except Exception:  # Python would exit with 1, which says that a check rejected
        traceback.print_exc()
        complain("this is an error of kfdyn's own, not of your input; please report it with the lines above")
        return OWN_ERROR
    return status


def make_parser() -> argparse.ArgumentParser:
    """Make the parser, each command's part by the command's own module."""
    parser = argparse.ArgumentParser(
        prog="kfdyn",
        description="Robot dynamics is a Kalman filter.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"kfdyn {__version__}")
    commands = parser.add_subparsers(dest="command", title="commands", metavar="command")
    for module in (demo, check, check_log, explore, info, identities, dictionary, warm, bench):
        about, examples = module.ABOUT, "\n".join(f"  {line}" for line in module.EXAMPLES)
        own = commands.add_parser(
            module.__name__.rpartition(".")[2].replace("_", "-"),
            help=about,
            description=about[0].upper() + about[1:] + ".",
            epilog=f"examples:\n{examples}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.add_arguments(own)
        own.set_defaults(run=module.run)
    return parser
