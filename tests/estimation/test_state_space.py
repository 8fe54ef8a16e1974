"""StateSpace: what it accepts, what it refuses and how it says so; immutability, copies, the edges of a chain."""

import pickle
import sys

import numpy as np
import pytest
from hypothesis import given
from random_models import cases, close, fast, few, random_case, random_covariance

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError, TreeError
from kfdyn.estimation.dense import DenseModel, dense_posterior

I2, ONE = np.eye(2), np.ones((1, 1))


def lists(ss):
    """The constructor's arguments as plain lists."""
    phi = [b.tolist() if p >= 0 else None for p, b in zip(ss.tree.parent, ss.phi)]
    # an empty block as a list would lose its width
    H = [b if not b.size else b.tolist() for b in ss.H]
    R = [b if not b.size else b.tolist() for b in ss.R]
    return ss.tree.parent.tolist(), phi, H, [b.tolist() for b in ss.Q], R


@given(cases())
@fast
def test_lists_tuples_and_generators(case):
    """SKO:model. Ragged blocks in any sequence build the same model; None or anything at a root."""
    ss = case.ss
    parent, phi, H, Q, R = lists(ss)
    for other in (
        kf.StateSpace(parent, phi, H, Q, R),
        kf.StateSpace(tuple(parent), tuple(phi), tuple(H), tuple(Q), tuple(R)),
        kf.StateSpace(ss.tree, iter(phi), iter(H), iter(Q), iter(R)),
        kf.StateSpace(np.array(parent), [np.full((2, 7), np.nan) if b is None else b for b in phi], ss.H, ss.Q, ss.R),
    ):
        assert other.tree == ss.tree
        for name in ("phi", "H", "Q", "R"):
            np.testing.assert_array_equal(getattr(other, name).flat, getattr(ss, name).flat)
        np.testing.assert_array_equal(other.n, ss.n)
        np.testing.assert_array_equal(other.m, ss.m)


def test_stacked_arrays_of_any_layout():
    case = random_case(0, 7, n=3, m=2)
    ss = case.ss
    phi = np.zeros((7, 3, 3))
    for k, p in enumerate(ss.tree.parent):
        phi[k] = ss.phi[k] if p >= 0 else np.nan  # a root's slice is ignored
    stacks = [phi, *(blocks.stacked().copy() for blocks in (ss.H, ss.Q, ss.R))]
    frozen = [a.copy() for a in stacks]
    for array in frozen:
        array.flags.writeable = False
    for arrays in (
        stacks,
        frozen,
        [np.asfortranarray(a) for a in stacks],
        [np.repeat(a, 2, axis=0)[::2] for a in stacks],
        [a.astype(">f8") for a in stacks],
    ):
        other = kf.StateSpace(ss.tree, *arrays)
        for name in ("phi", "H", "Q", "R"):
            np.testing.assert_array_equal(getattr(other, name).flat, getattr(ss, name).flat)
    single = kf.StateSpace(ss.tree, *(a.astype(np.float32) for a in stacks))
    assert single.Q.flat.dtype == np.float64
    np.testing.assert_allclose(single.Q.flat, ss.Q.flat, atol=1e-6)


def test_sizes_and_views():
    case = random_case(1, 6)
    ss = case.ss
    assert len(ss) == 6
    assert ss.n_states == ss.n.sum()
    assert ss.n_outputs == ss.m.sum()
    for k, p in enumerate(ss.tree.parent):
        assert ss.phi[k].shape == ((ss.n[p] if p >= 0 else 0), ss.n[k])
        assert ss.H[k].shape == (ss.m[k], ss.n[k])
    blocks = ss.state_blocks(case.xi)
    np.testing.assert_array_equal(np.concatenate(list(blocks)), case.xi)
    np.testing.assert_array_equal(np.concatenate(list(ss.output_blocks(case.T))), case.T)


def test_R_defaults_to_zero():
    ss = kf.StateSpace([1, -1], [I2, None], [I2, I2[:1]], [I2, I2])
    assert not ss.R.flat.any()
    assert [r.shape for r in ss.R] == [(2, 2), (1, 1)]


def test_empty_states_and_no_nodes():
    """A node without states, and a model without nodes, are dull but legal."""
    ss = kf.StateSpace([1, -1], [np.zeros((1, 0)), None], [np.zeros((0, 0)), ONE], [np.zeros((0, 0)), ONE])
    filt = kf.kalman_filter(ss, [2.0])
    assert filt.z[0].shape == (0,)
    np.testing.assert_array_equal(kf.bryson_frazier(ss, filt).x[1], [2.0])
    nothing = kf.StateSpace([], [], [], [])
    assert kf.kalman_filter(nothing, np.zeros(0)).llf == 0.0
    assert kf.innovations_factor(nothing).logdet() == 0.0


