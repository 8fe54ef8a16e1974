"""``python -m kfdyn``: the command line."""

import sys

from kfdyn.cli import main

if __name__ == "__main__":
    sys.exit(main())
