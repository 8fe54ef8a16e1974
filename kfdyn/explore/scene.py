"""The robot in viser's scene: bones, bodies, and the ellipsoids of P and P⁺ at the hinges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from kfdyn.arrays import Array
from kfdyn.explore.moment import Moment, Numbers
from kfdyn.explore.shapes import Shape
from kfdyn.multibody import center_of_mass
from kfdyn.spatial import matrix_to_quaternion
from kfdyn.viz import skeleton

if TYPE_CHECKING:
    import viser

Faces = Literal["front", "back", "double"]
BLUE, ORANGE, GREY, DARK = (0, 114, 178), (230, 159, 0), (150, 158, 170), (60, 66, 76)

WORLD = "/world"  # what everything hangs on

# P is seen from within, as a shell around P⁺.
LOOKS: tuple[tuple[str, tuple[int, int, int], float, Faces], ...] = (
    ("P", BLUE, 0.35, "back"),
    ("P_plus", ORANGE, 0.75, "front"),
)


class Scene:
    """Handles of all that moves; ``show`` puts them where a moment has them."""

    def __init__(self, server: viser.ViserServer, moment: Moment, numbers: Numbers, shapes: Sequence[Shape]) -> None:
        from trimesh import creation

        self.server, self.system = server, moment.system
        bones = skeleton(moment.system, moment.q)
        points = np.concatenate([bones.strokes.reshape(-1, 3), bones.hinges, np.zeros((1, 3))])
        self.reach = max(float(np.linalg.norm(np.ptp(points, axis=0))), 1e-3)
        scene = server.scene
        scene.set_up_direction("+z")
        floor = float(min(0.0, points[:, 2].min()))
        # All that is drawn hangs on one frame, which moves where a robot would leave the picture.
        self.world = scene.add_frame(WORLD, show_axes=False)
        self.home, self.shift = center_of_mass(moment.system, moment.q), np.zeros(3)
        self.travels = any(
            body.parent is None and body.hinge.screws[:, 3:].any() for body in moment.system.open_tree.bodies
        )
        scene.add_grid(
            f"{WORLD}/floor",
            width=2 * self.reach,
            height=2 * self.reach,
            cell_size=self.reach / 10,
            position=(0.0, 0.0, floor),
        )
        self.bones = scene.add_line_segments(
            f"{WORLD}/robot/bones", _strokes(bones), DARK, thickness=3.0, thickness_units="screen"
        )
        self.joints = scene.add_point_cloud(
            f"{WORLD}/robot/hinges",
            bones.hinges.astype(np.float32),
            DARK,
            point_size=self.reach / 80,
            point_shape="circle",
        )
        self.bodies = [
            (
                moment.system.locate(shape.link),
                scene.add_mesh_simple(
                    f"{WORLD}/robot/bodies/{i}", shape.vertices, shape.faces, color=GREY, opacity=0.55, side="double"
                ),
            )
            for i, shape in enumerate(shapes)
        ]
        # The largest square root of an inertia is an eighth of the robot.
        heaviest = np.sqrt(max(float(np.linalg.eigvalsh(numbers.P).max()), 1e-300))
        self.size = 0.12 * self.reach / heaviest
        ball = creation.icosphere(subdivisions=3)
        n = moment.system.n_bodies
        self.ellipsoids = [
            scene.add_batched_meshes_simple(
                f"{WORLD}/inertia/{side}", ball.vertices, ball.faces, np.tile([1.0, 0, 0, 0], (n, 1)), np.zeros((n, 3)),
                batched_scales=np.ones((n, 3)), batched_colors=colour, opacity=opacity, side=faces, cast_shadow=False,
            )
            for side, colour, opacity, faces in LOOKS
        ]  # fmt: skip
        server.initial_camera.position = tuple(0.8 * self.reach * np.array([1.0, -1.0, 0.6]) + points.mean(axis=0))
        server.initial_camera.look_at = tuple(points.mean(axis=0))

    def look_from_afar(self) -> None:
        """Move the camera so that it sees all places the robot can swing to about its first hinge."""
        middle = np.asarray(self.joints.points[0], dtype=float)
        aside = np.array([1.0, -1.0, 0.3]) / np.linalg.norm([1.0, -1.0, 0.3])
        self.server.initial_camera.position = tuple(middle + 2.0 * self.reach * aside)
        self.server.initial_camera.look_at = tuple(middle)

    def show(self, moment: Moment, numbers: Numbers, chosen: Sequence[int]) -> None:
        """Move everything; ellipsoids stand at the chosen hinges only."""
        bones = skeleton(moment.system, moment.q)
        with self.server.atomic():
            if self.travels:
                self._keep_in_sight(center_of_mass(moment.system, moment.q))
            self.bones.points = _strokes(bones)
            self.joints.points = bones.hinges.astype(np.float32)
            for (k, rotation, position), mesh in self.bodies:
                R = numbers.rotation[k]
                mesh.wxyz, mesh.position = quaternion(R @ rotation), numbers.position[k] + R @ position
            # P⁺ touches P where the hinge gives nothing away: drawn a little smaller, or the two would flicker.
            for shape, blocks in zip(self.ellipsoids, (numbers.P, 0.95 * numbers.P_plus)):
                shape.batched_wxyzs, shape.batched_scales = ellipsoids(blocks, self.size, chosen)
                shape.batched_positions = numbers.position.astype(np.float32)

    def _keep_in_sight(self, centre: Array) -> None:
        """Shift the world so that the centre of mass stays within a third of the reach of where it was at first."""
        away = centre - self.home + self.shift
        far = float(np.linalg.norm(away))
        if far > self.reach / 3:
            self.shift = self.shift - away * (1 - self.reach / 3 / far)
            self.world.position = self.shift


def ellipsoids(blocks: Array, size: float, chosen: Sequence[int]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Turn (n, 4) and stretch (n, 3) of unit balls to {x : x* Σ⁻¹ x = size²}, of no size but for those chosen.

    Where there is no variance some thickness stays, to be seen.
    """
    spectrum, axes = np.linalg.eigh(blocks)
    axes[..., 0] *= np.sign(np.linalg.det(axes))[:, None]
    lengths = size * np.sqrt(np.maximum(spectrum, 0.0))
    lengths = np.maximum(lengths, 0.01 * lengths.max(axis=1, keepdims=True) + 1e-9)
    lengths[np.setdiff1d(np.arange(len(blocks)), chosen)] = 1e-9
    return quaternion(axes).astype(np.float32), lengths.astype(np.float32)


def quaternion(R: Array) -> Array:
    """Return quaternions (..., 4) in viser's order (w, x, y, z) of rotations (..., 3, 3)."""
    return np.roll(matrix_to_quaternion(R), 1, axis=-1)


def _strokes(bones: Any) -> NDArray[np.float32]:
    strokes: NDArray[np.float32] = bones.strokes.astype(np.float32)
    return strokes
