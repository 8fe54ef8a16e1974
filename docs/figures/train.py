"""The train of the lecture: three carts, three motors, and what each coupling passes on.

python docs/figures/train.py
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle, FancyBboxPatch, Rectangle
from style import BLACK, BLUE, GREY, ORANGE, save

import kfdyn as kf

MASSES, ROTORS = [2.0, 1.0, 3.0], [1.0, 1.0, 1.0]
PLACES, WALL = [0.0, 3.2, 6.4], 9.6

one = np.ones((3, 1, 1))
train = kf.StateSpace([1, 2, -1], one, one, one * np.reshape(MASSES, (3, 1, 1)), one * np.reshape(ROTORS, (3, 1, 1)))
cov = kf.riccati(train)
P, D, P_plus = (np.ravel(blocks.flat) for blocks in (cov.P, cov.D, cov.P_plus))
assert np.allclose(P, [2, 5 / 3, 29 / 8]) and np.allclose(D, [3, 8 / 3, 37 / 8]) and np.isclose(D.prod(), 37)
LETTERS = (
    ["2", r"\frac{5}{3}", r"\frac{29}{8}"],
    ["3", r"\frac{8}{3}", r"\frac{37}{8}"],
    [r"\frac{2}{3}", r"\frac{5}{8}"],
)

figure, ax = plt.subplots(figsize=(9.5, 3.1))
figure.subplots_adjust(left=0.01, right=0.99, bottom=0.0, top=1.0)
ax.plot([-1.3, WALL], [0, 0], color=GREY, linewidth=2)
ax.add_patch(Rectangle((WALL, -0.3), 0.35, 2.0, facecolor="#D0D0D0", edgecolor=GREY, hatch="///"))
for k, (place, mass) in enumerate(zip(PLACES, MASSES)):
    box = FancyBboxPatch((place - 0.7, 0.3), 1.4, 0.9, boxstyle="round,pad=0.05", facecolor="#E8EEF4", edgecolor=BLACK)
    ax.add_patch(box)
    for wheel in (-0.4, 0.4):
        ax.add_patch(Circle((place + wheel, 0.14), 0.14, facecolor=BLACK))
    ax.text(place, 0.75, f"$m_{k} = {mass:.0f}$", ha="center", va="center", fontsize=12)
    end = PLACES[k + 1] - 0.75 if k < 2 else WALL
    middle = (place + 0.75 + end) / 2
    ax.plot([place + 0.75, end], [0.75, 0.75], color=GREY, linewidth=2, zorder=1)
    ax.add_patch(Circle((middle, 0.75), 0.3, facecolor=ORANGE, edgecolor=BLACK, zorder=2))
    ax.text(middle, 0.75, "1", ha="center", va="center", fontsize=11, zorder=3)
    ax.text(middle, 1.3, f"$T_{k}$", ha="center", color="#A06C00", fontsize=12)
    ax.text(place, 2.45, f"$P_{k} = {LETTERS[0][k]}$", ha="center", color=BLUE, fontsize=14)
    ax.text(middle, -0.75, f"$D_{k} = {LETTERS[1][k]}$", ha="center", color=BLUE, fontsize=14)
    if k < 2:
        start, stop = (place + 0.95, 2.55), (PLACES[k + 1] - 1.0, 2.55)
        ax.annotate("", stop, start, arrowprops={"arrowstyle": "->", "color": BLUE})
        ax.text((start[0] + stop[0]) / 2, 2.0, f"$P^+_{k} = {LETTERS[2][k]}$", ha="center", color=BLUE, fontsize=14)
ax.text(-1.3, 3.2, "the filter runs from the tail to the wall; rotors (orange) are measurement noise", color=BLUE)
ax.text(-1.3, -0.75, "felt by the motors:", ha="left", color=BLUE)
ax.set(xlim=(-1.6, WALL + 0.6), ylim=(-1.1, 3.55), aspect="equal")
ax.set_axis_off()
save(figure, "train")
