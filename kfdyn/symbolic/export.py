"""Export formulas as functions in other languages: NumPy, C, JAX."""

from __future__ import annotations

import keyword
from typing import Literal

from kfdyn.errors import ModelError
from kfdyn.symbolic.formulas import Formula
from kfdyn.symbolic.tape import Term

Language = Literal["numpy", "c", "jax"]

# Words of C99 and functions of its math.h, which the exported source includes; these also end in f and l.
_C_WORDS = """auto break case char const continue default do double else enum extern float for goto if inline int long
register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while"""
_C_MATH = """acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim floor
fma fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan
nearbyint nextafter nexttoward pow remainder remquo rint round scalbln scalbn sin sinh sqrt tan tanh tgamma trunc"""
#: What no exported function can be called: its source would not compile, or would not find its library.
TAKEN: dict[str, frozenset[str]] = {
    "numpy": frozenset((*keyword.kwlist, "np")),
    "jax": frozenset((*keyword.kwlist, "jnp")),
    "c": frozenset((*_C_WORDS.split(), *(word + end for word in _C_MATH.split() for end in ("", "f", "l")))),
}


def export(formula: Formula, language: Language = "numpy", name: str | None = None) -> str:
    """Write the formula as the source of a function.

    Parameters
    ----------
    formula : Formula
        Of one of this module's functions.
    language : {"numpy", "c", "jax"}
        "numpy" and "jax" take arrays with leading axes and return arrays with the same; "c" is one function
        ``void name(const double *q, ..., double *out)`` of C99 with the result in row-major order.
    name : str, optional
        Of the function; the formula's own if not given.

    Returns
    -------
    str
        Source that needs NumPy, JAX or ``math.h`` and nothing of this package. It says in its docstring what it is.

    Notes
    -----
    Constants are written with all their digits, so that it agrees with the package to rounding.

    Examples
    --------
    >>> import kfdyn as kf
    >>> source = kf.symbolic.export(kf.symbolic.bias_forces(kf.models.pendulum()), "c")
    >>> print(source.splitlines()[-2].strip())
    out[0] = 9.81*sin(q[0]);
    """
    if language not in ("numpy", "c", "jax"):
        raise ModelError(f"language must be 'numpy', 'c' or 'jax', not {language!r}")
    if not isinstance(formula, Formula):
        raise ModelError(f"formula must be one of kf.symbolic's, such as mass_matrix(system), got {formula!r:.80}")
    name = formula.name if name is None else name
    if not name.isidentifier() or name in TAKEN[language] or (language == "c" and not name.isascii()):
        raise ModelError(f"{name!r} is no name for a function in {language}; give another as name=")
    writer = _C(formula) if language == "c" else _Python(formula, "np" if language == "numpy" else "jnp")
    return writer.source(name)


class _Writer:
    """Base of the writers: names, precedence, and the order of the steps."""

    call = ""

    def __init__(self, formula: Formula) -> None:
        self.formula = formula
        inputs = formula.inputs
        self.read = {n: self.at(group, i) for group in ("q", "v", "tau") for i, n in enumerate(getattr(inputs, group))}
        self.read |= {n: self.at("parameters", i) for i, n in enumerate(inputs.parameters)}
        self.read["1"] = "1.0"

    def at(self, group: str, i: int) -> str:
        raise NotImplementedError

    @property
    def arguments(self) -> list[str]:
        inputs = self.formula.inputs
        return [g for g in ("q", "v", "tau", "parameters") if getattr(inputs, g)]

    def expressions(self) -> tuple[list[tuple[str, str]], list[str]]:
        """Return (name, expression) of each step, and the results."""
        formula, text, steps = self.formula, {}, []
        named = {at: f"x{i}" for i, at in enumerate(formula.shared)}
        for at in formula.entries:
            entry = formula.tape.entries[at]
            if entry[0] == "leaf":
                text[at] = self.read[entry[1]]
            elif entry[0] == "add":
                text[at] = f"({_scaled(entry[1], text[entry[2]])} + {_scaled(entry[3], text[entry[4]])})"
            elif entry[0] == "mul":
                text[at] = f"{text[entry[1]]}*{text[entry[2]]}"
            elif entry[0] == "recip":
                text[at] = f"(1.0/({text[entry[1]]}))"
            else:
                text[at] = f"{self.call}{entry[0]}({text[entry[1]]})"
            if at in named:
                steps.append((named[at], _bare(text[at])))
                text[at] = named[at]
        out = [_bare(_scaled(x.coefficient, text[x.at])) if isinstance(x, Term) else repr(x) for x in formula.results]
        return steps, out

    def docstring(self) -> list[str]:
        formula, counts = self.formula, self.formula.counts
        says = _visible(f"{formula.says[0].upper()}{formula.says[1:]}")
        lines = [f"{says}, written by kfdyn.symbolic.", ""]
        lines += [
            f"{counts.add} additions, {counts.multiply} multiplications, {counts.divide} divisions, "
            f"{counts.trigonometric} sines and cosines."
        ]
        for group in self.arguments:
            names = tuple(getattr(formula.inputs, group))
            told = f": {', '.join(f'{n} = {v!r}' for n, v in formula.inputs.parameters.items())}"
            lines.append(f"{group}: {len(names)} numbers{told if group == 'parameters' else ''}")
        shape = " x ".join(map(str, formula.shape)) or "one number"
        return [*lines, f"Result: {shape}."]


