"""The summary table of a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kfdyn.errors import KfdynError

if TYPE_CHECKING:
    from kfdyn.estimation.fitting.fit_result import Fit

_WIDTH = 86


def summary(fit: Fit, alpha: float) -> str:
    """Format parameters with errors and intervals, criteria, and tests of the innovations."""
    from scipy.stats import norm

    left = [
        ("Observations", f"{fit.n_observed}"),
        ("Parameters", f"{fit.n_params}"),
        ("Log-likelihood", f"{fit.llf:.3f}"),
    ]
    right = [("AIC", f"{fit.aic:.3f}"), ("BIC", f"{fit.bic:.3f}"), ("HQIC", f"{fit.hqic:.3f}")]
    lines = ["Maximum likelihood".center(_WIDTH), "=" * _WIDTH]
    for (a, x), (b, y) in zip(left, right):
        lines.append(f"{a + ':':<22}{x:>19}    {b + ':':<22}{y:>19}")
    lines.append("=" * _WIDTH)
    low, high = f"[{alpha / 2:.3g}", f"{1 - alpha / 2:.3g}]"
    lines.append(f"{'':<22}{'coef':>12}{'std err':>12}{'z':>9}{'P>|z|':>8}{low:>11}{high:>11}")
    lines.append("-" * _WIDTH)
    intervals = fit.conf_int(alpha)
    for i, name in enumerate(fit.names):
        if fit.at_bound[i]:
            lines.append(f"{name:<22}{fit.params[i]:>12.4g}{'at its bound':>15}")
            continue
        error = fit.stderr[i]
        z = fit.params[i] / error if np.isfinite(error) and error > 0 else np.nan
        lines.append(
            f"{name:<22}{fit.params[i]:>12.4g}{error:>12.4g}{z:>9.3f}{2 * norm.sf(abs(z)):>8.3f}"
            f"{intervals[i, 0]:>11.4g}{intervals[i, 1]:>11.4g}"
        )
    lines.append("=" * _WIDTH)
    try:
        tests = fit.diagnostics()
    except KfdynError:  # too few measurements, or a tree that branches outward
        tests = None
    if tests is not None:
        of = " of the first series" if fit.residuals.ndim > 1 else ""
        lines.append(
            f"p-values of the innovations{of}: whiteness ({tests.lags} lags) {tests.whiteness:.3f}, "
            f"normality {tests.normality:.3f}, size {tests.nis:.3f}"
        )
    lines.append(fit.message)
    lines += [f"not identified: {direction}" for direction in fit.unidentified]
    return "\n".join(line.rstrip() for line in lines)
