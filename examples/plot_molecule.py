r"""
A molecule's mass matrix bends its statistics
=============================================

Freeze the bonds and bond angles of a molecule and leave its torsions free: bond-angle-torsion coordinates, and a robot
whose links are atoms. Its thermal motion is *not* that of the stiff molecule it stands for. At temperature T the
velocities have the covariance :math:`kT\,\mathcal M^{-1}(q)`, and integrating them out leaves the torsions
with the density

.. math::

   p(q) \propto e^{-U(q)/kT} \sqrt{\det \mathcal M(q)},

although nothing but U should matter. Fixman's potential :math:`\tfrac12 kT \log\det\mathcal M` takes the factor
away. Its torque needs the gradient of a determinant, which the smoother has computed already, in O(N):
:func:`kfdyn.mass_matrix_logdet_gradient`. In the words of estimation, log det 𝓜 is the sum of the logarithms of the
innovation variances.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import chi2

import kfdyn as kf
from kfdyn.spatial import spatial_inertia
from kfdyn.viz import COLORS, STYLE

plt.style.use(STYLE)

# %%
# Pentane without its hydrogens
# -----------------------------
#
# Five equal atoms, unit bonds, tetrahedral angles. The first three atoms are one rigid body that flies freely; each
# further atom turns about the bond before it.

bend = np.arccos(-1 / 3)


def points(atoms):
    """Spatial inertia of unit masses at these places."""
    atoms = np.atleast_2d(atoms)
    centre = atoms.mean(axis=0)
    arms = atoms - centre
    J = sum(a @ a * np.eye(3) - np.outer(a, a) for a in arms)
    return spatial_inertia(float(len(atoms)), centre, J)


out = np.array([-np.cos(bend), np.sin(bend), 0.0])  # where a bond points, seen from the bond before, along x
first = [np.zeros(3), out * [-1, 1, 1], np.array([1.0, 0, 0])]  # atoms 2, 1 and 3, atom 2 at the origin
turn = np.array([[out[0], -out[1], 0], [out[1], out[0], 0], [0, 0, 1.0]])
molecule = kf.System(
    [
        kf.Body("atoms 1-3", points(first), kf.Hinge.free()),
        kf.Body("atom 4", points(out), kf.Hinge.revolute([1, 0, 0]), "atoms 1-3", position=[1.0, 0, 0]),
        kf.Body("atom 5", points(out), kf.Hinge.revolute([1, 0, 0]), "atom 4", rotation=turn, position=out),
    ],
    gravity=(0, 0, 0),
)


def torsions(q):
    return np.mod(q[..., 7:] + np.pi, 2 * np.pi) - np.pi


# %%
# Constant temperature
# --------------------
#
# Four thousand molecules fly for a while, then all their velocities are drawn anew from
# :math:`N(0, kT\mathcal M^{-1})`, and so on. Once without and once with Fixman's torque.

kT, dt, legs, steps, copies = 1.0, 0.1, 9, 15, 4000


def thermal(q, rng):
    """Velocities with covariance kT 𝓜⁻¹, for a batch."""
    root = np.linalg.cholesky(kf.mass_matrix(molecule, q))
    white = rng.standard_normal((*q.shape[:-1], molecule.nv, 1))
    return np.sqrt(kT) * np.linalg.solve(np.swapaxes(root, -1, -2), white)[..., 0]


def sample(fixman, seed):
    """Torsions after each leg of flight, and how well the energy was kept."""
    rng = np.random.default_rng(seed)
    q = np.tile(molecule.neutral(), (copies, 1))
    q[:, 7:] = rng.uniform(-np.pi, np.pi, (copies, 2))

    def free(q, v):
        return kf.forward_dynamics(molecule, q, v, np.zeros_like(v))

    def push(q):
        """Accelerations by Fixman's torque."""
        if not fixman:
            return np.zeros((copies, molecule.nv))
        tau = -0.5 * kT * kf.mass_matrix_logdet_gradient(molecule, q)
        return kf.forward_dynamics(molecule, q, np.zeros_like(tau), tau)

    def fly(q, v, t):
        """Free motion for a time t, by Runge and Kutta's rule."""
        a1 = free(q, v)
        v2 = v + t / 2 * a1
        a2 = free(kf.integrate(molecule, q, t / 2 * v), v2)
        v3 = v + t / 2 * a2
        a3 = free(kf.integrate(molecule, q, t / 2 * v2), v3)
        v4 = v + t * a3
        a4 = free(kf.integrate(molecule, q, t * v3), v4)
        return kf.integrate(molecule, q, t / 6 * (v + 2 * v2 + 2 * v3 + v4)), v + t / 6 * (a1 + 2 * a2 + 2 * a3 + a4)

    def energy(q, v):
        return kf.kinetic_energy(molecule, q, v) + fixman * 0.5 * kT * kf.mass_matrix_logdet(molecule, q)

    seen, drift = [], 0.0
    for leg in range(legs):
        v = thermal(q, rng)
        before, kick = energy(q, v), push(q)
        for _ in range(steps):  # half a kick, flight, half a kick
            v = v + 0.5 * dt * kick
            for _ in range(4):
                q, v = fly(q, v, dt / 4)
            kick = push(q)
            v = v + 0.5 * dt * kick
        drift = max(drift, float(np.sqrt(np.mean((energy(q, v) - before) ** 2))))
        if leg in (4, 6, 8):  # far enough apart to be independent
            seen.append(torsions(q))
    return np.array(seen), drift