# --- immutability


@given(cases())
@few
def test_immutable(case):
    ss = case.ss
    for name in ("tree", "phi", "H", "Q", "R", "n", "m", "xi", "eta", "arrays", "anything"):
        with pytest.raises(AttributeError, match=rf"immutable; build another to change '{name}'"):
            setattr(ss, name, None)
    for array in (ss.phi.flat, ss.H.flat, ss.Q.flat, ss.R.flat, ss.n, ss.m):
        assert not array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        ss.Q[0][0, 0] = 1.0


def test_the_caller_keeps_his_arrays():
    """Nothing the caller does to his arrays later reaches the model, and the model leaves them as they were."""
    case = random_case(2, 5, n=2, m=1)
    phi = np.stack([b if b.size else I2 for b in case.ss.phi])
    H, Q, R = (getattr(case.ss, name).stacked().copy() for name in ("H", "Q", "R"))
    Q[0, 0, 1] += 1e-15  # asymmetric by rounding, to be symmetrised in the copy only
    xi, eta = case.xi.copy(), case.eta.copy()
    given_arrays = [phi, H, Q, R, xi, eta]
    before = [a.copy() for a in given_arrays]
    ss = kf.StateSpace(case.ss.tree, phi, H, Q, R, xi=xi, eta=eta)
    for after, was in zip(given_arrays, before):
        np.testing.assert_array_equal(after, was)
        assert after.flags.writeable
    expected = kf.kalman_filter(ss, case.T).llf
    for array in given_arrays:
        array[...] = 7.0
    again = kf.StateSpace(ss.tree, [b if b.size else None for b in ss.phi], ss.H, ss.Q, ss.R, xi=ss.xi, eta=ss.eta)
    assert kf.kalman_filter(again, case.T).llf == expected
    for own in (ss.xi, ss.eta):
        with pytest.raises(ValueError, match="read-only"):
            own[0] = 1.0


@given(cases())
@few
def test_pickle(case):
    ss = case.ss
    phi = [b if p >= 0 else None for p, b in zip(ss.tree.parent, ss.phi)]
    names = [f"body {k}" for k in range(len(ss))]
    ss = kf.StateSpace(ss.tree, phi, ss.H, ss.Q, ss.R, xi=case.xi, eta=case.eta, names=names)
    copy = pickle.loads(pickle.dumps(ss))
    assert copy.tree == ss.tree
    assert copy.tree.names == tuple(names)
    for name in ("phi", "H", "Q", "R"):
        np.testing.assert_array_equal(getattr(copy, name).flat, getattr(ss, name).flat)
    assert kf.kalman_filter(copy, case.T).llf == kf.kalman_filter(ss, case.T).llf
    assert not copy.Q.flat.flags.writeable


def test_repr():
    ss = kf.StateSpace([1, -1], [I2, None], [I2[:0], I2[:1]], [I2, I2])
    assert repr(ss) == "StateSpace(2 nodes, states 4 (2 each), outputs 1 (0 to 1 each), R = 0)"
    noisy = kf.StateSpace([-1], [None], [ONE], [ONE], [ONE])
    assert repr(noisy) == "StateSpace(1 nodes, states 1 (1 each), outputs 1 (1 each), R > 0 somewhere)"


# --- refusals


def build(**change):
    good = {
        "parent": [2, 2, -1],
        "phi": [I2, I2, None],
        "H": [I2, I2[:1], I2[:0]],
        "Q": [I2, I2, I2],
        "R": [I2, ONE, np.zeros((0, 0))],
        "names": ["left", "right", "root"],
    }
    return kf.StateSpace(**(good | change))


