"""The table that an identification prints."""

from __future__ import annotations

from typing import Any

import numpy as np


def summary(found: Any, alpha: float) -> str:
    """The parameters with errors and intervals, how the search ended, what is not known, and tests of residuals."""
    wide = max(22, *(len(name) + 2 for name in found.names))
    low, high = f"[{alpha / 2:.3g}", f"{1 - alpha / 2:.3g}]"
    lines = [f"{found.model.system.name}: maximum likelihood of the motion, log-likelihood {found.llf:.3f}"]
    lines.append(f"{'':<{wide}}{'value':>12}{'std err':>12}{low:>12}{high:>12}")
    rows = zip(found.names, found.params, found.stderr, found.at_bound, found.conf_int(alpha))
    for name, value, error, bound, (below, above) in rows:
        row = f"{name:<{wide}}{value:>12.5g}"
        if bound:
            row += f"{'at its bound':>14}"
        elif np.isfinite(error):
            row += f"{error:>12.3g}{below:>12.5g}{above:>12.5g}"
        else:
            row += f"{'not known':>12}"
        lines.append(row)
    lines.append(found.message)
    lines += [f"not identified: {direction}" for direction in found.unidentified]
    for name, test in found.residual_tests().items():
        lines.append(
            f"residuals of {name}: p-values of whiteness {test.whiteness:.3f}, size {test.size:.3f}, "
            f"mean {test.mean:.3f}"
        )
    return "\n".join(lines)
