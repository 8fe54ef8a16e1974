"""A report as tables for a console, as a page for a notebook, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kfdyn import __version__
from kfdyn.duality.quantities import QUANTITIES
from kfdyn.viz.text import printable

if TYPE_CHECKING:
    from rich.table import Table

    from kfdyn.duality.report import Report


def quantities_table(report: Report) -> Table:
    """Return the table of quantities: each covariance formula and what the samples say of it."""
    table = _table(f"{report.title}: {report.samples:,} samples", ("quantity", "", "in the robot", "covariance"))
    for column in ("rank", "error", "expected", "p cov", "p entries", "p mean"):
        table.add_column(column, justify="right")
    for name, finding in report.findings.items():
        quantity = QUANTITIES[name]
        size = f"{finding.rank}" if finding.rank == finding.dimension else f"{finding.rank} of {finding.dimension}"
        table.add_row(
            quantity.estimation,
            quantity.symbol,
            quantity.dynamics,
            quantity.covariance + (" claimed" if name in report.claimed else ""),
            size,
            f"{100 * finding.error:.2f} %",
            f"{100 * finding.expected_error:.2f} %",
            *(shown(report.p_value(kind, name)) for kind in ("covariance", "entries", "mean")),
            style="bold" if name == "a" else "",
        )
    return table


#: Tests that are not about one quantity's covariance alone, in words that need no dictionary.
BESIDE = {
    "whiteness": "whiteness",
    "NIS": "normalised squares (NIS)",
    "NIS distribution": "their distribution",
    "NEES": "normalised squares (NEES)",
    "single entry": "single entry",
    "low rank": "low rank",
}


def tests_table(report: Report) -> Table:
    """Return the table of tests that are not about one quantity alone, and the independent parties."""
    from rich.text import Text

    table = _table("Beside the covariances", ("check", "of"))
    for column in ("found", "allowed"):
        table.add_column(column, justify="right")
    for test in report.tests:
        if test.kind in BESIDE:
            table.add_row(BESIDE[test.kind], QUANTITIES[test.quantities[0]].symbol, f"p = {shown(test.p_value)}", "")
    for group in report.groups:
        symbols = ", ".join(QUANTITIES[name].symbol for name in group.quantities)
        table.add_row("one likelihood ratio", symbols, f"spread {group.spread:.0e}", f"{group.tolerance:.0e}")
    for name in dict.fromkeys(party.name for party in report.parties):
        mine = [party for party in report.parties if party.name == name]
        worst = max(mine, key=lambda party: party.gap)
        subject = mine[0].subject if len(mine) == 1 else f"worst of {len(mine)}: {worst.subject}"
        table.add_row(Text(printable(name)), Text(subject), f"gap {worst.gap:.0e}", f"{worst.tolerance:.0e}")
    if report.identities:
        worst_name = max(report.identities, key=lambda name: report.identities[name])
        found = f"residual {report.identities[worst_name]:.0e}"
        table.add_row(
            f"{len(report.identities)} operator identities", worst_name, found, f"{report.identity_tolerance:.0e}"
        )
    return table


def as_html(report: Report) -> str:
    """Return the verdict and the table of quantities as HTML, the rest folded up beneath it."""
    from html import escape

    rows: list[tuple[str, ...]] = [("", "", "covariance", "error", "expected", "p", "p, entries")]
    for name, finding in report.findings.items():
        quantity = QUANTITIES[name]
        numbers = (f"{100 * finding.error:.2f} %", f"{100 * finding.expected_error:.2f} %")
        p = tuple(shown(report.p_value(kind, name)) for kind in ("covariance", "entries"))
        rows.append((quantity.dynamics, quantity.symbol, quantity.covariance, *numbers, *p))
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    colour = {"PASSED": "green", "PARTIAL": "#a60", "REJECTED": "#b00"}[report.status]
    verdict = escape(printable(report.verdict(), keep="\n")).replace("\n", "<br>")
    title = f"{escape(printable(report.title))}: {report.samples:,} samples"
    return (
        f"<table><caption>{title}</caption>{body}</table><p style='color:{colour}'>{verdict}</p>"
        f"<details><summary>all tests</summary><pre>{escape(str(report))}</pre></details>"
    )


def _table(title: str, columns: tuple[str, ...]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(printable(title)),
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    for column in columns:
        table.add_column(column)
    return table


def shown(p: float) -> str:
    """Write a p-value; nothing where there was no test."""
    return "" if np.isnan(p) else "0" if p == 0 else f"{p:.3f}" if p >= 1e-3 else f"{p:.0e}"


def content(report: Report) -> dict[str, Any]:
    """Return everything but the matrices."""
    quantities = {
        name: {
            "dimension": f.dimension,
            "rank": f.rank,
            "tested_rank": f.tested_rank,
            "sketched": f.sketched,
            "error": _finite(f.error),
            "expected_error": _finite(f.expected_error),
        }
        for name, f in report.findings.items()
    }
    tests = [
        {
            "kind": test.kind,
            "quantities": list(test.quantities),
            "statistic": test.statistic if np.isfinite(test.statistic) else None,
            "dof": test.dof,
            "p_value": test.p_value,
            "adjusted_p_value": float(p),
        }
        for test, p in zip(report.tests, report.adjusted)
    ]
    return {
        "title": report.title,
        "status": report.status,
        "passed": report.passed,
        "rejected": report.rejected,
        "samples": report.samples,
        "requested": report.requested,
        "seed": report.seed,
        "q": None if report.q is None else list(report.q),
        "v": None if report.v is None else list(report.v),
        "versions": report.versions,
        "level": report.level,
        "quantities": quantities,
        "tests": tests,
        "groups": [
            {"quantities": list(g.quantities), "spread": _finite(g.spread), "tolerance": g.tolerance}
            for g in report.groups
        ],
        "parties": [
            {
                "name": p.name,
                "subject": p.subject,
                "gap": _finite(p.gap),
                "tolerance": p.tolerance,
                "where": p.where,
            }
            for p in report.parties
        ],
        "unasked": list(report.unasked),
        "claimed": {
            name: {"note": note, "limits": None if found is None else _plain(found._asdict())}
            for name, (note, found) in report.claimed.items()
        },
        "identities": {name: _finite(r) for name, r in report.identities.items()},
        "convergence": [[_finite(x) for x in point] for point in report.convergence.tolist()],
        "detectable": None if report.detectable is None else _plain(report.detectable._asdict()),
    }


def _plain(content: dict[str, Any]) -> dict[str, Any]:
    """Return numbers that JSON knows: null for NaN."""
    return {
        key: [_finite(x) for x in value] if isinstance(value, tuple) else _finite(value)
        for key, value in content.items()
    }


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def versions() -> dict[str, str]:
    """Return the versions of the packages that a cross-check rests on, where they are installed.

    Examples
    --------
    >>> list(versions())[:2]
    ['kfdyn', 'python']
    """
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {"kfdyn": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "filterpy", "pin", "mujoco"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
