"""Make names from files safe to show on a terminal, in a table or in a figure."""

from __future__ import annotations

_BIDI = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))  # marks that turn the order of letters around
_HOSTILE = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *_BIDI, *range(0xD800, 0xE000)), "\ufffd")


def printable(text: str, keep: str = "") -> str:
    r"""Replace control characters but those to keep: a name may not control the terminal.

    Examples
    --------
    >>> printable("arm" + chr(27) + "[31m")
    'arm\ufffd[31m'
    """
    return text.translate({code: to for code, to in _HOSTILE.items() if chr(code) not in keep})


def literal(text: str) -> str:
    r"""Escape a name so that matplotlib shows it letter by letter, without formulas.

    Examples
    --------
    >>> print(literal("arm $1$"))
    arm \$1\$
    """
    return printable(text).replace("$", r"\$")


def in_known_letters(text: str) -> str:
    """Write 𝓜 and ℛ in matplotlib's own letters: its default font has none outside the basic plane."""
    return text.replace("𝓜⁻¹", r"$\mathcal{M}^{-1}$").replace("𝓜", r"$\mathcal{M}$").replace("ℛ", r"$\mathcal{R}$")