class _Python(_Writer):
    def __init__(self, formula: Formula, module: str) -> None:
        self.module, self.call = module, f"{module}."
        super().__init__(formula)

    def at(self, group: str, i: int) -> str:
        return f"{group}[..., {i}]"

    def source(self, name: str) -> str:
        formula, m = self.formula, self.module
        steps, out = self.expressions()
        imports = "import numpy as np" if m == "np" else "import jax.numpy as jnp"
        doc = [line.replace("\\", r"\\").replace('"', r"\"") for line in self.docstring()]
        lines = [imports, "", "", f"def {name}({', '.join(self.arguments)}):", f'    """{doc[0]}', ""]
        lines += [f"    {line}" if line else "" for line in doc[2:]] + ['    """']
        lines += [f"    {a} = {m}.asarray({a}, dtype=float)" for a in self.arguments]
        lines += [f"    {x} = {e}" for x, e in steps]
        lead = ", ".join(f"{a}.shape[:-1]" for a in self.arguments)
        lines.append(f"    lead = {m}.broadcast_shapes({lead})")
        lines.append(f"    out = [{', '.join(out)}]")
        stacked = f"{m}.stack([{m}.broadcast_to(x, lead) for x in out], axis=-1)"
        shape = "".join(f"{n}, " for n in formula.shape)
        lines.append(
            f"    return {stacked}.reshape((*lead, {shape}))" if formula.shape else f"    return {stacked}[..., 0]"
        )
        return "\n".join(lines) + "\n"


class _C(_Writer):
    def at(self, group: str, i: int) -> str:
        return f"{group}[{i}]"

    def source(self, name: str) -> str:
        steps, out = self.expressions()
        safe = [line.replace("*/", "* /").replace("/*", "/ *") for line in self.docstring()]
        doc = "\n".join(f" * {line}".rstrip() for line in safe)
        arguments = ", ".join([*(f"const double *{a}" for a in self.arguments), "double *out"])
        lines = ["#include <math.h>", "", "/*", doc, " */", f"void {name}({arguments})", "{"]
        lines += [f"    const double {x} = {e};" for x, e in steps]
        lines += [f"    out[{i}] = {e};" for i, e in enumerate(out)]
        return "\n".join([*lines, "}"]) + "\n"


def _visible(text: str) -> str:
    r"""Return text on one line: line breaks and invisible letters are written as ``\n`` or ``\u202e``.

    Names come from files: in a docstring or a comment they may not end it.
    """
    return "".join(x if x.isprintable() else ascii(x)[1:-1] for x in text)


def _scaled(coefficient: float, text: str) -> str:
    """Write ``coefficient`` times an expression; a float has all its digits."""
    if coefficient == 1:
        return text
    return f"-{text}" if coefficient == -1 else f"{coefficient!r}*{text}" if text != "1.0" else repr(coefficient)


def _bare(text: str) -> str:
    """Strip an outer pair of parentheses that holds all of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for i, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and i < len(text) - 1:
            return text
    return text[1:-1]
