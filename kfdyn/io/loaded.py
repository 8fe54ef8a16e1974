"""What a file held: the system, and what the system has no place for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple
from warnings import WarningMessage

from kfdyn.multibody import Pose, System

NOTHING: Mapping[str, float] = MappingProxyType({})


class LoadWarning(UserWarning):
    """Something in a file is kept as data or left out, and not modelled.

    Examples
    --------
    A joint that is to mimic another can be loaded as a hinge of its own, and that is said:

    >>> import warnings
    >>> import kfdyn as kf
    >>> fingers = Loaded(kf.models.double_pendulum(), "fingers", mimics=(Mimic("elbow", of="shoulder"),))
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     arm = kf.load(kf.save_urdf(fingers), mimic="free")
    >>> arm.nv, str(said[0].message)
    (2, "<string>: mimic joints move freely, their couplings are data only: 'elbow'")
    """


class Mimic(NamedTuple):
    """The hinge ``hinge`` is to follow another: q = multiplier · q(``of``) + offset.

    Examples
    --------
    Two fingers that close together, written to a file and read again:

    >>> import kfdyn as kf
    >>> closing = Mimic("elbow", of="shoulder", multiplier=-1.0)
    >>> fingers = Loaded(kf.models.double_pendulum(), "fingers", mimics=(closing,))
    >>> kf.read(kf.save_urdf(fingers)).mimics == (closing,)
    True
    """

    hinge: str
    of: str
    multiplier: float = 1.0
    offset: float = 0.0


class Loaded(NamedTuple):
    """A system and the rest of its file.

    Attributes
    ----------
    system : System
    source : str
        Name of the file.
    notes : tuple of str
        What is not modelled, in words; :func:`kfdyn.load` gives them as one warning.
    mimics : tuple of Mimic
        What the file says of hinges that follow others; couplings of the system, unless they were to be free.
    friction : mapping from hinge name to float
        Dry friction, where it is not zero.
    spring_reference : mapping from hinge name to float
        The q at which a hinge's spring is at rest, where the hinge has stiffness.
    world_frames : mapping from str to Pose
        Links and bodies of the file that are fixed to the world, which are no bodies of the system.

    Examples
    --------
    What a System has no place for, dry friction at a hinge, is kept beside it:

    >>> import kfdyn as kf
    >>> rusty = Loaded(kf.models.double_pendulum(), "rusty", friction={"elbow": 0.3})
    >>> loaded = kf.read(kf.save_urdf(rusty))
    >>> loaded.system.hinge_names, dict(loaded.friction)
    (('shoulder', 'elbow'), {'elbow': 0.3})
    """

    system: System
    source: str
    notes: tuple[str, ...] = ()
    mimics: tuple[Mimic, ...] = ()
    friction: Mapping[str, float] = NOTHING
    spring_reference: Mapping[str, float] = NOTHING
    world_frames: Mapping[str, Pose] = MappingProxyType({})

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, tuple(dict(field) if isinstance(field, Mapping) else field for field in self)


def _rebuilt(*fields: Any) -> Loaded:
    """The same again; its mappings are read-only."""
    return Loaded._make(MappingProxyType(field) if isinstance(field, dict) else field for field in fields)


def listed(names: list[str], most: int = 4) -> str:
    """Say names in a sentence, at most ``most`` of them."""
    text = ", ".join(repr(name) for name in names[:most])
    return text + (f" and {len(names) - most} more" if len(names) > most else "")


def indefinite_notes(what: str, said: Sequence[WarningMessage], most: int = 4) -> Iterator[str]:
    """Yield what a System warned of as notes on so many of a file's bodies, which are called ``what``."""
    for warning in said[:most]:
        yield f"{what} {warning.message}"
    if len(said) > most:
        yield f"and {len(said) - most} more with a negative principal moment of inertia"
