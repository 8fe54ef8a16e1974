"""Report of a cross-check: verdict, tables, figures, JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.duality.findings import Finding, Group, Outcome
from kfdyn.duality.hypothesis.detectable_errors import Detectable, Limits
from kfdyn.duality.independent_checks import Party
from kfdyn.duality.quantities import QUANTITIES
from kfdyn.duality.report_render import as_html, content, quantities_table, shown, tests_table
from kfdyn.estimation.consistency import holm
from kfdyn.viz.text import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table


_SHOWN = 64  # coordinates that a verdict prints; JSON has all


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """Result of :func:`kfdyn.cross_check`. ``print(report)`` shows it; notebooks and rich consoles do too.

    Attributes
    ----------
    title : str
        What was checked.
    samples, requested : int
        Number of samples used, and asked for; fewer were used if the run was interrupted.
    seed : int
    level : float
        Probability, at most, that a true model is rejected.
    tests : tuple of Outcome
        Every calibrated test, each group of equivalent ones once; ``adjusted`` has their p-values read together.
    groups : tuple of Group
        Quantities whose likelihood ratios must be one number.
    parties : tuple of Party
        Agreement with independent computations.
    identities : dict of str to float
        Largest residual of each operator identity, empty if the model is too large for dense algebra.
    identity_tolerance : float
        What rounding excuses in them.
    findings : dict of Finding
        For each quantity, the covariance claimed and the covariance sampled.
    histogram : ndarray of int
        Of the χ² distribution function of NIS, flat if the filter is consistent.
    convergence : ndarray, (points, 2)
        Number of samples, and relative error of the sampled covariance of a at that number.
    detectable : Detectable or None
        Smallest relative error in 𝓜⁻¹ that these samples would reject.
    names : tuple of str
        Names of the outputs.
    dictionary : tuple of (symbol, estimation, dynamics, control, number)
        The dictionary with the robot's numbers; empty for a bare model.
    q, v : tuple of float, or None
        The state that was checked; with ``seed``, ``samples`` and ``versions`` all that is needed to repeat it.
    claimed : dict of (str, Limits or None)
        Quantities whose covariance was somebody's array: what was done to it (a triangle mirrored), and the
        smallest errors in it that these samples would reject.
    exact : dict of str
        How far each claimed matrix is from the exact one, in words; samples alone judge.
    unasked : tuple of str
        Peers that are installed but could not be asked about the robot's file, and why.
    versions : dict of str
        Of the packages that did the work.

    Examples
    --------
    >>> import kfdyn as kf
    >>> report = kf.cross_check(kf.models.double_pendulum(), [0.3, 0.4], samples=4000)
    >>> report.passed, report.samples, max(report.identities.values()) < 1e-12
    (True, 4000, True)
    """

    title: str
    samples: int
    requested: int
    seed: int
    level: float
    tests: tuple[Outcome, ...]
    groups: tuple[Group, ...]
    parties: tuple[Party, ...]
    identities: dict[str, float]
    identity_tolerance: float
    findings: dict[str, Finding] = field(repr=False)
    histogram: NDArray[np.int64] = field(repr=False)
    convergence: Array = field(repr=False)
    detectable: Detectable | None = None
    names: tuple[str, ...] = field(repr=False, default=())
    dictionary: tuple[tuple[str, str, str, str, str], ...] = field(repr=False, default=())
    q: tuple[float, ...] | None = None
    v: tuple[float, ...] | None = None
    claimed: dict[str, tuple[str, Limits | None]] = field(default_factory=dict)
    exact: dict[str, str] = field(default_factory=dict)
    unasked: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def adjusted(self) -> Array:
        """p-values of ``tests`` by Holm's rule."""
        return holm([test.p_value for test in self.tests])

    @property
    def rejected(self) -> list[str]:
        """Everything that speaks against the model, in words; empty if nothing does."""
        said = [
            f"{test.kind} of {', '.join(QUANTITIES[name].symbol for name in test.quantities)}: "
            f"p = {f'{p:.1e}' if p else '0'} after Holm" + (f" ({test.detail})" if test.detail else "")
            for test, p in zip(self.tests, self.adjusted)
            if p < self.level
        ]
        said += [
            f"{', '.join(QUANTITIES[name].symbol for name in group.quantities)}: likelihood ratios differ by "
            f"{group.spread:.1e}, which should be one number"
            for group in self.groups
            if not group.passed
        ]
        said += [
            f"{p.name}: {p.subject} differs by {p.gap:.1e}, rounding by {p.tolerance:.0e} at most"
            + (f", {p.where}" if p.where else "")
            for p in self.parties
            if not p.passed
        ]
        said += [
            f"identity {name}: residual {r:.1e}"
            for name, r in self.identities.items()
            if not r <= self.identity_tolerance
        ]
        return said

    @property
    def passed(self) -> bool:
        """True if nothing speaks against the model in a whole run: no test after Holm, no group, party or identity."""
        return not self.rejected and not self.interrupted

    @property
    def status(self) -> str:
        """One of "PASSED", "REJECTED" and "PARTIAL": interrupted, with nothing against the model in what was done."""
        return "REJECTED" if self.rejected else "PARTIAL" if self.interrupted else "PASSED"

    @property
    def interrupted(self) -> bool:
        """Return True if fewer samples were used than asked for."""
        return self.samples < self.requested

    def p_value(self, kind: str, quantity: str) -> float:
        """Return the p-value of one test, NaN if there was none."""
        found = [t.p_value for t in self.tests if t.kind == kind and quantity in t.quantities]
        return found[0] if found else float("nan")

    def table(self) -> Table:
        """Return the table of quantities for a rich console: each covariance formula, and what the samples say."""
        return quantities_table(self)

    def tests_table(self) -> Table:
        """Return the table of tests that are not about one quantity alone, and the independent parties."""
        return tests_table(self)

    def verdict(self) -> str:
        """Return the verdict in words."""
        tests = f"{len(self.tests)} tests read together at {100 * self.level:g} % (Holm's rule)"
        done = f"interrupted after {self.samples:,} of {self.requested:,} samples"
        lines = []
        if self.rejected:
            lines += [f"REJECTED: {tests}{', ' + done if self.interrupted else ''}."]
            lines += [f"  {line}" for line in self.rejected]
        else:
            least = f"smallest adjusted p = {shown(float(self.adjusted.min(initial=1.0)))}"
            if self.interrupted:
                lines.append(f"PARTIAL: {done}; nothing is rejected so far, {tests}, {least}.")
            else:
                lines.append(f"PASSED: {tests}; {least}.")
        for name, said in self.claimed.items():
            exact = self.exact.get(name)
            lines += [self._claim(name, *said), *([f"Samples alone judge; {exact}."] if exact else [])]
        if self.detectable is not None and "a" not in self.claimed:
            found = self.detectable
            off = f"of {_percent(found.off_diagonal)} of √(𝓜⁻¹ᵢᵢ𝓜⁻¹ⱼⱼ) in one entry off the diagonal, "
            lines.append(
                f"An error of {_percent(found.entry)} in one variance of 𝓜⁻¹, {off if len(self.names) > 1 else ''}"
                f"or of {_percent(found.whole)} in all of it, would be rejected with probability {found.power:g}."
            )
        return "\n".join(lines)

    def _claim(self, name: str, note: str, found: Limits | None) -> str:
        """Say what was claimed, and how small an error in it would be seen."""
        symbol = QUANTITIES[name].covariance
        said = f"{symbol} as claimed{f' ({note})' if note else ''} was tested by samples of {QUANTITIES[name].symbol}"
        if found is None:
            return f"{said}; it is no regular covariance, so that no limit can be given."
        off = ""
        if found.one_percent[1]:
            off = (
                f"{_percent(*found.off_diagonal)} of the two deviations in one entry off the diagonal (1 % of the "
                f"entry itself is seen in {found.one_percent[0]} of {found.one_percent[1]}), "
            )
        return (
            f"{said}: an error of {_percent(*found.variance)} in one variance, {off}{_percent(found.rank_one)} in one "
            f"direction, or {_percent(found.whole)} in all of it, would be rejected with probability {found.power:g}."
        )

    def recipe(self) -> str:
        """Return everything needed to repeat the check: state, seed, samples, versions."""
        state = [f"{name} = {_numbers(value)}" for name, value in (("q", self.q), ("v", self.v)) if value is not None]
        used = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return "To repeat: " + "; ".join([*state, f"seed {self.seed}, {self.samples:,} samples", used]) + "."

    def to_json(self, indent: int | None = 2) -> str:
        """Return everything but the matrices, as JSON text."""
        return json.dumps(content(self), indent=indent, ensure_ascii=False, allow_nan=False)

    def plot(self) -> Figure:
        """Draw one figure: sampled covariance of a beside 𝓜⁻¹, convergence, whiteness, p-values."""
        from kfdyn.viz.cross_check_figures import draw_report

        return draw_report(self)

    def save_figures(self, directory: str | Path) -> list[Path]:
        """Write every figure as PNG into a directory, the dictionary with this robot's numbers too."""
        from kfdyn.viz.cross_check_figures import save_figures

        return save_figures(self, directory)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        yield self.table()
        yield self.tests_table()
        yield Text(printable(self.verdict(), keep="\n"), style=self.style)
        yield Text(printable(self.recipe()), style="dim")

    @property
    def style(self) -> str:
        """Style in which a console shows the verdict."""
        return {"PASSED": "bold green", "PARTIAL": "bold yellow", "REJECTED": "bold red"}[self.status]

    def __repr__(self) -> str:
        return f"Report({self.status}: {printable(self.title)}, {self.samples:,} samples, {len(self.tests)} tests)"

    def __str__(self) -> str:
        from io import StringIO

        from rich.console import Console

        page = StringIO()
        # in a notebook rich would show what is only to be written down
        console = Console(file=page, width=120, color_system=None, legacy_windows=False, force_jupyter=False)
        console.print(self)
        return page.getvalue()

    def _repr_html_(self) -> str:
        return as_html(self)


def _numbers(values: tuple[float, ...]) -> str:
    """Write numbers to the last digit, as the command line takes them."""
    shown = " ".join(repr(value + 0.0) for value in values[:_SHOWN])
    return shown + (f" … ({len(values)} in all)" if len(values) > _SHOWN else "")


def _percent(*limits: float) -> str:
    """Write one limit, or a range, rounded up so that the promise still holds."""
    shown = []
    for limit in limits:
        value = Decimal(f"{100 * limit:.12g}")
        shown.append(f"{float(value.quantize(Decimal(1).scaleb(value.adjusted() - 1), ROUND_CEILING)):g}")
    return f"{' to '.join(dict.fromkeys(shown))} %"
