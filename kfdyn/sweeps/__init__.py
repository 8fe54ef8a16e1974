"""The language of recursions: written once, for compiled lanes, Python's numbers, symbols and one robot.

A recursion is an ordinary Python function over numbers (:mod:`values`), variables (:mod:`variables`), memory
(:mod:`memory`, :mod:`records`) and small algebra (:mod:`algebra`), whose loops and branches are those of
:mod:`control_flow`. Run on Python's floats or on SymPy's symbols it computes; run on proxies it writes the code of a
compiled function (:mod:`compiler.driver`), which is kept on disk under the digest of all it was made from
(:mod:`compiler.cache`). The page "How to add a recursion" shows one from the first line to the last. Nothing here knows
of filters or robots.
"""

from kfdyn.lazy import on_first_use

_PLACES = {
    "algebra": ("Mat3", "Sym3", "Vec3"),
    "control_flow": ("both", "down", "if_", "if_else", "loop", "loop_vars", "size", "switch", "while_"),
    "entry": ("Entry", "Given", "Options", "Parameter", "Space"),
    "functions": ("atan2", "fma", "log", "maximum", "minimum", "sincos", "sqrt"),
    "jit": ("Checks", "Tag", "sweep"),
    "memory": ("Checked", "Column", "clear", "passes", "pointer"),
    "records": ("Packed", "Record", "Table"),
    "routine": ("routine",),
    "thread_pool": ("alone", "threads"),
    "trace_context": ("FAST", "IN_ORDER", "LANEWISE", "arithmetic"),
    "values": ("Value", "all_lanes", "any_lanes", "broadcast", "not_", "now", "to_float", "to_int", "unboxed", "where"),
    "variables": ("local",),
}

__getattr__, __dir__, __all__ = on_first_use(__name__, _PLACES)
