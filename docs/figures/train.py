"""The train of the lecture with the numbers of its filter: what each coupling passes on, and what each motor feels.

python docs/figures/train.py
"""

import numpy as np
from carts import MASSES, PLACES, ROTORS, draw_carts
from style import BLUE, save

import kfdyn as kf

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

figure, ax, motors = draw_carts(height=3.1, bottom=-1.1, top=3.55)
for k, (place, motor) in enumerate(zip(PLACES, motors)):
    ax.text(place, 2.45, f"$P_{k} = {LETTERS[0][k]}$", ha="center", color=BLUE, fontsize=14)
    ax.text(motor, -0.75, f"$D_{k} = {LETTERS[1][k]}$", ha="center", color=BLUE, fontsize=14)
    if k < 2:
        start, stop = (place + 0.95, 2.55), (PLACES[k + 1] - 1.0, 2.55)
        ax.annotate("", stop, start, arrowprops={"arrowstyle": "->", "color": BLUE})
        ax.text((start[0] + stop[0]) / 2, 2.0, f"$P^+_{k} = {LETTERS[2][k]}$", ha="center", color=BLUE, fontsize=14)
ax.text(-1.3, 3.2, "the filter runs from the tail to the wall; rotors (orange) are measurement noise", color=BLUE)
ax.text(-1.3, -0.75, "felt by the motors:", ha="left", color=BLUE)
save(figure, "train")
