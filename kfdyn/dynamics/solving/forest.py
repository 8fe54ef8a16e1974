"""A batch is a forest: checked arguments, in parts that fit the cache, each part one sweep over all its trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.arrays import Array
from kfdyn.dynamics.assembly import forest_of
from kfdyn.dynamics.solving.kinds import own_way
from kfdyn.dynamics.theory.composite import composite_inertias
from kfdyn.errors import ModelError, SingularError
from kfdyn.multibody import LinkTerms, System, link_terms
from kfdyn.multibody.calls.arguments import batch, checked, configuration, loads
from kfdyn.multibody.calls.kernel import Kernel
from kfdyn.multibody.calls.states import States as Bound
from kfdyn.spatial import inertia_parameters
from kfdyn.sweeps.thread_pool import POOL, threads

# Nodes per part, some 1.5 kB each with all that the filter keeps: enough that the calls around a sweep cost little,
# few enough for the cache of a core (measured: 512 takes twice the time, 65536 no less).
PART = 4096

_MASS_MATRIX = Kernel("kfdyn.dynamics.recursions.mass_matrix", "MASS_MATRIX")

#: Dofs of a system with couplings beyond which n³ costs more than the embedded filter's O(N).
DENSE = 80
# Dofs up to which n³ is no more than what the engine takes.
_DENSE = 200
ROUNDING = 1e-12  # of the largest moment of inertia: below zero by less is zero


class States(Bound):
    """States of a system with their leading axes made one, and the estimation problems of some of them."""

    @classmethod
    def of(
        cls,
        system: System,
        q: ArrayLike,
        v: ArrayLike | None = None,
        external_forces: ArrayLike | None = None,
        gravity: ArrayLike | None = None,
        **dofs: ArrayLike,
    ) -> States:
        """Check every argument by name and broadcast; ``dofs`` are more arrays (..., nv), which None is not."""
        given = {"q": (configuration(system, q), 1)}
        given |= {name: (checked(system, value, (system.nv,), name), 1) for name, value in dofs.items()}
        for name, value, tail in (
            ("v", v, (system.nv,)),
            ("gravity", gravity, (3,)),
        ):
            if value is not None:
                given[name] = (checked(system, value, tail, name), len(tail))
        if external_forces is not None:
            given["external_forces"] = (loads(system, external_forces), 2)
        lead, arrays = batch(system, **given)
        return cls(system, lead, dict(zip(given, arrays)))

    def forest(self, part: slice) -> Any:
        """The estimation problem of some of the states."""
        forest = forest_of(self.system, *self.part(part))
        forest.ss.__dict__["in_parts"] = True
        return forest

    def link_terms(self, part: slice) -> LinkTerms:
        """Hinge maps, lever arms and inertias of some of the states, at rest."""
        return link_terms(self.system, self["q"][part])

    def in_parts(self, work: Callable[[slice], None], nodes: int = PART) -> None:
        """Call ``work`` for parts of some ``nodes`` bodies each, in threads; they must write to disjoint rows.

        A hinge without inertia is reported in words of mechanics, at the first state that has one.
        """
        step = max(1, nodes // self.system.n_bodies)
        parts = [slice(at, min(at + step, self.size)) for at in range(0, self.size, step)]

        def run(part: slice) -> None:
            try:
                work(part)
            except SingularError:
                for at in range(part.start, part.stop):  # a forest is swept from its last tree on
                    self._alone(work, at)
                raise

        POOL.map(run, parts, max(1, min(threads(), len(parts) // 2)))

    def expect_invertible(self, free: NDArray[np.bool_] | None = None) -> None:
        """Refuse states whose mass matrix is singular in double precision, or that part of it which is ``free``.

        The least eigenvalue of 𝓜 is compared with its rounding, each hinge in units of all that it carries: of its
        composite body's moment of inertia and mass, since that is what rounds. Below it no digit of an acceleration is
        left, whatever the variances are hinge by hinge. For systems of moderate size only, since it costs n³; and the
        eigenvector tells which hinges do it together.
        """
        system = self.system
        own = np.arange(system.nv) if free is None else np.flatnonzero(free)
        other = own_way(system, "expect_invertible")
        if other is not None:
            other(self, free)
            return
        if not 0 < own.size <= _DENSE or not self.size:
            return
        tree, here = self._opened(), system._expansion.at(self["q"])
        (M,), declined = _MASS_MATRIX.swept(tree)
        if declined.any():
            return  # others have the words
        M, unit = here.matrix(M)[:, own][:, :, own], np.sqrt(here.squares(tree._units()[:, None] ** 2)[:, 0])[:, own]
        idle = (unit == 0).any(axis=1)
        if idle.any():
            first = int(idle.argmax())
            raise hinges_without_inertia(system, moved_by(system, own[unit[first] == 0]), self.place(first))
        values, vectors = np.linalg.eigh(M / (unit[:, :, None] * unit[:, None, :]))
        singular = values[:, 0] <= 4 * own.size * np.finfo(float).eps
        if not singular.any():
            return
        first = int(singular.argmax())
        share = np.abs(vectors[first, :, 0])
        raise hinges_without_inertia(system, moved_by(system, own[share > 0.1 * share.max()]), self.place(first))

    def _opened(self) -> States:
        """The configurations alone, as those of the open tree."""
        return States(self.system.open_tree, self.lead, {"q": self.system.positions(self["q"])})

    def _units(self) -> Array:
        """√(|ω|² tr J + |v|² m + armature) of each dof (size, nv), J and m of the composite body outboard of it."""
        system = self.system
        ss = States(system, self.lead, {"q": self["q"]}).forest(slice(None)).ss
        R = composite_inertias(ss).flat.reshape(self.size, system.n_bodies, 6, 6)
        owner = np.repeat(np.arange(system.n_bodies), np.diff(system.layout.v_start))
        H = ss.H.flat.reshape(self.size, system.nv, 6)
        turning, sliding = (np.einsum("bkii->bk", R[..., a, :][..., a])[:, owner] for a in (slice(0, 3), slice(3, 6)))
        along = [(H[..., a] ** 2).sum(-1) for a in (slice(0, 3), slice(3, 6))]
        return np.sqrt(np.abs(along[0] * turning + along[1] * sliding / 3.0 + system.armature))

    def _alone(self, work: Callable[[slice], None], at: int) -> None:
        """Work on one state; what is wrong with it is said in words of mechanics."""
        try:
            work(slice(at, at + 1))
        except SingularError as error:
            if error.node is None:  # said so already
                raise
            raise singular(self.system, error, self.place(at)) from None


def singular(system: System, error: SingularError, where: tuple[int, ...] = ()) -> SingularError:
    """The engine's error about a node in words of mechanics: which hinges move nothing, and in which state."""
    own: Any = own_way(system, "singular_node")
    return (own or hinge_without_inertia)(system, error.node or 0, error.output or 0, where)


