"""The panels beside the robot: sliders and choices that change the moment, numbers and heat maps that follow it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.explore.moment import Mode, Moment, Numbers, movers
from kfdyn.multibody import System
from kfdyn.multibody.parts.hinge import Coordinates

if TYPE_CHECKING:
    import viser


Image = NDArray[np.uint8]

# From −1 through 0 to 1: orange, white, blue (those of kfdyn.viz, told apart by the colour-blind).
_LOW, _ZERO, _HIGH = np.array([213.0, 94, 0]), np.array([255.0, 255, 255]), np.array([0.0, 114, 178])


def correlation(cov: Array) -> Array:
    """Return the correlations of a covariance; rows that are zero stay zero.

    Parameters
    ----------
    cov : (n, n)
        Positive semi-definite.

    Returns
    -------
    (n, n) array
        1 on the diagonal but where the variance is 0.

    Examples
    --------
    >>> correlation(np.array([[4.0, 1.0], [1.0, 1.0]]))
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    deviation = np.sqrt(np.maximum(np.diag(cov), 0.0))
    scale = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
    return np.clip(scale[:, None] * cov * scale, -1.0, 1.0)


def heat_map(values: Array, pixels: int = 320) -> Image:
    """Draw numbers from −1 to 1 as a square picture of about so many pixels, (m, m, 3)."""
    x = np.clip(values, -1.0, 1.0)[..., None]
    colours = np.where(x < 0, _ZERO + (_ZERO - _LOW) * x, _ZERO + (_HIGH - _ZERO) * x)
    side = max(1, round(pixels / max(1, len(values))))
    return np.repeat(np.repeat(colours.round().astype(np.uint8), side, axis=0), side, axis=1)


def side_by_side(*images: Image, gap: int = 12) -> Image:
    """Join pictures of one height in a row."""
    space = np.full((images[0].shape[0], gap, 3), 255, dtype=np.uint8)
    row = [part for image in images for part in (image, space)]
    return np.concatenate(row[:-1], axis=1)


Change = Callable[[Callable[[Moment], Moment]], None]
ALL, CHOSEN, NONE = "at all hinges", "at the chosen hinge", "none"
ROUNDING = 1e-12  # of the largest number beside it: what is less is shown as 0
SLIDE, TURN = 1.0, np.pi  # how far a slider goes where the file gives no limit


