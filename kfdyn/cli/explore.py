"""``kfdyn explore``: a robot in the browser, to be dragged."""

from __future__ import annotations

import argparse
from pathlib import Path

from kfdyn.cli.robots import add_robot, add_state, count, expect_covariances, open_robot, read_state
from kfdyn.cli.terminal import complain

ABOUT = "show a robot in the browser, with its articulated inertias, to be dragged"
EXAMPLES = (
    "kfdyn explore",
    "kfdyn explore panda.urdf --q neutral",
    "kfdyn explore talos.urdf --floating-base --port 9000 --no-browser",
    "kfdyn explore builtin:double_pendulum --record fall.html",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_robot(parser, default="builtin:puma560")
    add_state(parser)
    parser.add_argument(
        "--host", default="127.0.0.1", help="who may look: this machine (%(default)s) unless told otherwise"
    )
    parser.add_argument("--port", type=count, default=8080, metavar="N", help="port (%(default)s); 0 takes any")
    parser.add_argument("--no-browser", action="store_true", help="print the address, open nothing")
    parser.add_argument(
        "--record", type=Path, metavar="HTML", help="write a fall as a page that needs no server, and end"
    )


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C, or record; 0."""
    from kfdyn.explore import record, serve

    loaded = open_robot(args)
    expect_covariances(loaded.system)
    q, _ = read_state(loaded.system, args)
    for note in loaded.warnings:
        complain(f"warning: {note}")
    if args.record is not None:
        record(loaded.system, args.record, q, args.file)
        print(f"wrote {args.record}")
        return 0
    serve(
        loaded.system,
        q,
        args.file,
        args.host,
        args.port,
        open_browser=not args.no_browser,
        say=lambda text: print(text, flush=True),
    )
    return 0
