"""MJCF → System, through MuJoCo's own compiler, which resolves defaults, includes and inertias of shapes."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from kfdyn.errors import KfdynError, ModelError
from kfdyn.extras import needed
from kfdyn.io.fixed_joints import Merged, join_fixed
from kfdyn.io.load_result import Loaded, indefinite_notes, listed
from kfdyn.io.mimics import couplings_of
from kfdyn.io.mjcf.equalities import MjEqualities, read_equalities
from kfdyn.io.mjcf.mjcf_bodies import DOFS, FREE, MjBodies, MjNames
from kfdyn.io.source import Source
from kfdyn.io.xml_reader import LARGEST
from kfdyn.multibody import System
from kfdyn.spatial import IndefiniteInertiaWarning, TriangleInequalityWarning


def load_mjcf(
    source: Source,
    merge: bool,
    gravity: ArrayLike | None,
    indefinite_inertia: Literal["refuse", "warn"] = "refuse",
    mimic: Literal["obey", "free"] = "obey",
    keep_fixed: Collection[str] = (),
) -> Loaded:
    """Compile an MJCF file and build its system; see :func:`kfdyn.load`."""
    model, said, missing = compile_mjcf(source)
    loaded = from_mujoco_model(
        model,
        source.name,
        merge,
        gravity,
        indefinite_inertia=indefinite_inertia,
        mimic=mimic,
        keep_fixed=keep_fixed,
    )
    loaded = loaded._replace(notes=(*loaded.notes, *(f"MuJoCo warns: {text}" for text in said)))
    gone = f"files that are missing, and that no inertia depends on: {listed(missing)}"
    return loaded.remarked([gone] if missing else [])


def compile_mjcf(source: Source) -> tuple[Any, list[str], list[str]]:
    """MuJoCo's model of a file, what its compiler warned of, and which files of meshes and pictures are missing."""
    mujoco = needed("mujoco", "mujoco", f"{source.name} is MJCF, whose reader")
    said: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(said.append)  # else MuJoCo prints, and leaves a log file in the user's folder
    try:
        if source.path is not None:
            return mujoco.MjModel.from_xml_path(str(source.path)), said, []
        return mujoco.MjModel.from_xml_string(source.data.decode()), said, []
    except (ValueError, RuntimeError) as error:
        made = _without_missing_files(mujoco, source)
        if made is None:
            raise ModelError(f"{source.name}: MuJoCo's compiler refuses it: {' '.join(str(error).split())}") from None
        return made[0], said, made[1]
    finally:
        mujoco.set_mju_user_warning(before)


# Corners of the mesh that stands for one which is missing: a tetrahedron, in two sizes. They are large since files
# scale their meshes down, and MuJoCo refuses bodies of next to no inertia.
STAND_IN = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
SIZES = (10.0, 20.0)


def _without_missing_files(mujoco: Any, source: Source) -> tuple[Any, list[str]] | None:
    """Compile with stand-ins for meshes, skins, height fields and textures whose files are missing; None if none is.

    A body whose mass, centre or moments change with the size of a stand-in has no inertia without its mesh; it is
    refused.
    """
    models = []
    try:
        for size in SIZES:
            if source.path is not None:
                spec = mujoco.MjSpec.from_file(str(source.path))
            else:
                spec = mujoco.MjSpec.from_string(source.data.decode())
            missing = _replace_missing(spec, Path() if source.path is None else source.path.parent, size)
            if not missing:
                return None
            models.append(spec.compile())
    except (AttributeError, ValueError, RuntimeError):  # no MjSpec in this release, or faults beside missing files
        return None
    small = models[0]
    names = MjNames(small)
    for key in ("body_mass", "body_ipos", "body_iquat", "body_inertia"):
        one, two = (getattr(model, key).reshape(small.nbody, -1) for model in models)
        for b in np.flatnonzero((one != two).any(axis=1)):
            if not b:
                continue  # the world's
            used = [("mesh", geom.meshname) for body in spec.bodies if body.id == b for geom in body.geoms]
            raise ModelError(
                f"{source.name}: body {names.body[b]!r} has no <inertial>, its mass is that of a mesh whose file is "
                f"missing: {listed([missing[mesh] for mesh in used if mesh in missing])}; put the file there, or give "
                "the body an <inertial>"
            )
    return small, list(dict.fromkeys(missing.values()))


