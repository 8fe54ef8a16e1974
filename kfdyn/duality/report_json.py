"""A report as numbers and words that JSON knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from kfdyn.duality.report import Report


def content(report: Report) -> dict[str, Any]:
    """Everything but the matrices."""
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
    """Numbers that JSON knows: null for NaN."""
    return {
        key: [_finite(x) for x in value] if isinstance(value, tuple) else _finite(value)
        for key, value in content.items()
    }


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
