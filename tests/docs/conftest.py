"""Modules beside the documentation's configuration, importable in its tests."""

import sys
from pathlib import Path

folder = str(Path(__file__).parents[2] / "docs")
if folder not in sys.path:
    sys.path.append(folder)