class Panel:
    """All controls and numbers; ``change`` takes a function from moment to moment."""

    def __init__(self, server: viser.ViserServer, moment: Moment, change: Change) -> None:
        self.gui, self.change, self.quiet = server.gui, change, False
        tabs = server.gui.add_tab_group()
        with tabs.add_tab("Pose"):
            self._pose(moment)
        with tabs.add_tab("Hinge"):
            self._hinge(moment)
        with tabs.add_tab("Numbers"):
            self._numbers()
        with tabs.add_tab("Motion"):
            self.play = self.gui.add_button("play")
            self.stop = self.gui.add_button("stop motion")
            self.gravity = self.gui.add_checkbox("gravity", moment.gravity)
            self.energy = self.gui.add_markdown("")
            self._on(self.gravity, lambda m, on: replace(m, gravity=bool(on)))
        with tabs.add_tab("Check"):
            self.gui.add_markdown(
                "Inertias are taken as covariances, torques are drawn, filtered and smoothed, and every covariance of "
                "the theory is held against its samples. The covariance of *a* must be 𝓜⁻¹."
            )
            self.check = self.gui.add_button("check this pose")
            self.verdict = self.gui.add_markdown("")
            self.figure = self.gui.add_image(np.full((8, 8, 3), 255, dtype=np.uint8), visible=False)

    def _on(self, handle: Any, use: Callable[[Moment, Any], Moment]) -> None:
        """Change the moment when a person moves a handle, not when the moment moves it."""

        @handle.on_update
        def _(_event: Any) -> None:
            if not self.quiet:
                self.change(lambda moment: use(moment, handle.value))

    def _pose(self, moment: Moment) -> None:
        system, tree = moment.system, moment.system.open_tree
        self.neutral, self.random = self.gui.add_button("neutral"), self.gui.add_button("random")
        self.sliders: list[tuple[int, Any]] = []
        untouched = []
        for k in movers(system):
            hinge = system.hinge_names[k]
            if tree.layout.coordinates[k] != Coordinates.SCREWS:
                untouched.append(hinge)
                continue
            own, dofs, screws = system.q_slice(hinge), system.v_slice(hinge), tree.layout.screws[tree.v_slice(hinge)]
            for j, (i, d) in enumerate(zip(range(own.start, own.stop), range(dofs.start, dofs.stop))):
                far = TURN if screws[j, :3].any() else SLIDE
                low = float(max(system.lower[d], -10.0)) if np.isfinite(system.lower[d]) else -far
                high = float(min(system.upper[d], 10.0)) if np.isfinite(system.upper[d]) else far
                if not low < high:
                    continue
                name = hinge if own.stop - own.start == 1 else f"{hinge} {j}"
                slider = self.gui.add_slider(name, low, high, 1e-3, float(np.clip(moment.q[i], low, high)))
                self._on(slider, lambda m, value, i=i, d=d: _at(m, i, d, value))  # type: ignore[misc]
                self.sliders.append((i, slider))
        for coupling in system.couplings:
            self.gui.add_markdown(f"These move together: {', '.join(coupling.hinges)}.")
        if untouched:
            self.gui.add_markdown(f"No slider for {', '.join(untouched)}: pull the handle in the scene.")

    def _hinge(self, moment: Moment) -> None:
        names = [moment.system.hinge_names[k] for k in movers(moment.system)]
        self.hinge = self.gui.add_dropdown("hinge", names or ["none"])
        self.ellipsoids = self.gui.add_dropdown("ellipsoids", (ALL, CHOSEN, NONE), initial_value=ALL)
        self.gui.add_markdown("Blue: **P**, the inertia before the hinge gives way. Orange: **P⁺**, after.")
        self.mode = self.gui.add_dropdown("is", [mode.value for mode in Mode], initial_value=Mode.FREE.value)
        self.torque = self.gui.add_number("torque [N m]", 0.0, step=0.5)
        self.rotor = self.gui.add_number("rotor [kg m²]", 0.1, min=0.0, step=0.05)
        self.rate = self.gui.add_number("acceleration [rad/s²]", 0.0, step=0.5)
        self.felt = self.gui.add_markdown("")
        for choice in (self.hinge, self.ellipsoids):
            self._on(choice, lambda m, _: m)
        self._on(self.mode, lambda m, value: m.with_mode(self.hinge.value, Mode(value)))
        for key, handle in (("tau", self.torque), ("rotor", self.rotor), ("rate", self.rate)):
            self._on(handle, lambda m, value, key=key: self._first(m, key, value))  # type: ignore[misc]

    def _first(self, moment: Moment, key: str, value: float) -> Moment:
        """Give the first dof of the chosen hinge the number."""
        if self.hinge.value not in moment.system.hinge_names:
            return moment
        return moment.with_dof(key, moment.system.v_slice(self.hinge.value).start, float(value))

    def _numbers(self) -> None:
        self.logdet = self.gui.add_markdown("")
        self.gui.add_markdown("Correlations of 𝓜 (left) and of 𝓜⁻¹ (right), −1 orange, 1 blue")
        self.maps = self.gui.add_image(np.full((8, 8, 3), 255, dtype=np.uint8), format="png")
        self.table = self.gui.add_html("")

    def chosen(self, moment: Moment) -> range | list[int]:
        """Return the hinges that show their ellipsoids."""
        if self.ellipsoids.value == ALL:
            return range(moment.system.n_bodies)
        known = self.ellipsoids.value == CHOSEN and self.hinge.value in moment.system.hinge_names
        return [moment.system.hinge_index(self.hinge.value)] if known else []

    def show(self, moment: Moment, numbers: Numbers, pictures: bool = True) -> None:
        """Show the numbers of the moment; ``pictures`` are left out while a motion plays quickly."""
        self.quiet = True
        try:
            for i, slider in self.sliders:
                value = float(np.clip(moment.q[i], slider.min, slider.max))
                if abs(slider.value - value) > 5e-4:
                    slider.value = value
            self._show_hinge(moment, numbers)
        finally:
            self.quiet = False
        self.logdet.content = f"log det 𝓜 = **{numbers.logdet:.4f}** over {int((~moment.known).sum())} free dofs"
        if pictures:
            self.maps.image = side_by_side(
                heat_map(correlation(numbers.mass_matrix), 220), heat_map(correlation(numbers.inverse), 220)
            )
            self.table.content = acceleration_table(moment, numbers)

    def _show_hinge(self, moment: Moment, numbers: Numbers) -> None:
        if self.hinge.value not in moment.system.hinge_names:
            return
        k = moment.system.hinge_index(self.hinge.value)
        i = moment.system.v_slice(self.hinge.value).start
        settings: tuple[tuple[Any, str | float], ...] = (
            (self.mode, moment.mode[k].value),
            (self.torque, float(moment.tau[i])),
            (self.rotor, float(moment.rotor[i])),
            (self.rate, float(moment.rate[i])),
        )
        for handle, value in settings:
            if handle.value != value:
                handle.value = value
        self.rotor.visible, self.rate.visible = moment.mode[k] is Mode.ROTOR, moment.mode[k] is Mode.PRESCRIBED
        self.torque.visible = moment.mode[k] in (Mode.FREE, Mode.ROTOR)
        f, M, R, P = numbers.parts[k]
        of_D, of_a, of_f = units(moment.system, self.hinge.value)
        D = "not measured" if np.isnan(numbers.D[i]) else f"{numbers.D[i]:.4g} {of_D}"
        H = numbers.H[moment.system.open_tree.v_slice(self.hinge.value).start]
        least = ROUNDING * float(np.abs(numbers.parts[k]).max())
        self.felt.content = "\n".join(
            [
                f"**D = {D}**, what the hinge has to move; a = {written(numbers.a[i], numbers, 4)} {of_a}",
                "",
                f"| force at the hinge | along it, {of_f} | size of its moment, N m | size of its force, N |",
                "|---|--:|--:|--:|",
                *(
                    f"| {name} | "
                    + " | ".join(
                        f"{y if abs(y) > least else 0.0:.4g}"
                        for y in (H @ x, np.linalg.norm(x[:3]), np.linalg.norm(x[3:]))
                    )
                    + " |"
                    for name, x in (
                        ("all of it", f),
                        ("body alone, Mα", M),
                        ("all outboard as one body, ℛα", R),
                        ("articulated, Pα", P),
                        ("rest z = f − Pα", f - P),
                    )
                ),
                "",
                "What is along the hinge adds up, z + Pα = f; sizes of vectors do not.",
            ]
        )


