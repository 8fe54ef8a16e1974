"""The looks of a robot: meshes and boxes of its file, where they can be read, as triangles in frames of links."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.multibody import System

MOST_TRIANGLES = 60_000  # of one shape: what a browser turns without stuttering


class Shape(NamedTuple):
    """Triangles of one link: ``vertices`` (n, 3) in the frame ``link``, ``faces`` (m, 3)."""

    link: str
    vertices: Array
    faces: NDArray[np.int64]


def shapes_of(system: System, source: str | Path | None) -> tuple[list[Shape], list[str]]:
    """Read the visual shapes of a URDF or MJCF file, and say which could not be read.

    Parameters
    ----------
    system : System
        The robot that was read from the file.
    source : str or path or None
        The file; None, or the name of something that is no file, has no shapes.

    Returns
    -------
    shapes : list of Shape
        In frames that the system knows.
    missing : list of str
        Names of meshes that could not be read.
    """
    path = None if source is None else Path(source)
    if path is None or not path.is_file():
        return [], []
    root = ElementTree.parse(path).getroot()
    found = _mjcf(path) if root.tag == "mujoco" else _urdf(root, path)
    shapes, missing = [], []
    for link, mesh in found:
        if isinstance(mesh, str):
            missing.append(mesh)
        elif _known(system, link) and 0 < len(mesh.faces) <= MOST_TRIANGLES:
            shapes.append(Shape(link, np.asarray(mesh.vertices, dtype=float), np.asarray(mesh.faces, dtype=np.int64)))
    return shapes, missing


def _known(system: System, link: str) -> bool:
    return link in system.body_names or link in system.frames


def _urdf(root: ElementTree.Element, path: Path) -> Iterator[tuple[str, Any]]:
    """Return (link, mesh) of every visual, or (link, file name) where its mesh cannot be read."""
    for link in root.iter("link"):
        for visual in link.iter("visual"):
            geometry = visual.find("geometry")
            kind = None if geometry is None else next(iter(geometry), None)
            if kind is None:
                continue
            mesh = _geometry(kind, path)
            if not isinstance(mesh, str):
                mesh.apply_transform(_origin(visual.find("origin")))
            yield link.get("name", ""), mesh


def _geometry(kind: ElementTree.Element, path: Path) -> Any:
    from trimesh import creation

    if kind.tag == "box":
        return creation.box(_floats(kind.get("size"), 3, 1.0))
    if kind.tag == "sphere":
        return creation.icosphere(2, float(kind.get("radius", "0.1")))
    if kind.tag in ("cylinder", "capsule"):
        make = creation.cylinder if kind.tag == "cylinder" else creation.capsule
        return make(radius=float(kind.get("radius", "0.1")), height=float(kind.get("length", "0.1")))
    name = kind.get("filename", kind.tag)
    mesh = _mesh(find_mesh(name, path))
    if mesh is None:
        return name
    mesh.apply_scale(_floats(kind.get("scale"), 3, 1.0))
    return mesh


def find_mesh(name: str, path: Path) -> Path | None:
    """Find a mesh that a URDF names: beside the file, or in a package that is a folder above it."""
    plain = name.removeprefix("file://")
    if name.startswith("package://"):
        package, _, rest = name.removeprefix("package://").partition("/")
        tries = [up / part for up in path.resolve().parents for part in (Path(package) / rest, Path(rest))]
    else:
        tries = [path.parent / plain, Path(plain)]
    return next((place for place in tries if place.is_file()), None)


def _mesh(place: Path | None) -> Any:
    """Read one mesh of a file; None if that fails, since a robot without meshes is still a robot."""
    if place is None:
        return None
    import trimesh

    try:
        return trimesh.load(place, force="mesh")
    except Exception:
        return None


def _mjcf(path: Path) -> Iterator[tuple[str, Any]]:
    """Return (body, mesh) of every geom that MuJoCo draws by default; if files are missing, their names."""
    import mujoco
    import trimesh
    from trimesh import creation

    from kfdyn.io.mjcf.load_mjcf import compile_mjcf
    from kfdyn.io.source import open_source

    model, _, missing = compile_mjcf(open_source(path))
    yield from (("", name) for name in missing)
    for g in range(model.ngeom):
        kind, (a, b, c), body = model.geom_type[g], model.geom_size[g], int(model.geom_bodyid[g])
        if model.geom_group[g] > 2 or not body:
            continue
        if kind == mujoco.mjtGeom.mjGEOM_MESH and missing:
            continue  # perhaps a stand-in
        if kind == mujoco.mjtGeom.mjGEOM_MESH:
            m = model.geom_dataid[g]
            at, face = model.mesh_vertadr[m], model.mesh_faceadr[m]
            mesh = trimesh.Trimesh(
                model.mesh_vert[at : at + model.mesh_vertnum[m]], model.mesh_face[face : face + model.mesh_facenum[m]]
            )
        elif kind == mujoco.mjtGeom.mjGEOM_BOX:
            mesh = creation.box([2 * a, 2 * b, 2 * c])
        elif kind in (mujoco.mjtGeom.mjGEOM_SPHERE, mujoco.mjtGeom.mjGEOM_ELLIPSOID):
            mesh = creation.icosphere(2, 1.0)
            mesh.apply_scale([a, a, a] if kind == mujoco.mjtGeom.mjGEOM_SPHERE else [a, b, c])
        elif kind in (mujoco.mjtGeom.mjGEOM_CAPSULE, mujoco.mjtGeom.mjGEOM_CYLINDER):
            make = creation.capsule if kind == mujoco.mjtGeom.mjGEOM_CAPSULE else creation.cylinder
            mesh = make(radius=a, height=2 * b)
        else:
            continue
        place = np.eye(4)
        rotation = np.zeros(9)
        mujoco.mju_quat2Mat(rotation, model.geom_quat[g])
        place[:3, :3], place[:3, 3] = rotation.reshape(3, 3), model.geom_pos[g]
        mesh.apply_transform(place)
        yield model.body(body).name, mesh


def _origin(element: ElementTree.Element | None) -> Array:
    place = np.eye(4)
    if element is not None:
        r, p, y = _floats(element.get("rpy"), 3, 0.0)
        (cr, cp, cy), (sr, sp, sy) = np.cos([r, p, y]), np.sin([r, p, y])
        turn = [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
        place[:3, :3], place[:3, 3] = turn, _floats(element.get("xyz"), 3, 0.0)
    return place


def _floats(text: str | None, size: int, default: float) -> Array:
    numbers = np.array([float(x) for x in (text or "").split()])
    return numbers if numbers.size == size else np.full(size, default)
