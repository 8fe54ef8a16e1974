"""Let these tests use the random matrices of the engine's tests."""

import sys
from pathlib import Path

folder = str(Path(__file__).parents[1])
if folder not in sys.path:
    sys.path.append(folder)
