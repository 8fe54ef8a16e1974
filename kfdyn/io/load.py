"""Load a robot from a file or a string, whichever of the formats it is in."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection
from typing import Literal

from numpy.typing import ArrayLike

from kfdyn.errors import ModelError
from kfdyn.io.load_result import Loaded, LoadWarning, not_obeyed
from kfdyn.io.mimics import check_choice
from kfdyn.io.source import expect_no_page, open_source
from kfdyn.io.xml_reader import read_elements
from kfdyn.multibody import Origin, System
from kfdyn.multibody.system import EARTH
from kfdyn.spatial.validate import check_indefinite_inertia


def load(
    source: str | bytes | os.PathLike[str],
    floating_base: bool = False,
    merge_fixed: bool = True,
    gravity: ArrayLike | None = None,
    *,
    indefinite_inertia: Literal["refuse", "warn"] = "refuse",
    mimic: Literal["obey", "free"] = "obey",
    keep_fixed: str | Collection[str] = (),
) -> System:
    """Load a robot from URDF or MJCF.

    Parameters
    ----------
    source
        Path of a file, or the description itself (a string that begins with ``<``). The root element
        decides on the format, not the suffix.
    floating_base
        URDF only: put each root link on a free hinge; it is body 0. Otherwise root links are the world.
    merge_fixed
        Join links on fixed joints to the link that carries them; their names stay usable as frames.
        If false they are bodies with hinges of no dof.
    gravity : (3,), optional
        Replaces the file's (MJCF) or (0, 0, −9.81).
    indefinite_inertia : {"refuse", "warn"}
        Whether a body with a negative principal moment of inertia, which some published files have, is an error
        or a warning; see :class:`kfdyn.System` for what can be computed then.
    mimic : {"obey", "free"}
        Whether mimic joints (URDF) and equality constraints (MJCF: ``joint``, ``connect``, ``weld``) are
        couplings and loops of the system, rigid ones, or data only and every hinge free.
    keep_fixed : str or collection of str
        Links, or fixed joints, that are not joined to their carrier: bodies with hinges of no dof, where a force–torque
        sensor can be.

    Returns
    -------
    System
        A joint of the file is a hinge of the same name, and q and v follow the file's order of joints, after
        the floating bases if there are any. A joint that mimics another has no place in q and v of its own;
        ``system.expand(q)`` has them all. Its ``origin`` is the file.

    Raises
    ------
    ModelError, TreeError
        With file, line, element and cure.

    Warns
    -----
    LoadWarning
        Of what the file asks for and the system does not model (tendons and their equality constraints; mimic
        joints, if they are to be free), and of inertias that no body has. :func:`read` gives these as data instead.

    Notes
    -----
    Meshes are not read. Cost O(bytes + bodies), no recursion; hostile files (entities, endless tags, loops)
    are refused in bounded time and memory.

    Examples
    --------
    >>> arm = '<robot name="arm"><link name="base"/><link name="rod"><inertial><mass value="2"/><inertia '
    >>> arm += 'ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link><joint name="elbow" '
    >>> arm += 'type="continuous"><parent link="base"/><child link="rod"/></joint></robot>'
    >>> load(arm)
    System 'arm': 1 bodies, 1 dofs, mass 2 kg
      rod: revolute on the world, 2 kg
    """
    loaded = read(
        source,
        floating_base,
        merge_fixed,
        gravity,
        indefinite_inertia=indefinite_inertia,
        mimic=mimic,
        keep_fixed=keep_fixed,
    )
    if loaded.warnings:
        warnings.warn(f"{loaded.source}: " + "; ".join(loaded.warnings), LoadWarning, stacklevel=2)
    return loaded.system


def read(
    source: str | bytes | os.PathLike[str],
    floating_base: bool = False,
    merge_fixed: bool = True,
    gravity: ArrayLike | None = None,
    *,
    indefinite_inertia: Literal["refuse", "warn"] = "refuse",
    mimic: Literal["obey", "free"] = "obey",
    keep_fixed: str | Collection[str] = (),
) -> Loaded:
    """Load a robot together with all that a System has no place for; parameters as for :func:`load`.

    Parameters
    ----------
    source, floating_base, merge_fixed, gravity, indefinite_inertia, mimic, keep_fixed
        As for :func:`load`.

    Returns
    -------
    Loaded
        ``system``, ``notes``, ``mimics``, ``spring_reference``, ``world_frames``, ``quiet``. No warning is given: the
        notes are the warnings, and the ``quiet`` ones among them what :func:`load` does not warn of: which limits,
        friction and actuators the file has that :func:`kfdyn.simulate` ignores unless asked.

    Examples
    --------
    >>> read('<robot name="box"><link name="box"/></robot>', floating_base=True).system.hinge_names
    ('floating_base',)
    """
    check_choice(mimic)
    check_indefinite_inertia(indefinite_inertia)
    keep_fixed = (keep_fixed,) if isinstance(keep_fixed, str) else keep_fixed
    opened = open_source(source)
    expect_no_page(opened)
    tag = opened.root().tag
    if tag == "robot":
        from kfdyn.io.urdf.load_urdf import load_urdf

        gravity = EARTH if gravity is None else gravity
        loaded = load_urdf(opened, floating_base, merge_fixed, gravity, indefinite_inertia, mimic, keep_fixed)
        loaded.system.remember(Origin("urdf", opened.path, opened.data, floating_base))
        return loaded.remarked(not_obeyed(loaded.system))
    if tag == "mujoco":
        from kfdyn.io.mjcf.load_mjcf import load_mjcf

        if floating_base:
            raise ModelError(f"{opened.name}: an MJCF file says itself what floats: give the body a <freejoint/> there")
        for _ in read_elements(opened.data, opened.name, lambda tag: False, opened.encoding):
            pass  # MuJoCo reads it next, with a parser that sets no bounds
        loaded = load_mjcf(opened, merge_fixed, gravity, indefinite_inertia, mimic, keep_fixed)
        loaded.system.remember(Origin("mjcf", opened.path, opened.data, False))
        return loaded.remarked(not_obeyed(loaded.system))
    advice = {
        "sdf": "convert it to URDF, or load the robot's URDF",
        "mujocoinclude": "load the file that includes it",
    }.get(tag, "URDF begins with <robot>, MJCF with <mujoco>")
    raise ModelError(f"{opened.name}: root element <{tag[:60]}> is neither URDF nor MJCF; {advice}")
