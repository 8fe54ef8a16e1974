"""Let these tests use the random models, systems and peers of the other rooms' tests."""

import sys
from pathlib import Path

for room in ("estimation", "multibody", "external", "dynamics", "spatial"):
    folder = str(Path(__file__).parents[1] / room)
    if folder not in sys.path:
        sys.path.append(folder)
