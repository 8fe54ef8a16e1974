"""Let these tests use the random systems of the other rooms' tests."""

import sys
from pathlib import Path

for room in (".", "..", "../../multibody", "../../external", "../../estimation"):
    folder = str((Path(__file__).parent / room).resolve())
    if folder not in sys.path:
        sys.path.append(folder)
