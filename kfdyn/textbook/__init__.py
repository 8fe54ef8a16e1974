"""The sources executed: plain NumPy in their own notation, for reading beside the papers and as an oracle of the rest.

:mod:`kfdyn.textbook.r86` is Rodriguez's report, section by section; :mod:`kfdyn.textbook.sko` is Jain's theory for any
triple (H, A, M) on a tree; :mod:`kfdyn.textbook.part` is his paper on partitioning, :mod:`kfdyn.textbook.srb` what his
lectures on the single body write down; :mod:`kfdyn.textbook.scan` is the filter of a chain as an associative
scan. They share no line with the compiled code and import nothing but NumPy and the package's errors.
(The blocks of a robot, that ``sko.model_of`` takes, come from
``as_estimation``; ``r86.arm_of`` reads masses and axes alone.)

Numbers may be floats, rational numbers, SymPy's symbols or numbers that count what is done to them: arrays of objects
pass through every function and stay what they are. Only ``r86.draw_9_1_to_9_3`` and ``sko.lagrange`` are of floats: one
draws, the other takes complex steps; ``part.unilateral`` and ``srb.constraint_rows`` compare sizes, which symbols lack.
"""

from kfdyn.textbook import part, r86, scan, sko, srb

__all__ = ["part", "r86", "scan", "sko", "srb"]