def _replace_missing(spec: Any, folder: Path, size: float) -> dict[tuple[str, str], str]:
    """Put stand-ins in the place of assets whose files are missing; which they are, and the names of the files."""
    gone = {}

    def missing(kind: str, asset: Any, place: str) -> bool:
        file = Path(asset.file)
        if not asset.file or any((folder / path).exists() for path in (place / file, file, Path(place) / file.name)):
            return False
        asset.name = asset.name or Path(asset.file).stem
        gone[kind, asset.name] = asset.file
        asset.file = ""
        return True

    for mesh in spec.meshes:
        if missing("mesh", mesh, spec.meshdir):
            mesh.uservert = (size * STAND_IN).reshape(-1)
    for skin in list(spec.skins):
        if missing("skin", skin, spec.meshdir):
            spec.delete(skin)
    for field in spec.hfields:
        if missing("hfield", field, spec.meshdir):
            field.nrow = field.ncol = 2
            field.userdata = [0.0, 0.0, 0.0, 1.0]
    for texture in spec.textures:
        if missing("texture", texture, spec.texturedir):
            texture.builtin = 1  # flat
            texture.width, texture.height = (1, 6) if int(texture.type) else (1, 1)  # a cube has six sides
    return gone


def from_mujoco_model(
    model: Any,
    source: str = "MjModel",
    merge_fixed: bool = True,
    gravity: ArrayLike | None = None,
    *,
    indefinite_inertia: Literal["refuse", "warn"] = "refuse",
    mimic: Literal["obey", "free"] = "obey",
    keep_fixed: Collection[str] = (),
) -> Loaded:
    """Build the system of a compiled ``mujoco.MjModel``.

    Parameters
    ----------
    model : mujoco.MjModel
    source
        A name for messages.
    merge_fixed
        Join bodies without joints to their parents; their names stay usable as frames.
    gravity : (3,), optional
        Replaces the model's.
    indefinite_inertia : {"refuse", "warn"}
        Whether a negative principal moment of inertia is an error or a note. MuJoCo's compiler refuses one; a model
        changed after compilation may have it.
    mimic : {"obey", "free"}
        Whether equality constraints (``joint``, ``connect``, ``weld``) are couplings and loops, rigid ones where
        MuJoCo's give way, or only noted.
    keep_fixed : collection of str
        Bodies without joints that are not joined to their parents.

    Returns
    -------
    Loaded

    Notes
    -----
    A body with several joints is partitioned (PART section 2): a mass-less body ``"body:joint"`` after each
    joint but the last, so that every joint of the file is a hinge of the same name. A body's origin is its
    hinge point. Where MuJoCo's body frame is elsewhere, the body is called ``"body:joint"`` as well and the
    name ``"body"`` is a frame, so that names mean the frames that they mean to MuJoCo. Sites are frames.

    Hinges and slides: q is the joint's position less its reference, ``qpos − qpos0``; limits likewise.
    :func:`kfdyn.io.to_mujoco` and :func:`kfdyn.io.from_mujoco` carry states over.

    Examples
    --------
    Two joints of one body become two hinges, with a mass-less body between them:

    >>> import mujoco
    >>> text = '<mujoco><worldbody><body name="head"><joint name="yaw" axis="0 0 1"/><joint name="pitch" axis="0 1 0"/>'
    >>> text += '<geom size="0.1" mass="2"/></body></worldbody></mujoco>'
    >>> from_mujoco_model(mujoco.MjModel.from_xml_string(text)).system
    System 'MuJoCo Model': 2 bodies, 2 dofs, mass 2 kg
      head:yaw: revolute on the world, 0 kg
      head: revolute on head:yaw, 2 kg
    """
    if not hasattr(model, "jnt_type"):
        raise ModelError(f"model must be a mujoco.MjModel, got {model!r:.80}; kfdyn.io.read reads files")
    names = MjNames(model)
    _check_sizes(model, names, source)
    reader = MjBodies(model, names)
    bodies = list(reader.bodies())
    merged = join_fixed(bodies, keep_fixed) if merge_fixed else Merged(bodies, {}, {})
    if not merged.bodies:
        raise ModelError(f"{source}: nothing moves, no body has a joint; give one a <freejoint/> or another joint")
    frames, world_frames = reader.frames(merged)
    obeyed = MjEqualities((), (), {}, [])
    if mimic == "obey" and model.neq:
        obeyed = read_equalities(model, names, reader, frames, world_frames)
    movable = {names.joint[j] for j in range(model.njnt) if DOFS[int(model.jnt_type[j])] == 1}
    try:
        couplings, free = couplings_of(obeyed.mimics, movable)
    except ModelError as error:
        raise ModelError(f"{source}: {error}") from None
    if gravity is None:
        gravity = np.zeros(3) if _without_gravity(model) else np.array(model.opt.gravity)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("ignore", TriangleInequalityWarning)  # MuJoCo's compiler has judged them
        warnings.simplefilter("always", IndefiniteInertiaWarning)
        try:
            system = System(
                merged.bodies,
                gravity,
                {**frames, **obeyed.frames},
                names.model,
                indefinite_inertia=indefinite_inertia,
                couplings=couplings,
                loops=obeyed.loops,
            )
        except KfdynError as error:
            raise type(error)(f"{source}: {error}") from None
    joints = range(model.njnt)
    scalar = [j for j in joints if DOFS[int(model.jnt_type[j])] == 1 and model.jnt_stiffness[j]]
    springs = {names.joint[j]: float((model.qpos_spring - model.qpos0)[model.jnt_qposadr[j]]) for j in scalar}
    left = len(obeyed.left) if mimic == "obey" else model.neq
    notes = (*_notes(reader, left), *free, *indefinite_notes("body", said))
    loaded = Loaded(system, source, notes, obeyed.mimics, springs, world_frames)
    driven = f"{model.nu} actuator{'s' * (model.nu > 1)} not modelled: simulate takes the forces of hinges as torque"
    return loaded.remarked([driven] if model.nu else [])