BAD = np.array([[1.0, 2.0], [2.0, 1.0]])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"parent": [2, 2]}, TreeError, r"3 names were given for 2 nodes"),
        ({"parent": [1, 0, -1]}, TreeError, r"loop: node 0 \('left'\) -> node 1 \('right'\)"),
        ({"Q": [I2, I2]}, ShapeError, r"Q has 2 blocks, but there are 3 nodes; give one block for each node"),
        ({"Q": [I2, I2[:1], I2]}, ShapeError, r"Q of node 1 \('right'\) has shape \(1, 2\) but must be square"),
        ({"H": [I2, ONE, I2[:0]]}, ShapeError, r"H of node 1 \('right'\) .* one column for each state .* \(1, 2\)"),
        (
            {"R": [I2, I2, np.zeros((0, 0))]},
            ShapeError,
            r"R of node 1 \('right'\) .* one row for each output .* \(1, 1\)",
        ),
        ({"phi": [I2, ONE, None]}, ShapeError, r"phi of node 1 \('right'\) .* map its node's state to its parent's"),
        ({"phi": [I2, None, None]}, ShapeError, r"phi of node 1 \('right'\) .*None is for roots"),
        ({"phi": 3.0}, ShapeError, r"phi must be a sequence of 3 matrices or an array \(N, rows, columns\)"),
        ({"Q": np.ones((3, 2))}, ShapeError, r"Q as one array must have shape \(N, rows, columns\) with N = 3"),
        ({"Q": np.ones((2, 2, 2))}, ShapeError, r"Q as one array must have shape .* N = 3, got \(2, 2, 2\)"),
        ({"H": [I2, [1.0, 2.0], I2[:0]]}, ShapeError, r"H of node 1 \('right'\) must be a matrix, got shape \(2,\)"),
        ({"H": [I2, [["a", 2.0]], I2[:0]]}, ShapeError, r"H of node 1 \('right'\) is not a matrix of numbers"),
        ({"H": [I2, [[1.0, 2.0], [3.0]], I2[:0]]}, ShapeError, r"H of node 1 \('right'\) is not a matrix of numbers"),
        ({"phi": [I2, I2 * np.nan, None]}, ModelError, r"phi of node 1 \('right'\) has an entry that is nan"),
        ({"H": [I2, [[np.inf, 0.0]], I2[:0]]}, ModelError, r"H of node 1 \('right'\) has an entry that is inf"),
        ({"Q": [I2, [[np.inf, 0.0], [0.0, 1.0]], I2]}, ModelError, r"Q of node 1 \('right'\) has an entry that is inf"),
        (
            {"R": [I2, -np.inf * ONE, np.zeros((0, 0))]},
            ModelError,
            r"R of node 1 \('right'\) has an entry that is -inf",
        ),
        (
            {"Q": [I2, [[1.0, 0.1], [0.0, 1.0]], I2]},
            ModelError,
            r"Q of node 1 \('right'\) is not symmetric .*differ by 0.1",
        ),
        (
            {"Q": [I2, BAD, I2]},
            ModelError,
            r"Q of node 1 \('right'\) is not positive semi-definite \(lowest eigenvalue -1\)",
        ),
        ({"Q": [I2, [[0, 1], [1, 0]], I2]}, ModelError, r"Q of node 1 \('right'\) is not positive semi-definite"),
        ({"Q": [I2, [[1, 1], [1, 0]], I2]}, ModelError, r"Q of node 1 \('right'\) is not positive semi-definite"),
        ({"R": [BAD, ONE, np.zeros((0, 0))]}, ModelError, r"R of node 0 \('left'\) is not positive semi-definite"),
        ({"R": [I2, -ONE, np.zeros((0, 0))]}, ModelError, r"R of node 1 \('right'\) .*lowest eigenvalue -1"),
        ({"xi": np.zeros(5)}, ShapeError, r"xi has shape \(5,\), but its last axis must stack the 6 states"),
        ({"eta": [0, 0, 0, np.nan, 0, 0]}, ModelError, r"eta\[3\] \(node 1 \('right'\)\) is nan"),
    ],
)
def test_refusals_name_the_node(change, error, message):
    assert len(build()) == 3
    with pytest.raises(error, match=message):
        build(**change)


@pytest.mark.parametrize("name", ["phi", "H", "Q", "R"])
@pytest.mark.parametrize("stacked", [True, False])
def test_complex_blocks_are_refused(name, stacked):
    """Dropping an imaginary part would be a wrong number."""
    blocks = {key: np.ones((2, 1, 1)) for key in ("phi", "H", "Q", "R")}
    blocks[name] = blocks[name] * (1 + 1j)
    if not stacked:
        blocks = {key: list(value) for key, value in blocks.items()}
    with pytest.raises(ShapeError, match=rf"{name} .*complex"):
        kf.StateSpace([1, -1], **blocks)


