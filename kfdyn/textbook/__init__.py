"""The sources executed: plain NumPy in their own notation, for reading beside the papers and as an oracle of the rest.

:mod:`kfdyn.textbook.r86` is Rodriguez's report, section by section; :mod:`kfdyn.textbook.sko` is Jain's theory for any
triple (H, A, M) on a tree; :mod:`kfdyn.textbook.part` is his paper on partitioning. They share no line with the
compiled code and import nothing but NumPy. Numbers may be floats, SymPy's symbols or numbers that count what is done
to them: arrays of objects pass through every function.
"""

from kfdyn.textbook import part, r86, sko

__all__ = ["part", "r86", "sko"]