def units(system: System, hinge: str) -> tuple[str, str, str]:
    """Return units of D, a and force of a hinge's first dof, which turns or slides."""
    turns = system.open_tree.layout.screws[system.open_tree.v_slice(hinge).start, :3].any()
    return ("kg m²", "rad/s²", "N m") if turns else ("kg", "m/s²", "N")


def written(a: float, numbers: Numbers, digits: int = 3) -> str:
    """Write an acceleration or a part of one; rounding beside the largest of them, or 1, is 0."""
    largest = np.abs(numbers.causes).max(initial=np.abs(numbers.a).max(initial=1.0))
    return f"{a:.{digits}g}" if abs(a) > ROUNDING * largest else "0"


def acceleration_table(moment: Moment, numbers: Numbers) -> str:
    """Write D and the accelerations by cause as HTML; the file's names are escaped."""
    rows = []
    for k in movers(moment.system):
        name = moment.system.hinge_names[k]
        own = moment.system.v_slice(name)
        for j, i in enumerate(range(own.start, own.stop)):
            label = escape(name if own.stop - own.start == 1 else f"{name} {j}")
            D = "·" if np.isnan(numbers.D[i]) else f"{numbers.D[i]:.3g}"
            given = moment.mode[k] in (Mode.LOCKED, Mode.PRESCRIBED)
            parts = ["·"] * 3 if given else [written(x, numbers) for x in numbers.causes[:, i]]
            of_D, of_a, _ = units(moment.system, name)
            cells = "".join(f"<td>{cell}</td>" for cell in (D, of_D, *parts, written(numbers.a[i], numbers), of_a))
            rows.append(f"<tr><th scope='row' style='text-align:left'>{label}</th>{cells}</tr>")
    head = "".join(f"<th>{name}</th>" for name in ("", "D", "", "torques", "gyroscopic", "gravity…", "a", ""))
    style = "font-size:11px;border-collapse:collapse;width:94%;text-align:right;margin:0 3%"
    return f"<table style='{style}'><tr>{head}</tr>{''.join(rows)}</table>"


def _at(moment: Moment, i: int, dof: int, value: float) -> Moment:
    """q[i] set by hand: the hinge stands still there."""
    q, v = moment.q.copy(), moment.v.copy()
    q[i], v[dof] = value, 0.0
    return replace(moment, q=q, v=v)
