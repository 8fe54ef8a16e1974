"""The palette can be told apart, by colour-blind readers too; the style is one that matplotlib takes."""

from itertools import combinations

import matplotlib as mpl
import matplotlib.style
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from kfdyn.viz import COLORS, STYLE

# Linear RGB as seen without one kind of cone: Viénot, Brettel and Mollon (1999).
LACKING = {
    "none": np.eye(3),
    "red": np.array([[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]]),
    "green": np.array([[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]]),
}


def lab(color, cones):
    """CIE L*a*b* of a colour as it is seen."""
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(np.maximum(to_xyz @ LACKING[cones] @ linear, 0.0) / to_xyz.sum(axis=1))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("cones", LACKING)
def test_colours_can_be_told_apart(cones):
    """Ten units of L*a*b* is four just-noticeable differences; red and green as such would fail."""
    seen = {name: lab(color, cones) for name, color in COLORS.items()}
    for a, b in combinations(seen, 2):
        assert np.linalg.norm(seen[a] - seen[b]) > 10, (a, b)


def test_the_measure_can_fail():
    """A brick red and an olive green, far apart for most, are one colour without the green cones."""
    apart = {cones: np.linalg.norm(lab("#B04A2E", cones) - lab("#80772E", cones)) for cones in ("none", "green")}
    assert apart["green"] < 10 < 30 < apart["none"], apart


def test_matplotlib_takes_the_style():
    with mpl.rc_context():
        mpl.style.use(STYLE)
        for key, value in STYLE.items():
            assert mpl.rcParams[key] == value
