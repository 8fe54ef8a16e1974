r"""
The inverse in symbols
======================

Rodriguez ended his report with a wish: "a symbolic manipulation program could be set up" to evaluate the inverse of
the inertia matrix element by element, as others had done for the matrix itself. :mod:`kfdyn.symbolic` is that program.
It runs the filter and the smoother on symbols; no matrix larger than a hinge is ever inverted.

The elements can be read twice. In mechanics :math:`\mathcal M^{-1}_{ij}` is the acceleration of joint i that a unit
torque at joint j causes; in estimation it is the covariance of two joint accelerations when the forces between the
bodies are drawn at random.
"""

import matplotlib.pyplot as plt
import numpy as np
import sympy

import kfdyn as kf
from kfdyn import symbolic
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

# %%
# Two links
# ---------
#
# Letters are made of the constants: J about the hinge, m, c = m p, and l for the length of the upper arm.

arm = kf.models.double_pendulum()
formula = symbolic.mass_matrix_inverse(arm, parameters=True)
c = sympy.Symbol("c")
bend = sympy.cos(sympy.Symbol("q1"))


def tidy(expression):
    """In the cosine of the elbow alone, over one denominator."""
    elbow = sympy.Symbol("q1")
    return sympy.cancel(sympy.together(expression.subs(sympy.sin(elbow) ** 2, 1 - bend**2).subs(bend, c)))


inverse = formula.expand().applyfunc(tidy)
denominator = sympy.fraction(inverse[0, 0])[1]
for i, j in ((0, 0), (0, 1), (1, 1)):
    print(f"inverse[{i}, {j}] = {sympy.factor(inverse[i, j])}")

# %%
# Both variances and the covariance have one denominator, det 𝓜, which the filter has as the product of its innovation
# variances, one for each hinge: D(elbow) is constant, and D(shoulder) is what a free elbow leaves of the arm's inertia.

D = [symbolic.filter_quantity(arm, "D", hinge, parameters=True).expand()[0] for hinge in ("shoulder", "elbow")]
determinant = sympy.expand(tidy(D[0] * D[1]))
assert sympy.expand(determinant - tidy(symbolic.mass_matrix(arm, parameters=True).expand().det())) == 0
assert sympy.expand(determinant + denominator) == 0
print("det =", determinant)

# %%
# The covariance that the formula says, by sampling
# -------------------------------------------------
#
# Bend the elbow slowly. The lines are the formula; the dots are sample covariances of the accelerations, from random
# forces between the bodies run through the filter and the smoother.

values = dict(zip(formula.inputs.parameters, formula.inputs.parameters.values()))
lines = sympy.lambdify(sympy.Symbol("c"), inverse.subs({sympy.Symbol(k): v for k, v in values.items()}))
elbow = np.linspace(-np.pi, np.pi, 181)
curve = np.array([lines(np.cos(x)) for x in elbow])
assert np.abs(curve - kf.mass_matrix_inverse(arm, np.stack([0 * elbow, elbow], axis=-1))).max() < 1e-12

rng = np.random.default_rng(0)
spots, n = np.linspace(-np.pi, np.pi, 13), 20_000
sampled = np.empty((len(spots), 2, 2))
for at, x in enumerate(spots):
    ss = kf.as_estimation(arm, [0.0, x], gravity=np.zeros(3))
    accelerations = kf.bryson_frazier(ss, kf.kalman_filter(ss, kf.draw(ss, rng, n).T), covariances=False).a
    sampled[at] = np.cov(accelerations.T)
    exact = lines(np.cos(x))
    spread = np.sqrt((np.outer(np.diag(exact), np.diag(exact)) + np.asarray(exact) ** 2) / n)
    assert (np.abs(sampled[at] - exact) < 5 * spread).all()

# %%
# A six-axis arm cannot be read any more, but it can be counted and exported
# ---------------------------------------------------------------------------
#
# With the arm's constants evaluated once, its zeros and ones folded and common subexpressions named, the inverse of the
# PUMA 560 is some 1,250 operations. A single element costs more than half of that: it needs every articulated inertia.

names = {"PUMA 560": kf.models.puma560(), "Stanford arm": kf.models.stanford_arm()}
kinds = {
    "mass matrix": symbolic.mass_matrix,
    "its inverse": symbolic.mass_matrix_inverse,
    "one element": lambda robot: symbolic.inverse_element(robot, 0, 5),
    "forward dynamics": symbolic.forward_dynamics,
}
operations = {robot: [sum(kind(system).counts) for kind in kinds.values()] for robot, system in names.items()}
assert operations["PUMA 560"][1] < 1600
source = symbolic.export(symbolic.mass_matrix_inverse(names["PUMA 560"]), "c")
print("\n".join(source.splitlines()[:12]))

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.1), width_ratios=(1.35, 1))
for (i, j), color, label in (
    ((1, 1), "blue", "elbow"),
    ((0, 0), "orange", "shoulder"),
    ((0, 1), "green", "covariance"),
):
    left.plot(
        np.degrees(elbow), curve[:, i, j], color=COLORS[color], label=f"{label}, $\\mathcal{{M}}^{{-1}}_{{{i}{j}}}$"
    )
    left.plot(np.degrees(spots), sampled[:, i, j], "o", color=COLORS[color], markersize=4)
left.set(
    xlabel="elbow [°]",
    ylabel="(co)variance of accelerations [1/(kg m²)]",
    title="the formula, and 20,000 draws at each dot",
)
left.set_xticks([-180, -90, 0, 90, 180])
left.legend(loc="upper left")
place = np.arange(len(kinds))
for shift, (robot, color) in zip((-0.2, 0.2), zip(names, ("blue", "orange"))):
    bars = right.bar(place + shift, operations[robot], 0.38, color=COLORS[color], label=robot)
    right.bar_label(bars, fontsize=8)
right.set_xticks(place, [name.replace(" ", "\n") for name in kinds])
right.set(ylabel="operations, sines included", title="two six-axis arms")
right.set_ylim(0, 2000)
right.legend(loc="upper left")

plt.show()
