"""Mass-less-body partitioning: PART's lemmas, the univariate filter, and robots whose hinges are split."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from random_models import Case, cases, close, fast, few, random_case, random_matrix, seeds
from theory_cases import motion, pinocchio_accelerations, with_inputs

import kfdyn as kf
from kfdyn.dynamics import Partition, as_estimation, forward_dynamics, partition_hinges, succession
from kfdyn.errors import ModelError, ShapeError, SingularError
from kfdyn.estimation.dense import DenseModel, dense_filter, dense_model, dense_posterior


def uncoupled(case, groups):
    """The case without the blocks of R between groups; D stays well-conditioned, since R ⪯ (groups) pinched R."""
    ss = case.ss
    R = [r.copy() for r in ss.R]
    for k, own in enumerate(groups):
        for i, j in np.ndindex(R[k].shape):
            if not any(i in group and j in group for group in own):
                R[k][i, j] = 0.0
    phi = [None if p < 0 else f for p, f in zip(ss.tree.parent, ss.phi)]
    return Case(kf.StateSpace(ss.tree, phi, list(ss.H), list(ss.Q), R), case.T, case.xi, case.eta)


@st.composite
def splits(draw, most=3, **options):
    """A case, groups drawn at random for each node, and a random place for every mass-less body."""
    case = draw(cases(**options))
    groups = []
    for m in case.ss.m:
        order = draw(st.permutations(range(m)))
        cuts = sorted(draw(st.sets(st.integers(1, m - 1), max_size=most - 1))) if m > 1 else []
        groups.append([order[a:b] for a, b in pairwise([0, *cuts, m])] if m else [])
    rng = np.random.default_rng(draw(seeds))
    steps = {
        k: np.stack([random_matrix(rng, n, n) for _ in groups[k][1:]])
        for k, n in enumerate(case.ss.n.tolist())
        if len(groups[k]) > 1
    }
    case = uncoupled(case, groups)
    return case, partition_hinges(with_inputs(case), groups, transitions=steps)


class Pair(NamedTuple):
    """PART's letters for one hinge split in two: underlined are the whole's, by dense conditioning."""

    whole: dict
    body: dict  # k, its hinge k″
    inner: dict  # k′
    phi: np.ndarray  # φ(k′,k)
    H_C: np.ndarray
    order: list

    @classmethod
    def of(cls, case, part, dense, k):
        cov = kf.riccati(part.ss)
        i, j = int(part.body[k]), int(part.base[k])
        body, inner = ({name: getattr(cov, name)[at] for name in ("P", "P_plus", "D", "G")} for at in (i, j))
        order = [int(np.flatnonzero(row)[0]) for row in part.mix[k]]
        rows = np.eye(len(order))[order]
        whole = {"P": dense.P[k], "P_plus": dense.P_plus[k], "D": rows @ dense.D[k] @ rows.T, "G": dense.G[k] @ rows.T}
        for one, H in ((body, part.ss.H[i]), (inner, part.ss.H[j]), (whole, rows @ case.ss.H[k])):
            one["H"], one["tau"] = H, one["G"] @ H
            one["tau_bar"] = np.eye(len(one["tau"])) - one["tau"]
            one["D_inverse"] = np.linalg.inv(one["D"])
        phi = part.ss.phi[i]
        return cls(whole, body, inner, phi, inner["H"] @ phi, order)


pairs_of = splits(most=2)


def pairs(split):
    case, part = split
    dense = dense_filter(case.dense(), case.T)
    return [Pair.of(case, part, dense, k) for k in range(len(case.ss)) if part.base[k] == part.body[k] + 1]


@given(splits())
@fast
def test_conditions_of_equivalence(split):
    """PART:3,5 (Lemma 2.1). Factors of φ, rows of H, shares of η, no mass; the erratum's φ^-* H* line."""
    case, part = split
    ss, whole = part.ss, part.whole
    for k, p in enumerate(whole.tree.parent):
        carried, rows = np.eye(int(whole.n[k])), []
        for i in range(part.body[k], part.base[k] + 1):
            rows.append(ss.H[i] @ carried)
            moved = np.linalg.solve(carried.T, rows[-1].T)  # φ^-*(k′,k) H*: the whole's columns seen from k′
            close(moved, ss.H[i].T)
            if i > part.body[k]:
                assert not ss.Q[i].any()
                assert not ss.state_blocks(ss.xi)[i].any()
            if i < part.base[k] or p >= 0:
                carried = ss.phi[i] @ carried
        close(np.vstack(rows), part.mix[k] @ case.ss.H[k])
        if p >= 0:
            close(carried, whole.phi[k])
        np.testing.assert_array_equal(ss.Q[part.body[k]], whole.Q[k])
        close(ss.state_blocks(ss.xi)[part.body[k]], case.ss.state_blocks(case.xi)[k])
        # η of the whole is what the parts give between them, each carried outwards to the body
        carried, shares = np.eye(int(whole.n[k])), np.zeros(int(whole.n[k]))
        for i in range(part.body[k], part.base[k] + 1):
            shares = shares + carried.T @ ss.state_blocks(ss.eta)[i]
            carried = ss.phi[i] @ carried if i < part.base[k] else carried
        close(shares, case.ss.state_blocks(case.eta)[k])