edges = np.linspace(-np.pi, np.pi, 25)
middles = 0.5 * (edges[1:] + edges[:-1])
grid = np.linspace(-np.pi, np.pi, 96, endpoint=False)
mesh = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1)
poses = np.concatenate([np.broadcast_to(molecule.neutral()[:7], (96, 96, 7)), mesh], axis=-1)
weight = np.exp(0.5 * kf.mass_matrix_logdet(molecule, poses))
density = weight.mean(axis=1) / weight.mean()  # of the first torsion, relative to uniform


def against(values, expected):
    """χ² of a histogram of the first torsion, over its degrees of freedom, and its tail probability."""
    counts = np.histogram(values[..., 0], edges)[0]
    wanted = expected / expected.sum() * counts.sum()
    statistic = float(((counts - wanted) ** 2 / wanted).sum())
    return statistic / (len(counts) - 1), float(chi2.sf(statistic, len(counts) - 1))


uniform = np.ones(len(middles))
biased = np.interp(middles, [*grid, np.pi], [*density, density[0]])
results = {}
for name, fixman in (("without", False), ("with", True)):
    values, drift = sample(fixman, seed=1)
    results[name] = np.histogram(values[..., 0], edges)[0] / values[..., 0].size * len(middles), values[..., 0].size
    scores = against(values, uniform), against(values, biased)
    print(f"{name:8} Fixman: χ²/dof against uniform {scores[0][0]:5.1f}, against √det {scores[1][0]:5.1f}")
    print(f"         energy kept to {drift:.3f} kT in a flight")
    assert drift < 0.1
    wrong, right = (scores[0], scores[1]) if name == "without" else (scores[1], scores[0])
    assert wrong[1] < 1e-8 and right[1] > 1e-3

# %%
# Without it, molecules are found where their mass matrix is large; with it, everywhere alike.

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.0), width_ratios=(1, 1.35))
picture = left.imshow(
    (weight / weight.mean()).T, origin="lower", extent=(-180, 180, -180, 180), cmap="viridis", aspect="equal"
)
left.set(xlabel="first torsion [°]", ylabel="second torsion [°]")
left.set_title(r"$\sqrt{\det\mathcal{M}}$, relative to its mean")
left.set_xticks([-180, -90, 0, 90, 180])
left.set_yticks([-180, -90, 0, 90, 180])
figure.colorbar(picture, ax=left, shrink=0.85)
for name, color in (("without", "orange"), ("with", "blue")):
    height, count = results[name]
    error = np.sqrt(height / count * len(middles))
    label = f"sampled {name} Fixman's torque"
    right.errorbar(np.degrees(middles), height, 2 * error, fmt="o", color=COLORS[color], markersize=4, label=label)
right.plot(np.degrees(grid), density, color=COLORS["orange"], linewidth=1, label=r"$\sqrt{\det\mathcal{M}}$")
right.axhline(1, color=COLORS["blue"], linewidth=1, label="uniform")
right.set(xlabel="first torsion [°]", ylabel="density, relative to uniform")
right.set_title("what the constraint does to statistics")
right.set_xticks([-180, -90, 0, 90, 180])
right.set_ylim(0.65, 1.6)
right.legend(loc="upper center", ncols=2)

plt.show()