def _check_sizes(model: Any, names: MjNames, source: str) -> None:
    """Refuse numbers that are not finite or so large that their products would not be."""
    for key in ("body_pos", "body_quat", "body_ipos", "body_iquat", "body_mass", "body_inertia"):
        array = getattr(model, key).reshape(model.nbody, -1)
        wrong = np.flatnonzero(~(np.abs(array) <= LARGEST).all(axis=1))
        if wrong.size:
            what = key.removeprefix("body_")
            raise ModelError(
                f"{source}: body {names.body[wrong[0]]!r}: {what} is not finite or larger than {LARGEST:g}"
            )


def _without_gravity(model: Any) -> bool:
    import mujoco

    return bool(model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_GRAVITY))


def _notes(reader: MjBodies, equalities: int) -> Iterator[str]:
    """Describe features of the model that a System does not have."""
    model, names = reader.model, reader.names
    if equalities:
        yield f"{equalities} equality constraint{'s' * (equalities > 1)} not modelled"
    if model.ntendon:
        yield f"{model.ntendon} tendon{'s' * (model.ntendon > 1)} not modelled"
    if getattr(model, "nflex", 0):
        yield f"{model.nflex} deformable{'s' * (model.nflex > 1)} not modelled"
    if (lifted := np.flatnonzero(model.body_gravcomp)).size:
        yield f"gravity compensation not modelled: bodies {listed([names.body[b] for b in lifted])}"
    mocap = np.flatnonzero(model.body_mocapid >= 0)
    if mocap.size:
        yield f"mocap bodies are fixed to the world where the file has them: {listed([names.body[b] for b in mocap])}"
    free = [j for j in range(model.njnt) if int(model.jnt_type[j]) == FREE]
    geared = [names.joint[j] for j in free if reader.armature[model.jnt_dofadr[j]]]
    if geared:
        yield (
            f"armature of a free joint acts along the axes of its body, MuJoCo's along those of the world, so that "
            f'accelerations differ where it turns: {listed(geared)}; set armature="0" there'
        )
    if model.opt.density or model.opt.viscosity:
        yield "the fluid's drag is not modelled"
    nonlinear = {
        "damping": ("dof_dampingpoly", "actuator_dampingpoly"),
        "stiffness": ("jnt_stiffnesspoly", "jnt_springyield"),
    }
    for what, keys in nonlinear.items():
        if any(np.any(getattr(model, key, 0)) for key in keys):
            yield f"nonlinear {what} is not modelled, its linear part is kept"