@given(splits(), seeds)
@fast
def test_motion_is_the_same(split, seed):
    """PART:1, PART:3,5. V, α and f of the bodies by both sets of equations, with any shares of η that add up."""
    case, part = split
    rng = np.random.default_rng(seed)
    whole, parts = case.dense(), dense_model(part.ss)
    rate, accel = rng.normal(size=(2, case.ss.n_outputs))
    mixed = [part.split_outputs(u) for u in (rate, accel)]
    eta = parts.eta.copy()
    for k in range(len(case.ss)):
        for i in range(part.body[k], part.base[k]):  # move a random share of η one part outwards
            share = rng.normal(size=int(case.ss.n[k]))
            eta[parts.states[i + 1]] -= share
            eta[parts.states[i]] += part.ss.phi[i].T @ share
    motions = []
    for model, (beta, beta_dot), bias in ((whole, (rate, accel), case.eta), (parts, mixed, eta)):
        V = beta @ model.H @ model.phi
        alpha = (beta_dot @ model.H + bias) @ model.phi
        motions.append((V, alpha, (alpha @ model.Q + model.xi) @ model.phi.T, model.states))
    for mine, theirs in zip(motions[1][:3], motions[0][:3]):
        for k in range(len(case.ss)):
            close(mine[motions[1][3][part.body[k]]], theirs[motions[0][3][k]])


def recursion(model: DenseModel):
    """PART (7), and (8) when the model is split: P, D, G, τ̄, P⁺ in plain loops."""
    out = {}
    waiting = list(range(len(model.parent)))
    while waiting:
        k = next(k for k in waiting if not any(model.parent[j] == k for j in waiting))
        waiting.remove(k)
        x, T = model.states[k], model.outputs[k]
        P = model.Q[x, x].copy()
        for j, p in enumerate(model.parent):
            if p == k:
                step = model.E_phi[x, model.states[j]]
                P = P + step @ out[j]["P_plus"] @ step.T
        H = model.H[T, x]
        D = H @ P @ H.T + model.R[T, T]
        G = P @ H.T @ np.linalg.inv(D)
        out[k] = {"P": P, "D": D, "G": G, "P_plus": (np.eye(len(P)) - G @ H) @ P}
    return out


def one_by_one(seed, **options):
    """A case all of whose outputs become scalar ones."""
    case = random_case(seed, 5, **options)
    groups = [[[i] for i in range(m)] for m in case.ss.m]
    case = uncoupled(case, groups)
    return case, partition_hinges(with_inputs(case), groups)


@given(splits())
@example(one_by_one(3, m=1))  # one output a node, as in R86: scalar divisions, other formulas of the engine
@example(one_by_one(4, n=4, m=3))
@fast
def test_both_recursions(split):
    """PART:7, and (8) with P⁺ = τ̄(k)P(k): both, in plain loops, are the engine's, each on its own model."""
    for model in (split[0].ss, split[1].ss):
        cov = kf.riccati(model)
        for k, plain in recursion(dense_model(model)).items():
            for name, value in plain.items():
                close(getattr(cov, name)[k], value)


