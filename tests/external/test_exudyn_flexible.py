"""A two-link flexible arm against exudyn's floating frame of reference formulation: one motion, from other equations.

exudyn takes nodes, M, K and the mode basis, works in absolute coordinates with Euler parameters and holds the joints by
constraints. Modes are clamped at the hinge in both, so that the coordinates of modes are the same. Its trapezoidal rule
is of second order: two steps and Richardson's extrapolation leave 1e-6 of the motion. Weights are given node by node:
exudyn's load proportional to mass takes the mass centre of the undeformed body in its equation of rotation, which would
be 2 % of the modes here.
"""

import numpy as np
import pytest

import kfdyn as kf

exu = pytest.importorskip("exudyn", reason="exudyn is not installed (extra peers)")

GRAVITY = np.array([0.0, 0.0, -9.81])
TURN = np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])  # about y: the second link hangs at a right angle


def lattice(length, seed):
    """Nodes, mass and stiffness of a slender lattice of springs along x, held at the square around the origin."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0, length, 6)
    corners = 0.1 * np.array([[-1.0, -1], [-1, 1], [1, -1], [1, 1]])
    nodes = np.array([[a, b, c] for a in x for b, c in corners] + [[length, 0, 0]])
    N = len(nodes)
    K = np.zeros((3 * N, 3 * N))
    for i in range(N):
        for j in range(i):
            d = nodes[i] - nodes[j]
            if np.linalg.norm(d) < 0.36:
                e = np.outer(d, d) / (d @ d) * rng.uniform(5e3, 1e4)
                for a, b, s in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
                    K[3 * a : 3 * a + 3, 3 * b : 3 * b + 3] += s * e
    return nodes, np.kron(np.diag(rng.uniform(0.05, 0.1, N)), np.eye(3)), K


def links():
    axis = kf.Hinge.revolute([0, 1, 0])
    first, second = lattice(1.0, 0), lattice(0.8, 1)
    one = kf.from_finite_elements("one", *first, clamped=range(4), modes=3, hinge=axis)
    two = kf.from_finite_elements(
        "two", *second, clamped=range(4), modes=3, hinge=axis, parent="one", position=[1.0, 0, 0], rotation=TURN
    )
    return (first, one), (second, two)


def by_exudyn(end, steps, start):
    """Modes of both links and the tip (3,) at the end of the motion."""
    import exudyn.itemInterface as item
    from exudyn.FEM import FEMinterface, ObjectFFRFreducedOrderInterface
    from scipy.sparse import csr_matrix

    mbs = exu.SystemContainer().AddSystem()
    ground = mbs.AddMarker(item.MarkerBodyRigid(bodyNumber=mbs.AddObject(item.ObjectGround())))
    objects = []
    for (mesh, body), position, rotation, push in zip(
        links(), ([0.0, 0, 0], [1.0, 0, 0]), (np.eye(3), TURN), start, strict=True
    ):
        fem = FEMinterface()
        fem.nodes, fem.massMatrix, fem.stiffnessMatrix = {"Position": mesh[0]}, *map(csr_matrix, mesh[1:])
        fem.modeBasis = {"matrix": body.shapes.reshape(-1, body.n_modes), "type": "NormalModes"}
        made = ObjectFFRFreducedOrderInterface(fem).AddObjectFFRFreducedOrder(
            mbs, positionRef=position, rotationMatrixRef=rotation, **push
        )
        objects.append(made)
        for i, mass in enumerate(np.diag(mesh[1])[::3]):  # weight, node by node
            at = mbs.AddMarker(
                item.MarkerSuperElementPosition(
                    bodyNumber=made["oFFRFreducedOrder"], meshNodeNumbers=[i], weightingFactors=[1.0]
                )
            )
            mbs.AddLoad(item.LoadForceVector(markerNumber=at, loadVector=list(mass * GRAVITY)))
    frames = [mbs.AddMarker(item.MarkerNodeRigid(nodeNumber=made["nRigidBody"])) for made in objects]
    mbs.AddObject(item.GenericJoint(markerNumbers=[ground, frames[0]], constrainedAxes=[1, 1, 1, 1, 0, 1]))
    last = len(links()[0][0][0]) - 1
    tip = mbs.AddMarker(
        item.MarkerSuperElementPosition(
            bodyNumber=objects[0]["oFFRFreducedOrder"], meshNodeNumbers=[last], weightingFactors=[1.0]
        )
    )
    mbs.AddObject(item.SphericalJoint(markerNumbers=[tip, frames[1]]))
    # nodes of solids do not turn: the second link's hinge keeps the axes of the first one's frame
    mbs.AddObject(item.GenericJoint(markerNumbers=frames, constrainedAxes=[0, 0, 0, 1, 0, 1]))
    mbs.Assemble()
    settings = exu.SimulationSettings()
    settings.timeIntegration.numberOfSteps, settings.timeIntegration.endTime = steps, end
    settings.timeIntegration.generalizedAlpha.spectralRadius = 1.0
    settings.timeIntegration.newton.relativeTolerance = 1e-10
    settings.timeIntegration.newton.absoluteTolerance = 1e-12
    settings.timeIntegration.verboseMode = 0
    settings.solution.file.write = False
    mbs.SolveDynamic(settings)
    modes = [mbs.GetNodeOutput(made["nGenericODE2"], exu.OutputVariableType.Coordinates) for made in objects]
    far = mbs.GetObjectOutputSuperElement(
        objects[1]["oFFRFreducedOrder"], exu.OutputVariableType.Position, len(links()[1][0][0]) - 1
    )
    return np.concatenate([*modes, far])


def test_two_link_arm_moves_as_in_exudyn():
    (_, one), (_, two) = links()
    tip = {"tip": kf.Frame("two", position=[0.8, 0, 0])}
    system = kf.FlexibleSystem([one, two], GRAVITY, tip)
    # both links swing: the hinge of the second moves with the tip of the first, about the same axis
    spin, more, end = 3.0, -2.0, 0.25
    v = np.zeros(system.nv)
    v[system.v_slice("one")], v[system.v_slice("two")] = spin, more
    motion = kf.simulate(system, system.neutral(), v, [0.0, end], method="DOP853", rtol=1e-10, atol=1e-12)
    q = motion.q[-1]
    ours = np.concatenate(
        [q[system.mode_slice("one")], q[system.mode_slice("two")], kf.frame_pose(system, q, "tip").position]
    )
    start = (
        {"initialAngularVelocity": [0, spin, 0]},
        {"initialAngularVelocity": [0, spin + more, 0], "initialVelocity": list(np.cross([0, spin, 0], [1.0, 0, 0]))},
    )
    coarse, fine = (by_exudyn(end, steps, start) for steps in (1000, 2000))
    best = (4 * fine - coarse) / 3
    size = np.repeat([abs(best[:6]).max(), abs(best[6:]).max()], [6, 3])
    assert abs(best[:6]).max() > 1e-3  # it bends
    assert (abs(fine - best) / size).max() < 1e-3  # exudyn has converged
    np.testing.assert_allclose(ours / size, best / size, atol=5e-6)
