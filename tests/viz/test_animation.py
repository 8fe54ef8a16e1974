"""Animations show the motion: the right moments, the right points, files that open."""

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError
from kfdyn.viz import animate, skeleton


@pytest.fixture(scope="module")
def fall():
    return kf.simulate(kf.models.double_pendulum(), [1.5, 0.2], [0.0, 0.0], np.linspace(0, 0.5, 101))


@pytest.mark.parametrize(("plane", "rows"), [("xz", [0, 2]), (None, [0, 1, 2])])
def test_frames_are_the_moments_of_the_motion(fall, plane, rows):
    moving = animate(fall, plane=plane, fps=10, speed=0.5, trail="lower", energy=True)
    frames = list(moving.new_frame_seq())
    assert len(frames) == 11  # half a second at half speed, ten a second
    moving._init_draw()
    drawn = moving._func(frames[-1])
    bones = skeleton(fall.system, fall.q[-1])
    for line, stroke in zip(drawn, bones.strokes):
        got = np.array(line.get_data_3d() if plane is None else line.get_data())
        np.testing.assert_allclose(got, stroke[:, rows].T)
    trail = drawn[-1].get_data_3d() if plane is None else drawn[-1].get_data()
    passed = kf.frame_pose(fall.system, fall.q, "lower").position[:, rows]  # between the frames, too
    np.testing.assert_allclose(np.array(trail).T, passed)
    early = moving._func(frames[2])[-1]
    assert len((early.get_data_3d() if plane is None else early.get_data())[0]) == 21


def test_files(fall, tmp_path):
    animate(fall, tmp_path / "fall.html", fps=6, size=2)
    page = (tmp_path / "fall.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64") == 4
    assert "http" not in page
    assert page.count('<span aria-hidden="true">') == 9  # a sign on every button, though no font is fetched
    assert "fa-" not in page
    animate(fall, tmp_path / "fall.gif", fps=6, size=2)
    assert (tmp_path / "fall.gif").read_bytes()[:6] in (b"GIF87a", b"GIF89a")


def test_what_cannot_be_animated_is_said(fall, tmp_path):
    with pytest.raises(ModelError, match=r"\.html or \.gif"):
        animate(fall, tmp_path / "fall.mp4")
    with pytest.raises(ModelError, match="501 frames"):
        animate(fall, fps=1000)
    with pytest.raises(ModelError, match="positive"):
        animate(fall, fps=0)
    batch = kf.simulate(fall.system, np.zeros((2, 2)), np.zeros((2, 2)), np.linspace(0, 0.1, 5))
    with pytest.raises(ModelError, match="one motion"):
        animate(batch)


def test_labels_in_three_dimensions_are_seen(fall):
    """Within the picture, clear of the energies beside it, whose legend lies above its curves."""
    for energy in (False, True):
        figure = animate(fall, plane=None, energy=energy)._fig
        figure.canvas.draw()
        deep, *beside = figure.axes
        label = deep.zaxis.label.get_window_extent()
        assert figure.bbox.x0 < label.x0 and label.x1 < figure.bbox.x1
        for ax in beside:
            assert label.x1 < ax.yaxis.label.get_window_extent().x0
            assert ax.get_legend().get_window_extent().y0 >= ax.bbox.y1


def test_one_of_a_batch_is_animated_as_advised(fall):
    batch = kf.simulate(fall.system, np.zeros((2, 2)), np.ones((2, 2)), np.linspace(0, 0.1, 5))
    with pytest.raises(ModelError, match=r"choose one, as trajectory\[0\]"):
        animate(batch)
    assert len(list(animate(batch[0]).new_frame_seq())) == 3