def hinge_without_inertia(system: System, body: int, output: int, where: tuple[int, ...] = ()) -> SingularError:
    """D(k) = 0 in words of mechanics: which dof of which hinge, why, and what would cure it."""
    name = system.hinge_names[body]
    hinge = f"hinge {name!r}" if system.bodies[body].hinge.nv == 1 else f"hinge {name!r}, dof {output}"
    at = told_place(where)
    outboard = _outboard(system, body)
    if not (system.layout.mass[outboard] > 0).any() and not system.layout.J[outboard].any():
        message = (
            f"{hinge}: nothing outboard of it has mass, so its innovation variance is 0; give the tool a mass "
            "or the hinge an armature"
        )
    elif culprit := _indefinite(system, outboard):
        message = (
            f"{hinge}{at}: it moves no positive inertia; body {culprit!r}, which it carries, has a negative principal "
            "moment of inertia: correct that, or give the hinge an armature"
        )
    else:
        message = (
            f"{hinge}{at}: it moves no inertia that the hinges outboard of it (or its own other dofs) leave it, so its "
            "innovation variance is 0: axes that coincide (gimbal lock), or a mass without extent on the axis; move "
            "out of this configuration, or give the body an inertia or the hinge an armature"
        )
    return SingularError(message, body, output)


def moved_by(system: System, dofs: NDArray[np.int64]) -> list[int]:
    """Bodies whose hinges some coordinates move: their own, or all of a coupling."""
    owner = np.repeat(np.arange(system.n_bodies), np.diff(system.uncoupled.places.v_start))
    return sorted(set(owner[system._expansion.reach[:, dofs].any(axis=1)].tolist()))


def told_place(where: tuple[int, ...]) -> str:
    """Name the place of a state in the caller's q; return nothing where there is one."""
    return f" (at q[{', '.join(map(str, where))}])" if where else ""


def hinges_without_inertia(system: System, bodies: list[int], where: tuple[int, ...] = ()) -> SingularError:
    """𝓜 is singular along a motion of several hinges, in words of mechanics."""
    names = [repr(system.hinge_names[k]) for k in bodies]
    told = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    at = told_place(where)
    return SingularError(
        f"hinges {told}{at}: there is a motion of theirs that moves no inertia, so that the mass matrix is singular in "
        "double precision: axes that coincide (gimbal lock), or several axes through a mass without extent; move out "
        "of this configuration, or give the body an inertia or one of the hinges an armature"
    )


def _outboard(system: System, body: int) -> NDArray[np.bool_]:
    """Mark the bodies (n_bodies,) that are the body or outboard of it."""
    outboard = np.zeros(system.n_bodies, dtype=bool)
    outboard[body] = True
    for k in system.layout.order:
        p = system.parent[k]
        outboard[k] |= p >= 0 and outboard[p]
    return outboard


def _indefinite(system: System, among: NDArray[np.bool_]) -> str | None:
    """Name of the first body with a negative principal moment, which a system may have been asked to accept."""
    if system.indefinite_inertia == "refuse":
        return None
    for k in np.flatnonzero(among):
        moments = np.linalg.eigvalsh(inertia_parameters(system.bodies[k].inertia).inertia_com)
        if moments[0] < -ROUNDING * np.abs(system.layout.J[k]).max():
            return system.body_names[k]
    return None


def expect_method(method: str, known: tuple[str, ...], function: str) -> None:
    """Refuse a method that is not one of ``known``."""
    if method not in known:
        raise ModelError(
            f"{function}: method must be {', '.join(map(repr, known[:-1]))} or {known[-1]!r}, not {method!r}"
        )