def test_semidefinite_to_rounding_is_accepted():
    """A computed G Q G* of rank one has eigenvalues of −1e-17, and one in small units is no worse."""
    rng = np.random.default_rng(0)
    for scale in (1.0, 1e-9, 1e9):
        for _ in range(50):
            g = rng.normal(size=(4, 1)) * scale
            ss = kf.StateSpace([-1], [None], [np.zeros((0, 4))], [g @ g.T])
            np.testing.assert_array_equal(ss.Q[0], ss.Q[0].T)
    with pytest.raises(ModelError, match="not positive semi-definite"):
        kf.StateSpace([-1], [None], [np.zeros((0, 2))], [1e-9 * BAD])
    mixed = np.diag([1e12, 1e-12])  # honest variances in very different units
    assert kf.StateSpace([-1], [None], [np.zeros((0, 2))], [mixed]).Q[0][1, 1] == 1e-12
    with pytest.raises(ModelError, match="not positive semi-definite"):
        kf.StateSpace([-1], [None], [np.zeros((0, 2))], [np.diag([1e12, -1e-3])])


# --- chains


def chain_arguments(seed=0, N=5, n=2, m=1):
    rng = np.random.default_rng(seed)
    F, H = rng.normal(size=(N - 1, n, n)), rng.normal(size=(N, m, n))
    Q, R = (
        np.stack([B @ B.T + np.eye(k) for B in rng.normal(size=(count, k, k))]) for count, k in ((N - 1, n), (N, m))
    )
    return {"F": F, "H": H, "Q": Q, "R": R, "x0": rng.normal(size=n), "P0": 2 * np.eye(n)}


def test_the_edges_of_a_chain():
    """F[k] and Q[k] belong to the edge from step k to k + 1; x0, P0 are the prior of step 0 itself."""
    given_arrays = chain_arguments()
    u = np.arange(8.0).reshape(4, 2)
    ss = kf.StateSpace.chain(**given_arrays, inputs=u)
    assert ss.tree.parent.tolist() == [1, 2, 3, 4, -1]
    for k in range(4):
        np.testing.assert_array_equal(ss.phi[k], given_arrays["F"][k])
        np.testing.assert_array_equal(ss.Q[k + 1], given_arrays["Q"][k])
    np.testing.assert_array_equal(ss.Q[0], given_arrays["P0"])
    np.testing.assert_array_equal(ss.xi, np.concatenate([given_arrays["x0"], u.ravel()]))
    # simulated means: x(k+1) = F x(k) + u
    mean = given_arrays["x0"]
    filt = kf.kalman_filter(ss, np.full(5, np.nan))
    for k in range(5):
        close(filt.predicted_state[k], mean)
        mean = given_arrays["F"][k] @ mean + u[k] if k < 4 else mean


def test_invariant_matrices_are_repeated():
    g = chain_arguments()
    F, H, Q, R = (g[name][0] for name in "FHQR")
    short = kf.StateSpace.chain(F, H, Q, R, g["x0"], g["P0"], steps=5)
    long = kf.StateSpace.chain(
        np.stack([F] * 4), np.stack([H] * 5), np.stack([Q] * 4), np.stack([R] * 5), g["x0"], g["P0"]
    )
    for name in ("phi", "H", "Q", "R"):
        np.testing.assert_array_equal(getattr(short, name).packed().flat, getattr(long, name).flat)
    mixed = kf.StateSpace.chain(F, g["H"], Q, R, g["x0"], g["P0"])
    assert len(mixed) == 5


def test_one_step():
    ss = kf.StateSpace.chain(None, ONE, None, ONE, [1.0], 3 * ONE, steps=1)
    assert len(ss) == 1
    np.testing.assert_allclose(kf.kalman_filter(ss, [5.0]).filtered_state[0], [4.0], rtol=1e-15)
    assert len(kf.StateSpace.chain(np.zeros((0, 1, 1)), ONE[None], np.zeros((0, 1, 1)), ONE[None], 1.0, ONE)) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"F": np.ones((5, 2, 2))}, r"F has 5 entries, but 5 steps need 4: F and Q belong to the N-1 edges"),
        ({"Q": np.ones((3, 2, 2))}, r"Q has 3 entries, but 5 steps need 4"),
        ({"R": np.ones((4, 1, 1))}, r"R has 4 entries, but 5 steps need 5"),
        ({"steps": 7}, r"H has 5 entries, but 7 steps need 7"),
        ({"F": np.ones((4, 3, 3))}, r"F has blocks of shape \(3, 3\), but x0 says n = 2"),
        ({"Q": np.ones((4, 1, 1))}, r"Q has blocks of shape \(1, 1\), but x0 says n = 2"),
        ({"F": np.ones(4)}, r"F must be one matrix or a stack of matrices, got shape \(4,\)"),
        ({"x0": np.zeros(3)}, r"x0 must have shape \(n,\) and P0 \(n, n\); got \(3,\) and \(2, 2\)"),
        ({"P0": np.ones(2)}, r"x0 must have shape"),
        ({"inputs": np.zeros((5, 2))}, r"inputs must have shape \(4, 2\), one row for each edge; got \(5, 2\)"),
        ({"H": np.ones((5, 1, 3))}, r"H of node 0 has shape \(1, 3\)"),
    ],
)
def test_wrong_chains_are_refused(change, message):
    with pytest.raises(ShapeError, match=message):
        kf.StateSpace.chain(**(chain_arguments() | change))


