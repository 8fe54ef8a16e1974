"""numba, loaded whole before any kernel asks for a part of it."""

from kfdyn.first_use import load_numba

#: Whether compiled code is kept on disk: not where nothing can be written.
KEPT: bool = load_numba()
