"""The train of the lecture as it stands on the rail, before anything is computed: three carts, three motors, a wall.

python docs/figures/carts.py
"""

import matplotlib.pyplot as plt
from matplotlib.patches import Circle, FancyBboxPatch, Rectangle
from style import BLACK, GREY, ORANGE, save

MASSES, ROTORS = [2.0, 1.0, 3.0], [1.0, 1.0, 1.0]
PLACES, WALL = [0.0, 3.2, 6.4], 9.6


def draw_carts(height, bottom, top):
    """Return a figure of this many inches with the train on it, its axes, and the places of the motors."""
    figure, ax = plt.subplots(figsize=(9.5, height))
    figure.subplots_adjust(left=0.01, right=0.99, bottom=0.0, top=1.0)
    ax.plot([-1.3, WALL], [0, 0], color=GREY, linewidth=2)
    ax.add_patch(Rectangle((WALL, -0.3), 0.35, 2.0, facecolor="#D0D0D0", edgecolor=GREY, hatch="///"))
    motors = []
    for k, (place, mass) in enumerate(zip(PLACES, MASSES)):
        box = {"boxstyle": "round,pad=0.05", "facecolor": "#E8EEF4", "edgecolor": BLACK}
        ax.add_patch(FancyBboxPatch((place - 0.7, 0.3), 1.4, 0.9, **box))
        for wheel in (-0.4, 0.4):
            ax.add_patch(Circle((place + wheel, 0.14), 0.14, facecolor=BLACK))
        ax.text(place, 0.75, f"$m_{k} = {mass:.0f}$", ha="center", va="center", fontsize=12)
        end = PLACES[k + 1] - 0.75 if k < 2 else WALL
        middle = (place + 0.75 + end) / 2
        ax.plot([place + 0.75, end], [0.75, 0.75], color=GREY, linewidth=2, zorder=1)
        ax.add_patch(Circle((middle, 0.75), 0.3, facecolor=ORANGE, edgecolor=BLACK, zorder=2))
        ax.text(middle, 0.75, f"{ROTORS[k]:.0f}", ha="center", va="center", fontsize=11, zorder=3)
        ax.text(middle, 1.3, f"$T_{k}$", ha="center", color="#A06C00", fontsize=12)
        motors.append(middle)
    ax.set(xlim=(-1.6, WALL + 0.6), ylim=(bottom, top), aspect="equal")
    ax.set_axis_off()
    return figure, ax, motors


if __name__ == "__main__":
    save(draw_carts(height=1.6, bottom=-0.45, top=1.95)[0], "carts")