def test_a_chain_needs_a_length():
    with pytest.raises(ShapeError, match="number of steps is unknown; give steps=N"):
        kf.StateSpace.chain(ONE, ONE, ONE, ONE, [0.0], ONE)
    with pytest.raises(ShapeError, match="at least one step, got 0"):
        kf.StateSpace.chain(ONE, ONE, ONE, ONE, [0.0], ONE, steps=0)
    with pytest.raises(ModelError, match=r"xi\[0\] \(node 0\) is nan"):
        kf.StateSpace.chain(ONE, ONE, ONE, ONE, [np.nan], ONE, steps=2)


@pytest.mark.parametrize("name", ["F", "H", "Q", "R", "x0", "P0", "inputs"])
def test_words_in_a_chain_are_refused_by_name(name):
    with pytest.raises(ShapeError, match=f"{name} must be an array of real numbers"):
        kf.StateSpace.chain(**(chain_arguments() | {name: "words"}))


@given(cases(noise=True))
@few
def test_node_order_does_not_matter(case):
    """SKO:bwa. Renumbering the nodes renumbers the answers and changes nothing else."""
    ss, N = case.ss, len(case.ss)
    new = np.random.default_rng(N).permutation(N)  # node k becomes new[k]
    old = np.argsort(new)
    parent = [-1 if ss.tree.parent[k] < 0 else int(new[ss.tree.parent[k]]) for k in old]
    phi = [ss.phi[k] if ss.tree.parent[k] >= 0 else None for k in old]
    moved = kf.StateSpace(parent, phi, *([blocks[k] for k in old] for blocks in (ss.H, ss.Q, ss.R)))

    def shuffle(blocks):
        return np.concatenate([np.zeros(0), *(blocks[k] for k in old)])

    T, xi, eta = (
        shuffle(ss.output_blocks(case.T)),
        shuffle(ss.state_blocks(case.xi)),
        shuffle(ss.state_blocks(case.eta)),
    )
    one = kf.bryson_frazier(ss, kf.kalman_filter(ss, case.T, case.xi, case.eta))
    two = kf.bryson_frazier(moved, kf.kalman_filter(moved, T, xi, eta))
    close(two.filt.llf, one.filt.llf, 12)
    close(two.x.flat, shuffle(one.x), 12)
    close(two.a, shuffle(ss.output_blocks(one.a)), 12)
    model = DenseModel.from_blocks(parent, phi, moved.H, moved.Q, moved.R, xi, eta)
    close(two.x.flat, dense_posterior(model, T).mean)