@given(pairs_of)
@fast
def test_D_from_the_parts(split):
    """PART:9. D̲ and D̲⁻¹ of Lemma 3.1, R included."""
    for p in pairs(split):
        H, P, H_C, m = p.body["H"], p.body["P"], p.H_C, len(p.body["D"])
        D = p.whole["D"]
        close(D[:m, :m], p.body["D"])
        close(D[:m, m:], H @ P @ H_C.T)
        close(D[m:, m:] - H_C @ P @ H_C.T, p.inner["D"] - H_C @ p.body["P_plus"] @ H_C.T)  # R of the part; 0 in PART
        reach = np.hstack([-H_C @ p.body["G"], np.eye(len(H_C))])
        D_inverse = reach.T @ p.inner["D_inverse"] @ reach
        D_inverse[:m, :m] += p.body["D_inverse"]
        close(D_inverse, p.whole["D_inverse"])


@given(pairs_of)
@fast
def test_gain_and_projections_from_the_parts(split):
    """PART:10, PART:11. G̲, τ̲ and τ̲̄ of Lemma 3.1."""
    for p in pairs(split):
        gain = p.body["P_plus"] @ p.H_C.T @ p.inner["D_inverse"]
        G, m = gain @ np.hstack([-p.H_C @ p.body["G"], np.eye(len(p.H_C))]), len(p.body["D"])
        G[:, :m] += p.body["G"]
        close(G, p.whole["G"])
        close(p.body["tau"] + gain @ p.H_C @ p.body["tau_bar"], p.whole["tau"])
        close(p.body["tau_bar"] - gain @ p.H_C @ p.body["tau_bar"], p.whole["tau_bar"])


@given(pairs_of)
@fast
def test_transported_from_the_parts(split):
    """PART:14, PART:15, PART:16 (Lemma 3.2), (16) with the factor H_C τ̄ of its proof."""
    for p in pairs(split):
        phi, body, inner, whole = p.phi, p.body, p.inner, p.whole
        close(phi @ whole["G"], np.hstack([inner["tau_bar"] @ phi @ body["G"], inner["G"]]))
        close(phi @ whole["tau"], phi @ body["tau"] + inner["tau"] @ phi @ body["tau_bar"])
        close(phi @ whole["tau_bar"], inner["tau_bar"] @ phi @ body["tau_bar"])
        seen = p.H_C @ body["tau_bar"]
        close(
            whole["H"].T @ whole["D_inverse"] @ whole["H"],
            body["H"].T @ body["D_inverse"] @ body["H"] + seen.T @ inner["D_inverse"] @ seen,
        )


@given(splits())
@fast
def test_articulated_inertias_agree(split):
    """PART:17, PART:18 (Lemma 3.3). P of every body is the whole's; P⁺ by (18), and carried to the innermost part."""
    case, part = split
    dense, cov = dense_filter(case.dense(), case.T), kf.riccati(part.ss)
    for k in range(len(case.ss)):
        close(cov.P[part.body[k]], dense.P[k])
        carried = np.eye(int(case.ss.n[k]))
        for i in range(part.body[k], part.base[k]):
            carried = part.ss.phi[i] @ carried
        close(cov.P_plus[part.base[k]], carried @ dense.P_plus[k] @ carried.T)  # (19) with τ̄*(k′)
    for p in pairs((case, part)):
        once = p.body["P_plus"]
        close(once - once @ p.H_C.T @ p.inner["D_inverse"] @ p.H_C @ once, p.whole["P_plus"])


