"""Euler–Bernoulli beams along x, clamped at the origin: bending in two planes, torsion and stretch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from kfdyn.arrays import Array
from kfdyn.errors import ModelError, shown
from kfdyn.multibody.flexible.body import FlexibleBody, Shape, expect_count
from kfdyn.multibody.parts.body import as_floats

# Sizes between these give frequencies, shapes and inertias of a beam that are doubles: EI/(ρA L⁴) is.
LEAST, MOST = 1e-40, 1e40
BENDING = {"y": 1.0, "z": -1.0}  # sign of the rotation: θ_z = dv/dx, θ_y = −dw/dx


def beam(
    name: str,
    length: float,
    density: float,
    *,
    bending: float | tuple[float, float] = 0.0,
    torsion: float = 0.0,
    stretch: float = 0.0,
    gyration: float = 0.0,
    modes: int | dict[str, int] = 2,
    elements: int = 16,
    damping: float = 0.0,
    stiffening: bool = False,
    **body: Any,
) -> FlexibleBody:
    """Build a uniform beam from its stiffnesses: modes of Hermite elements, mass at their Gauss points.

    Parameters
    ----------
    name : str
        Of the body.
    length : float
        L [m], along x from the hinge.
    density : float
        Mass per length ρA [kg/m].
    bending : float or (float, float)
        EI for displacements along y and along z [N m²]; 0 leaves a plane rigid.
    torsion, stretch : float
        GJ [N m²] and EA [N]; 0 leaves that rigid.
    gyration : float
        Polar radius of gyration of the section [m]; torsion needs one.
    modes : int or dict
        How many modes of each kind that has a stiffness, or ``{"y": 3, "z": 2, "torsion": 1, "stretch": 1}``.
    elements : int
        Elements of the discretisation; frequencies converge with its fourth power.
    damping : float
        Damping ratio of every mode.
    stiffening : bool
        Whether bending shortens the beam by ½∫(dv/dx)² + (dw/dx)², the standard quadratic term: then rotation
        stiffens it.
    **body
        ``hinge``, ``parent``, ``rotation``, ``position``, ``hinge_name``, ``armature`` of :class:`FlexibleBody`.

    Returns
    -------
    FlexibleBody
        Children may be attached anywhere on its axis.

    Examples
    --------
    The first frequency of a cantilever is 1.8751² √(EI/ρA)/L²:

    >>> import kfdyn as kf
    >>> rod = kf.beam("rod", 2.0, 0.5, bending=(8.0, 0.0), modes=2)
    >>> float((rod.frequencies[0] / (1.8751041**2 * (8.0 / 0.5) ** 0.5 / 2.0**2)).round(6))
    1.0
    """
    where = f"beam {name!r}"
    both = as_floats(bending, f"{where}: bending")
    if both.shape not in ((), (2,)):
        raise ModelError(f"{where}: bending is one stiffness, or two, along y and along z, got {shown(bending)}")
    length, density = _size(length, f"{where}: length"), _size(density, f"{where}: density")
    stiff = {
        key: _size(value, f"{where}: bending", True) for key, value in zip("yz", np.broadcast_to(both, 2).tolist())
    }
    stiff |= {
        "torsion": _size(torsion, f"{where}: torsion", True),
        "stretch": _size(stretch, f"{where}: stretch", True),
    }
    gyration = _size(gyration, f"{where}: gyration", True)
    if stiff["torsion"] and not gyration:
        raise ModelError(f"{where}: torsion needs the section's polar radius of gyration, gyration=")
    expect_count(elements, f"{where}: elements", 1)
    if not any(stiff.values()):
        raise ModelError(f"{where} has no stiffness to bend against; give bending, torsion or stretch")
    counts = modes if isinstance(modes, Mapping) else {kind: modes for kind, value in stiff.items() if value}
    parts: list[tuple[str, Array, Array]] = []  # kind, nodal values of each mode, squared frequency
    for kind, count in counts.items():
        if kind not in stiff:
            raise ModelError(f"beam {name!r}: there is no kind of mode {kind!r}; kinds are {', '.join(stiff)}")
        expect_count(count, f"{where}: modes")
        if count and not stiff[kind]:
            raise ModelError(f"beam {name!r}: {count} modes of {kind!r} are asked for, but its stiffness is 0")
        if count:
            parts.append(
                (kind, *_modes(kind, length / elements, elements, density, stiff[kind], gyration, count, name))
            )
    if not parts:
        raise ModelError(f"{where} has no modes; ask for some, or take a rigid Body")
    squares = np.concatenate([square for _, _, square in parts])
    sections = _Sections(length, elements, parts, stiffening)
    x, weights = _gauss_points(length, elements)
    ring = (
        np.array([[0.0, gyration, 0], [0, -gyration, 0], [0, 0, gyration], [0, 0, -gyration]])
        if gyration
        else np.zeros((1, 3))
    )
    shapes = [sections.at(xi, offset) for xi in x for offset in ring] + [
        sections.at(length * k / elements) for k in range(elements + 1)
    ]
    mass = np.concatenate([np.repeat(density * weights / len(ring), len(ring)), np.zeros(elements + 1)])
    return FlexibleBody(
        name, mass, np.stack([s.place for s in shapes]), np.stack([s.shift for s in shapes]), squares, damping,
        np.stack([s.turn for s in shapes]), np.stack([s.bend for s in shapes]) if stiffening else None,
        shape_at=partial(sections.on_axis, name=name), **body,
    )  # fmt: skip


def _size(value: Any, what: str, or_nothing: bool = False) -> float:
    """One positive number, or 0 where ``or_nothing``, whose powers and products are doubles."""
    array = as_floats(value, what)
    if array.ndim or not (LEAST <= array <= MOST or (or_nothing and array == 0)):
        rule = "0 or " * or_nothing + f"a number from {LEAST:g} to {MOST:g}"
        raise ModelError(f"{what} must be {rule}, got {shown(value)}; check its unit")
    return float(array)


def _gauss_points(length: float, elements: int) -> tuple[Array, Array]:
    """Four points an element: products of cubics are integrated exactly."""
    node, weight = np.polynomial.legendre.leggauss(4)
    h = length / elements
    return (np.arange(elements)[:, None] * h + h * (node + 1) / 2).ravel(), np.tile(weight * h / 2, elements)


def _hermite(t: float, h: float) -> tuple[Array, Array]:
    """Cubic shape functions of (v₀, θ₀, v₁, θ₁) on an element at t in [0, 1], and their slopes."""
    value = np.array([1 - 3 * t**2 + 2 * t**3, h * (t - 2 * t**2 + t**3), 3 * t**2 - 2 * t**3, h * (t**3 - t**2)])
    slope = np.array([6 * t**2 - 6 * t, h * (1 - 4 * t + 3 * t**2), 6 * t - 6 * t**2, h * (3 * t**2 - 2 * t)]) / h
    return value, slope


def _modes(
    kind: str, h: float, elements: int, density: float, stiffness: float, gyration: float, count: int, name: str
) -> tuple[Array, Array]:
    """Mass-normalised clamped modes, nodal values (dofs, count), and squared frequencies."""
    from scipy.linalg import eigh

    bent = kind in BENDING
    width = 2 if bent else 1
    size = width * (elements + 1)
    if count > size - width:
        raise ModelError(f"beam {name!r}: {count} modes of {kind!r} need more than {elements} elements")
    K, M = np.zeros((size, size)), np.zeros((size, size))
    if bent:
        a, b = 6 * h, h * h
        bent_k = [[12, a, -12, a], [a, 4 * b, -a, 2 * b], [-12, -a, 12, -a], [a, 2 * b, -a, 4 * b]]
        bent_m = [[156, 22 * h, 54, -13 * h], [22 * h, 4 * b, 13 * h, -3 * b], [54, 13 * h, 156, -22 * h]]
        bent_m += [[-13 * h, -3 * b, -22 * h, 4 * b]]
        k, m = stiffness / h**3 * np.array(bent_k), density * h / 420 * np.array(bent_m)
    else:
        inertia = density * (gyration**2 if kind == "torsion" else 1.0)
        k, m = stiffness / h * np.array([[1.0, -1], [-1, 1]]), inertia * h / 6 * np.array([[2.0, 1], [1, 2]])
    for e in range(elements):
        own = slice(width * e, width * (e + 2))
        K[own, own] += k
        M[own, own] += m
    squares, shapes = eigh(K[width:, width:], M[width:, width:], subset_by_index=[0, count - 1])
    return np.concatenate([np.zeros((width, count)), shapes]), squares


class _Sections:
    """Shapes of a beam's modes at any place along it."""

    def __init__(
        self, length: float, elements: int, parts: Sequence[tuple[str, Array, Array]], stiffening: bool
    ) -> None:
        self.length, self.elements, self.parts, self.stiffening = length, elements, parts, stiffening
        self.n = sum(values.shape[1] for _, values, _ in parts)

    def at(self, x: float, offset: Array | None = None) -> Shape:
        """Shape of the point at (x, 0, 0) + offset; bending moves a section without turning its points."""
        shift, turn, at = np.zeros((3, self.n)), np.zeros((3, self.n)), 0
        e, t, h = self._element(x)
        for kind, values, _ in self.parts:
            own = slice(at, at + values.shape[1])
            at = own.stop
            if kind in BENDING:
                value, slope = _hermite(t, h)
                local = values[2 * e : 2 * e + 4]
                shift["xyz".index(kind), own] = value @ local
                turn["xzy".index(kind), own] = BENDING[kind] * (slope @ local)
            else:
                line = np.array([1 - t, t]) @ values[e : e + 2]
                (turn if kind == "torsion" else shift)[0, own] = line
        place = np.array([x, 0.0, 0.0])
        if offset is not None:
            shift = shift + np.cross(np.array([1.0, 0, 0]), offset)[:, None] * turn[0]
            place = place + offset
        return Shape(place, shift, turn, self._bend(x) if self.stiffening else np.zeros((3, self.n, self.n)))

    def on_axis(self, place: Array, name: str) -> Shape:
        """Shape where a child is attached: somewhere on the axis."""
        slack = 1e-9 * self.length
        if not (-slack <= place[0] <= self.length + slack and np.abs(place[1:]).max() <= slack):
            raise ModelError(f"{place} is not on the axis of beam {name!r}, from the origin to ({self.length:g}, 0, 0)")
        return self.at(float(np.clip(place[0], 0.0, self.length)))

    def _element(self, x: float) -> tuple[int, float, float]:
        h = self.length / self.elements
        e = min(int(x / h), self.elements - 1)
        return e, x / h - e, h

    def _bend(self, x: float) -> Array:
        """B with ½η*Bη = −½∫₀ˣ (dv/dx)² + (dw/dx)² along x."""
        total = np.zeros((self.n, self.n))
        last, part, h = self._element(x)
        node, weight = np.polynomial.legendre.leggauss(4)
        for e in range(last + 1):
            far = h if e < last else part * h
            for s, w in zip(node, weight):
                slopes = self.at_slope(e, (s + 1) / 2 * far / h, h)
                total += w * far / 2 * slopes.T @ slopes
        bend = np.zeros((3, self.n, self.n))
        bend[0] = -total
        return bend

    def at_slope(self, e: int, t: float, h: float) -> Array:
        """dv/dx and dw/dx of every mode, (2, n)."""
        slopes, at = np.zeros((2, self.n)), 0
        for kind, values, _ in self.parts:
            own = slice(at, at + values.shape[1])
            at = own.stop
            if kind in BENDING:
                slopes["yz".index(kind), own] = _hermite(t, h)[1] @ values[2 * e : 2 * e + 4]
        return slopes
