"""Result of loading a file: the system, and what the system cannot represent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple
from warnings import WarningMessage

import numpy as np

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
    """The hinge ``hinge`` is to follow another: q = multiplier · q(``of``) + offset, and powers from the square on.

    ``curve`` are coefficients c₂, c₃, … of those powers, as MJCF files have them. Where ``of`` is empty the hinge is
    locked at the offset.

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
    curve: tuple[float, ...] = ()


class Loaded(NamedTuple):
    """A system and the rest of its file.

    Attributes
    ----------
    system : System
    source : str
        Name of the file.
    notes : tuple of str
        What is not modelled, in words; :func:`kfdyn.load` gives them as one warning, but for the ``quiet`` ones.
    mimics : tuple of Mimic
        What the file says of hinges that follow others; couplings of the system, unless they were to be free.
    spring_reference : mapping from hinge name to float
        The q at which a hinge's spring is at rest, where the hinge has stiffness.
    world_frames : mapping from str to Pose
        Links and bodies of the file that are fixed to the world, which are no bodies of the system.
    quiet : tuple of str
        Those of the notes that say what is kept as data and used when asked for, as limits are, or what is not needed.

    Examples
    --------
    What a System has no place for, here that a hinge follows another, is kept beside it:

    >>> import kfdyn as kf
    >>> fingers = Loaded(kf.models.double_pendulum(), "fingers", mimics=(Mimic("elbow", of="shoulder"),))
    >>> loaded = kf.read(kf.save_urdf(fingers))
    >>> loaded.system.nv, loaded.mimics[0].of, loaded.warnings
    (1, 'shoulder', ())
    """

    system: System
    source: str
    notes: tuple[str, ...] = ()
    mimics: tuple[Mimic, ...] = ()
    spring_reference: Mapping[str, float] = NOTHING
    world_frames: Mapping[str, Pose] = MappingProxyType({})
    quiet: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """The notes that :func:`kfdyn.load` warns of."""
        return tuple(note for note in self.notes if note not in self.quiet)

    @property
    def friction(self) -> dict[str, float]:
        """Coulomb friction by hinge, the largest of its dofs, where it is not zero."""
        return {body.hinge_name: float(max(body.friction)) for body in self.system.bodies if body.friction.any()}

    def remarked(self, quiet: Iterable[str]) -> Loaded:
        """Return the same with more quiet notes."""
        more = tuple(quiet)
        return self._replace(notes=(*self.notes, *more), quiet=(*self.quiet, *more))

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, tuple(dict(field) if isinstance(field, Mapping) else field for field in self)


def not_obeyed(system: System) -> Iterator[str]:
    """Say which data of the hinges ``simulate`` ignores unless asked, as one note; none where there are none."""
    bodies = system.bodies

    def having(*keys: str) -> int:
        return sum(any(np.isfinite(getattr(body, key)).any() for key in keys) for body in bodies if body.hinge.nv)

    def nonzero(key: str) -> int:
        return sum(bool(getattr(body, key).any()) for body in bodies)

    told = {
        "limits of q": (having("lower", "upper"), "stops=True"),
        "effort limits": (having("effort"), "effort=True"),
        "Coulomb friction": (nonzero("friction"), "friction=True"),
        "damping": (nonzero("damping"), "damping=True"),
        "springs": (nonzero("stiffness"), "stiffness=True"),
        "limits of v": (having("speed"), "no option"),
    }
    said = [f"{what} of {n} hinge{'s' * (n > 1)} ({option})" for what, (n, option) in told.items() if n]
    if said:
        yield f"simulate ignores, unless asked: {', '.join(said)}"


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