@given(splits())
@fast
def test_merged(split):
    """PART:9, PART:10, PART:18 for any number of parts: the whole's P, P⁺, D, D⁻¹, G from those of the parts."""
    case, part = split
    merged, dense = part.merge(), dense_filter(case.dense(), case.T)
    for name in ("P", "P_plus", "D", "G"):
        for mine, theirs in zip(getattr(merged, name), getattr(dense, name), strict=True):
            close(mine, theirs)
    for mine, D in zip(merged.D_inverse, dense.D, strict=True):
        close(mine, np.linalg.inv(D))


@given(splits())
@fast
def test_compliances_agree(split):
    """PART:23, PART:24-25 (Lemma 4.1). The recursion over the parts in plain loops; Υ(k) is the whole's, Υ⁺ related."""
    case, part = split
    cov, dense = kf.riccati(part.ss), dense_posterior(case.dense(), case.T)
    states, plus = case.dense().states, {}
    for i in part.ss.tree.order[::-1]:
        p, n = int(part.ss.tree.parent[i]), int(part.ss.n[i])
        phi, H = part.ss.phi[i], part.ss.H[i]
        plus[i] = phi.T @ cov.smoothed.Lambda[p] @ phi if p >= 0 else np.zeros((n, n))
        tau_bar = np.eye(n) - cov.G[i] @ H
        close(tau_bar.T @ plus[i] @ tau_bar + H.T @ np.linalg.inv(cov.D[i]) @ H, cov.smoothed.Lambda[i])
    for k, p in enumerate(case.ss.tree.parent):
        close(cov.smoothed.Lambda[part.body[k]], dense.costate_cov[states[k], states[k]])
        carried = np.eye(int(case.ss.n[k]))
        for i in range(part.body[k], part.base[k]):
            carried = part.ss.phi[i] @ carried
        if p >= 0:
            above = case.ss.phi[k].T @ dense.costate_cov[states[p], states[p]] @ case.ss.phi[k]
            close(carried.T @ plus[part.base[k]] @ carried, above)


@given(cases(missing=False), st.sampled_from(["block", "decorrelate"]))
@fast
def test_any_R(case, correlated):
    """PART:17. A full or singular R kept together or decorrelated: every estimate and covariance is the dense one."""
    part = partition_hinges(with_inputs(case), correlated=correlated)
    filt = kf.kalman_filter(part.ss, part.split_outputs(case.T))
    smooth, dense = kf.bryson_frazier(part.ss, filt), dense_posterior(case.dense(), case.T)
    close(part.merge_outputs(smooth.a), dense.a)
    close(np.concatenate(part.merge_states(smooth.x)), dense.mean)
    close(np.concatenate(part.merge_states(smooth.costate)), dense.costate)
    close(filt.llf, dense.llf)  # det W = ±1
    for k, x in enumerate(case.dense().states):
        close(part.merge_states(smooth.S)[k], dense.cov[x, x])
    filtered = dense_filter(case.dense(), case.T)
    for name in ("P", "P_plus", "D", "G"):
        for mine, theirs in zip(getattr(part.merge(), name), getattr(filtered, name)):
            close(mine, theirs)
    if correlated == "decorrelate":
        assert part.ss.m.max() <= 1


@given(cases(missing=True))
@fast
def test_partition_is_the_univariate_filter(case):
    """PART:8 is method="univariate" is method="block": same innovations one by one, same pivots, same answers."""
    case = uncoupled(case, [[[i] for i in range(m)] for m in case.ss.m])
    ss = with_inputs(case)
    part = partition_hinges(ss)
    assert part.ss.m.max() <= 1  # scalar divisions only
    split = kf.kalman_filter(part.ss, part.split_outputs(case.T))
    smooth = kf.bryson_frazier(part.ss, split)
    for method in ("univariate", "block"):
        filt = kf.kalman_filter(ss, case.T, method=method)
        whole = kf.bryson_frazier(ss, filt)
        close(part.merge_outputs(smooth.a), whole.a)
        close(split.llf, filt.llf)
        for k in range(len(ss)):
            close(split.P[part.body[k]], filt.P[k])
            close(split.P_plus[part.base[k]], filt.P_plus[k])
            close(split.z_plus[part.base[k]], filt.z_plus[k])
            close(smooth.x[part.body[k]], whole.x[k])
            close(smooth.Lambda[part.body[k]], whole.Lambda[k])
            L = filt.covariances.D_factor[k]
            own = filt.eps[slice(*ss.arrays.output[k : k + 2])]
            for a, i in enumerate(range(part.body[k], part.base[k] + 1) if ss.m[k] else ()):
                if split.observed[part.ss.arrays.output[i]]:
                    close(split.D[i], [[L[a, a] ** 2]])
                    innovation = np.linalg.solve(L, own)[a] * L[a, a]
                    close(split.eps[part.ss.arrays.output[i]], innovation)