def lines_run(call):
    """How many lines of Python a call runs, and what it returns."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        answer = call()
    finally:
        sys.settrace(before)
    return count, answer


def test_a_pickle_of_a_long_chain_takes_no_loop_over_nodes():
    """Buffers travel whole: as many lines are run for 10⁵ nodes as for 5,000; and read-only when they arrive.

    Of less than that, sizes are kept, which takes fewer lines.
    """
    one = np.ones((1, 1))
    short, ss = (kf.StateSpace.chain(one, one, one, one, [1.0], one, steps=steps) for steps in (5_000, 100_000))
    pickle.loads(pickle.dumps(short))  # whatever is imported for it
    few, _ = lines_run(lambda: pickle.loads(pickle.dumps(short)))
    many, copy = lines_run(lambda: pickle.loads(pickle.dumps(ss)))
    assert many == few > 0
    assert copy.tree == ss.tree
    for name in ("phi", "H", "Q", "R"):
        np.testing.assert_array_equal(getattr(copy, name).flat, getattr(ss, name).flat)
        assert not getattr(copy, name).flat.flags.writeable
    np.testing.assert_array_equal(copy.xi, ss.xi)


def test_steps_are_whole():
    one = np.ones((1, 1))
    with pytest.raises(ShapeError, match=r"steps must be a whole number, got 2\.7"):
        kf.StateSpace.chain(one, one, one, one, [0.0], one, steps=2.7)


# --- replace


def test_replace_equals_building_anew():
    case = random_case(3, 12)
    rng = np.random.default_rng(0)
    Q = [random_covariance(rng, n) for n in case.ss.n]
    R = [random_covariance(rng, m) for m in case.ss.m]
    phi = [None if p < 0 else rng.normal(size=b.shape) for p, b in zip(case.ss.tree.parent, case.ss.phi)]
    H = [rng.normal(size=b.shape) for b in case.ss.H]
    eta = rng.normal(size=case.ss.n_states)
    ss = case.ss.replace(phi=phi, H=H, Q=Q, R=R, xi=case.xi, eta=eta)
    new = kf.StateSpace(case.ss.tree.parent, phi, H, Q, R, case.xi, eta)
    assert kf.kalman_filter(ss, case.T).llf == kf.kalman_filter(new, case.T).llf
    assert kf.kalman_filter(ss.replace(R=case.ss.R), case.T).llf != kf.kalman_filter(new, case.T).llf


def test_replace_shares_what_has_not_changed_and_leaves_the_old_model_alone():
    case = random_case(5, 9)
    ss = case.ss.replace(xi=case.xi)
    before = kf.kalman_filter(ss, case.T).llf
    new = ss.replace(Q=[2 * q for q in ss.Q])
    for name in ("tree", "n", "m", "phi", "H", "R", "xi", "common"):
        assert getattr(new, name) is getattr(ss, name), name
    assert new.address != ss.address
    assert kf.kalman_filter(new, case.T).llf != before
    assert kf.kalman_filter(ss, case.T).llf == before
    with pytest.raises(ValueError, match="read-only"):
        new.Q[0][0, 0] = 1.0


def test_replace_refuses_what_the_constructor_refuses():
    ss = kf.StateSpace([1, -1], np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1, 1)))
    with pytest.raises(ModelError, match="Q of node 1 is not positive semi-definite"):
        ss.replace(Q=np.array([[[1.0]], [[-1.0]]]))
    with pytest.raises(ModelError, match="R of node 0 has an entry that is nan"):
        ss.replace(R=np.array([[[np.nan]], [[1.0]]]))
    with pytest.raises(ShapeError, match="Q of node 0 has shape"):
        ss.replace(Q=np.ones((2, 2, 2)))
    with pytest.raises(ShapeError, match="H of node 1 has shape"):
        ss.replace(H=[np.ones((1, 1)), np.ones((2, 1))])
    with pytest.raises(ShapeError, match="phi of node 0 has shape"):
        ss.replace(phi=[np.ones((2, 1)), None])
    with pytest.raises(ShapeError, match="xi"):
        ss.replace(xi=np.ones(3))


# --- blocks that nodes share

NAMES_OF_BLOCKS = ("phi", "H", "Q", "R")


def shared_chain(N=7, n=3):
    rng = np.random.default_rng(1)
    F, H = rng.normal(size=(n, n)), rng.normal(size=(2, n))
    Q, R, P0 = (random_covariance(rng, k) for k in (n, 2, n))
    short = kf.StateSpace.chain(F, H, Q, R, np.ones(n), P0, steps=N)
    long = kf.StateSpace.chain(
        *(np.stack([A] * k) for A, k in ((F, N - 1), (H, N), (Q, N - 1), (R, N))), np.ones(n), P0
    )
    return short, long, rng.normal(size=2 * N)


def test_a_step_that_all_nodes_share_is_stored_once():
    short, long, T = shared_chain()
    assert short.phi.flat.size == 9 and long.phi.flat.size == 6 * 9
    assert short.phi.shares and not long.phi.shares
    np.testing.assert_array_equal(short.phi.packed().flat, long.phi.flat)
    np.testing.assert_array_equal(short.phi[3], long.phi[3])
    assert short.phi[6].shape == (0, 3)
    f, g = kf.kalman_filter(short, T), kf.kalman_filter(long, T)
    assert f.llf == g.llf
    np.testing.assert_array_equal(f.K.flat, g.K.flat)
    s, t = kf.bryson_frazier(short, f), kf.bryson_frazier(long, g)
    np.testing.assert_array_equal(s.x.flat, t.x.flat)
    np.testing.assert_array_equal(s.S.flat, t.S.flat)
    for name in ("x", "filter_error", "costate"):
        close(getattr(kf.Covariances(short), name).dense(), getattr(kf.Covariances(long), name).dense())
    again = pickle.loads(pickle.dumps(short))
    assert kf.kalman_filter(again, T).llf == f.llf


def test_a_model_that_arrives_at_odd_addresses():
    """Frames of a network begin at any byte; the compiled sweeps take aligned arrays only."""
    short, _, T = shared_chain()
    frames = []
    data = pickle.dumps(short, protocol=5, buffer_callback=frames.append)
    moved = [memoryview(bytearray(b"x") + bytearray(frame.raw()))[1:] for frame in frames]
    again = pickle.loads(data, buffers=moved)
    for name in NAMES_OF_BLOCKS:
        np.testing.assert_array_equal(getattr(kf.score(again, T), name).flat, getattr(kf.score(short, T), name).flat)


def test_a_matrix_broadcast_to_all_nodes_is_checked_and_named_once():
    bad = np.broadcast_to(-np.eye(2), (5, 2, 2))
    with pytest.raises(ModelError, match="Q of node 0 is not positive semi-definite"):
        kf.StateSpace.chain(np.eye(2), np.eye(2), np.eye(2), np.eye(2), np.zeros(2), np.eye(2), steps=5).replace(Q=bad)
    with pytest.raises(ModelError, match=r"Q\[0\] is not positive semi-definite"):
        kf.StateSpace.chain(np.eye(2), np.eye(2), -np.eye(2), np.eye(2), np.zeros(2), np.eye(2), steps=5)
    with pytest.raises(ModelError, match="phi of node 0 has an entry that is inf"):
        kf.StateSpace.chain(np.full((2, 2), np.inf), np.eye(2), np.eye(2), np.eye(2), np.zeros(2), np.eye(2), steps=5)


@pytest.mark.parametrize("turn", [np.asarray, np.asfortranarray, lambda b: b[::-1][::-1], lambda b: b.tolist()])
def test_blocks_in_any_memory_order(turn):
    case = random_case(6, 8)
    ss = case.ss
    Q = [turn(b) if b.size else b for b in ss.Q]
    H = [turn(b) if b.size else b for b in ss.H]
    again = ss.replace(Q=Q, H=H)
    np.testing.assert_array_equal(again.Q.flat, ss.Q.flat)
    np.testing.assert_array_equal(again.H.flat, ss.H.flat)


@pytest.mark.parametrize("n", [1, 2, 3, 6])
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_verdict_on_covariances_is_that_of_eigenvalues(n, unit):
    """Singular ones of every rank pass, and one eigenvalue of −1e-8 is found among many good blocks."""
    rng = np.random.default_rng(n)
    scale = np.diag(unit ** rng.uniform(-1, 1, n))
    good = [scale @ random_covariance(rng, n, rank) @ scale for rank in range(n + 1)]
    good += [np.diag(np.r_[np.zeros(n - 1), unit])]
    parent, zero = [-1] * (len(good) + 1), np.zeros((0, n))
    phi, H = [None] * len(parent), [zero] * len(parent)
    kf.StateSpace(parent, phi, H, [*good, good[0]])
    U = np.linalg.qr(rng.normal(size=(n, n)))[0]
    bad = U @ np.diag(np.r_[np.ones(n - 1), -1e-8]) @ U.T
    with pytest.raises(ModelError, match=f"Q of node {len(good)} is not positive"):
        kf.StateSpace(parent, phi, H, [*good, scale @ (0.5 * (bad + bad.T)) @ scale])


def test_a_mean_of_step_0_needs_its_covariance():
    """It was dropped in silence where P0 was not given, for a flat prior has no mean."""
    with pytest.raises(ModelError, match=r"x0 is given without P0.*zeros if x0 is known exactly.*flat prior"):
        kf.StateSpace.chain(ONE, ONE, ONE, ONE, x0=[3.0], steps=3)
    F = np.eye(3)
    for source, prior in (("H", {}), ("P0", {"P0": np.eye(2)}), ("x0", {"x0": [0.0, 0.0], "P0": np.eye(2)})):
        with pytest.raises(ShapeError, match=rf"F has blocks of shape \(3, 3\), but {source} says n = 2"):
            kf.StateSpace.chain(F, np.ones((1, 2)), np.eye(2), ONE, steps=4, **prior)


def test_singular_covariances_are_checked_without_their_eigenvalues(monkeypatch):
    """A filter of motions builds such a model at every iteration; eigenvalues only tell which block is wrong."""
    rng = np.random.default_rng(0)
    B = rng.normal(size=(80, 12, 6))
    blocks = {"F": np.eye(12), "H": np.eye(3, 12), "Q": B @ B.swapaxes(1, 2), "R": np.eye(3)}

    def refuse(*_):
        raise AssertionError("asked for eigenvalues")

    with monkeypatch.context() as patched:
        patched.setattr(np.linalg, "eigvalsh", refuse)
        kf.StateSpace.chain(**blocks, x0=np.zeros(12), P0=np.eye(12))
    blocks["Q"][41] -= 1e-6 * np.eye(12)
    with pytest.raises(kf.errors.ModelError, match=r"Q.41. is not positive semi-definite \(lowest eigenvalue -1e-06"):
        kf.StateSpace.chain(**blocks, x0=np.zeros(12), P0=np.eye(12))


def test_who_vouches_for_his_numbers_gets_the_same_model_unchecked():
    rng = np.random.default_rng(0)
    N, n, m = 100, 3, 2
    F, H, B = rng.normal(size=(N - 1, n, n)), rng.normal(size=(N, m, n)), rng.normal(size=(N - 1, n, 1))
    given = (F, H, B @ B.transpose(0, 2, 1), np.eye(m), np.zeros(n), np.eye(n))
    checked, trusted = (kf.StateSpace.chain(*given, check=check) for check in (True, False))
    for name in ("phi", "H", "Q", "R"):
        assert (getattr(checked, name).flat == getattr(trusted, name).flat).all()
    wrong = np.repeat(-np.eye(n)[None], N, axis=0)
    assert trusted.replace(Q=wrong, check=False).Q[0][0, 0] == -1.0
    with pytest.raises(ModelError, match="not positive semi-definite"):
        trusted.replace(Q=wrong)
    with pytest.raises(ShapeError):  # sizes are looked at all the same
        trusted.replace(Q=wrong[:, :2, :2], check=False)


def test_factors_of_any_width_are_squared_and_not_taken_roots_of():
    rng = np.random.default_rng(1)
    B = [rng.normal(size=(3, k)) for k in (1, 3, 5)]
    one = np.ones((3, 1, 3))
    ss = kf.StateSpace([1, 2, -1], np.array([np.eye(3)] * 3), one, Q_factor=B, R_factor=np.ones((3, 1, 1)))
    for k, b in enumerate(B):
        assert (ss.Q[k] == ss.Q[k].T).all()
        np.testing.assert_allclose(ss.Q[k], b @ b.T, rtol=1e-13)
    T = rng.normal(size=3)
    filt = kf.kalman_filter(ss, T, method="square_root")
    np.testing.assert_allclose(filt.llf, kf.kalman_filter(ss, T).llf, rtol=1e-12)
    lower = ss.factors.Q.lower.reshape(3, 3, 3)
    assert (np.triu(lower, 1) == 0.0).all()
    with pytest.raises(ModelError, match="Q_factor of node 1"):
        kf.StateSpace([1, 2, -1], np.array([np.eye(3)] * 3), one, Q_factor=[B[0], np.inf * B[1], B[2]])
    with pytest.raises(ModelError, match="Q of node 2 has an entry that is inf"):
        kf.StateSpace([1, 2, -1], np.array([np.eye(3)] * 3), one, Q_factor=[B[0], B[1], 1e200 * B[2]])


def test_models_of_one_form_share_sizes_and_tree_however_many_forms_there_are():
    """Built again: the same read-only arrays of sizes and starts; a hundred other forms later, the same numbers."""
    rng = np.random.default_rng(0)

    def built(N: int, n: int, m: int) -> kf.StateSpace:
        root = rng.normal(size=(N - 1, n, n))
        F, H, R = rng.normal(size=(N - 1, n, n)), rng.normal(size=(N, m, n)), np.broadcast_to(np.eye(m), (N, m, m))
        return kf.StateSpace.chain(F, H, root @ root.transpose(0, 2, 1), R, np.zeros(n), np.eye(n))

    first, again = built(7, 3, 2), built(7, 3, 2)
    assert again.tree is first.tree
    for name in ("state", "output", "phi_at", "H_at", "Q_at", "R_at"):
        assert getattr(again.arrays, name) is getattr(first.arrays, name), name
        assert not getattr(again.arrays, name).flags.writeable
    for N in range(2, 102):
        built(N, 1 + N % 4, 1 + N % 3)
    late, T = built(7, 3, 2), rng.normal(size=14)
    for one, other in zip(late.arrays, first.arrays):
        if one.dtype == np.int64:
            np.testing.assert_array_equal(one, other)
    other = kf.StateSpace(late.tree, [*list(late.phi)[:-1], None], list(late.H), list(late.Q), list(late.R), late.xi)
    assert kf.kalman_filter(late, T).llf == kf.kalman_filter(other, T).llf