@given(splits(), seeds)
@fast
def test_outputs_there_and_back(split, seed):
    """T and a are paired: T*a is the same for the whole and its parts, for batches too."""
    case, part = split
    T, a = np.random.default_rng(seed).normal(size=(2, 2, 3, case.ss.n_outputs))
    close((part.split_outputs(T) * a).sum(-1), (T * part.merge_outputs(a)).sum(-1))


SEVERAL = ("universal", "gimbal", "ball", "planar", "free", "cylindrical", "revolute")


@given(seeds)
@few
def test_robots_with_split_hinges(seed):
    """PART:3,5, PART:17, PART:24-25 on robots with rotors: Pinocchio's accelerations by scalar divisions only."""
    system, q, v, tau, forces = motion(seed, hinges=SEVERAL)
    whole = as_estimation(system, q, v, external_forces=forces)
    part = partition_hinges(whole, succession(system))
    assert set(part.ss.m) == {1}
    smooth = kf.bryson_frazier(part.ss, kf.kalman_filter(part.ss, part.split_outputs(tau)))
    theirs = pinocchio_accelerations(system, q, v, tau, forces)
    scale = max(1.0, np.abs(theirs).max())
    close(part.merge_outputs(smooth.a) / scale, theirs / scale)
    cov, split = kf.riccati(whole), kf.riccati(part.ss)
    for k in range(system.n_bodies):
        close(split.P[part.body[k]], cov.P[k])
        close(split.smoothed.Lambda[part.body[k]], cov.smoothed.Lambda[k])


def with_real_mass_less_bodies(system):
    """Every succession of screws as so many bodies on one-dof hinges, all but the last without mass."""
    bodies = []
    for body in system.bodies:
        above = body.parent
        for i, screw in enumerate(body.hinge.screws):
            last = i == body.hinge.nv - 1
            name = body.name if last else f"{body.name}/{i}"
            place = {} if i else {"rotation": body.rotation, "position": body.position}
            bodies.append(
                kf.Body(
                    name,
                    body.inertia if last else np.zeros((6, 6)),
                    kf.Hinge.succession([screw]),
                    above,
                    armature=body.armature[i],
                    **place,
                )
            )
            above = name
    return kf.System(bodies, gravity=system.gravity)


@given(seeds)
@few
def test_partition_is_a_robot_with_mass_less_bodies(seed):
    """PART:3,5, PART (8). Split in the model or in the robot itself, placed alike: φ, H, P, D, G agree node by node."""
    system, q, v, tau, _ = motion(seed, hinges=("universal", "gimbal", "planar", "cylindrical", "helical"))
    fine = with_real_mass_less_bodies(system)
    close(forward_dynamics(fine, q, v, tau), forward_dynamics(system, q, v, tau))
    whole, real = as_estimation(system, q, v), as_estimation(fine, q, v)
    # their bodies run inwards to outwards within a hinge, ours outwards to inwards
    last = np.cumsum(np.diff(system.layout.v_start)) - 1
    first = system.layout.v_start[:-1]
    steps = {
        k: np.stack([real.phi[i] for i in range(last[k], first[k], -1)])
        for k in range(system.n_bodies)
        if last[k] > first[k]
    }
    part = partition_hinges(whole, succession(system), transitions=steps)
    mine, theirs = kf.riccati(part.ss), kf.riccati(real)
    for k in range(system.n_bodies):
        for i, j in zip(range(part.body[k], part.base[k] + 1), range(last[k], first[k] - 1, -1), strict=True):
            close(part.ss.H[i], real.H[j])
            close(part.ss.phi[i], real.phi[j])
            for name in ("P", "D", "G", "P_plus"):
                close(getattr(mine, name)[i], getattr(theirs, name)[j])
            close(mine.smoothed.Lambda[i], theirs.smoothed.Lambda[j])


def test_partition_reports():
    case = random_case(4, 5, n=4, m=3)
    part = partition_hinges(with_inputs(case), correlated="decorrelate")
    assert isinstance(part, Partition)
    assert len(part.ss) == 15
    np.testing.assert_array_equal(part.owner, np.repeat(range(5), 3))
    assert part.ss.tree.names[3:6] == ("1", "1'", "1''")
    batch = np.random.default_rng(0).normal(size=(2, case.ss.n_states))
    phi = [None if p < 0 else f for p, f in zip(case.ss.tree.parent, case.ss.phi)]
    many = kf.StateSpace(case.ss.tree, phi, list(case.ss.H), list(case.ss.Q), list(case.ss.R), batch, 2 * batch)
    split = partition_hinges(many, correlated="decorrelate")
    a = kf.bryson_frazier(split.ss, kf.kalman_filter(split.ss, split.split_outputs(case.T))).a
    close(split.merge_outputs(a), kf.bryson_frazier(many, kf.kalman_filter(many, case.T)).a)


def test_missing_parts():
    """NaN follows its output through a permutation; in a mix only a whole node may be missing."""
    case = random_case(8, 3, n=3, m=2, noise=True)
    T = case.T.copy()
    T[0] = np.nan
    mixed = partition_hinges(case.ss, correlated="decorrelate")
    with pytest.raises(ModelError, match=r"node 0 has a part of its outputs missing"):
        mixed.split_outputs(T)
    T[1] = np.nan
    assert np.isnan(mixed.split_outputs(T)).tolist() == [True, True, False, False, False, False]
    plain = partition_hinges(uncoupled(case, [[[0], [1]]] * 3).ss, [[[1], [0]]] * 3)
    T[1] = 5.0
    np.testing.assert_array_equal(np.isnan(plain.split_outputs(T)), [False, True, False, False, False, False])


def test_errors_name_the_culprit():
    case = random_case(6, 2, n=3, m=2, noise=True)
    ss = case.ss
    with pytest.raises(ModelError, match=r"node 0: R couples its outputs 0 and 1.*decorrelate"):
        partition_hinges(ss)
    with pytest.raises(ModelError, match=r"groups of node 1 are .*outputs 0 to 1, each once"):
        partition_hinges(ss, [[[0, 1]], [[0], [0]]])
    with pytest.raises(ShapeError, match="groups has 1 entries, but there are 2 nodes"):
        partition_hinges(ss, [[[0, 1]]])
    with pytest.raises(ModelError, match="correlated must be"):
        partition_hinges(ss, correlated="ignore")
    with pytest.raises(ShapeError, match=r"transitions of node 0 have shape \(3, 3\)"):
        partition_hinges(ss, correlated="decorrelate", transitions={0: np.eye(3)})
    with pytest.raises(ModelError, match="transitions of node 0 must be finite and invertible"):
        partition_hinges(ss, correlated="decorrelate", transitions={0: np.zeros((1, 3, 3))})
    with pytest.raises(ModelError, match="transitions names node 7"):
        partition_hinges(ss, correlated="decorrelate", transitions={7: np.eye(3)})
    part = partition_hinges(ss, correlated="decorrelate")
    with pytest.raises(ModelError, match="merge needs the Riccati solution of the split model"):
        part.merge(kf.riccati(ss))
    arm = kf.System([kf.Body("arm", np.diag([0.0, 1.0, 1.0, 1.0, 1.0, 1.0]), kf.Hinge.ball(), hinge_name="wrist")])
    split = partition_hinges(as_estimation(arm, arm.neutral()), succession(arm))
    with pytest.raises(SingularError, match=r"wrist''"):
        kf.riccati(split.ss)
