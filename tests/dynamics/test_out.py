"""``out=``: answers in arrays of the caller's, whatever they are like, and words for those that cannot hold them."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import kfdyn as kf
from kfdyn.errors import ModelError, ShapeError
from kfdyn.quantities import quantities

ARM, TREE = kf.models.puma560(), kf.models.random_tree(9, 4)
CALLS = {
    name: lambda s, q, v, u, of=of, **k: of(s, q=q, v=v, tau=u, a=u, **k)
    for name, of in quantities().items()
    if not name.endswith("_derivatives")  # which answer three arrays
} | {
    "compliance": lambda s, q, v, u, **k: kf.operational_space_compliance(s, q, s.body_names[-1], **k),
    "jacobian": lambda s, q, v, u, **k: kf.jacobian(s, q, s.body_names[-1], **k),
}


@pytest.fixture(params=CALLS)
def call(request):
    return CALLS[request.param]


@pytest.fixture(params=[(ARM, ()), (ARM, (5,)), (TREE, (2, 3))], ids=["one", "five", "all hinges"])
def state(request):
    system, lead = request.param
    rng = np.random.default_rng(0)
    q = np.array([system.random_configuration(rng) for _ in range(int(np.prod(lead)))]).reshape((*lead, system.nq))
    return system, q, *rng.normal(size=(2, *lead, system.nv))


def unaligned(shape):
    return np.zeros(8 * int(np.prod(shape)) + 1, np.uint8)[1:].view(np.float64).reshape(shape)


KINDS = {
    "plain": np.zeros,
    "unaligned": unaligned,
    "byte-swapped": lambda shape: np.zeros(shape, ">f8"),
    "every second": lambda shape: np.zeros((*shape[:-1], 2 * shape[-1]))[..., ::2],
    "Fortran's order": lambda shape: np.zeros(shape, order="F"),
    "turned": lambda shape: np.zeros(shape[::-1]).T,
}


@pytest.mark.parametrize("kind", KINDS)
def test_out_holds_the_answer_whatever_it_is_like(call, state, kind):
    expected = call(*state)
    out = KINDS[kind](expected.shape)
    assert call(*state, out=out) is out
    assert np.array_equal(out, expected)


def test_a_plain_out_is_written_to_straight_away(call, state, monkeypatch):
    """No second array of the answer's size is made."""
    expected = call(*state)
    out = np.empty_like(expected)
    monkeypatch.setattr(np, "copyto", None)
    assert call(*state, out=out) is out and np.array_equal(out, expected)


def test_a_memory_map_is_written_to(call, state, tmp_path):
    expected = call(*state)
    out = np.memmap(tmp_path / "answers", np.float64, "w+", shape=expected.shape)
    assert call(*state, out=out) is out
    assert np.array_equal(np.fromfile(tmp_path / "answers").reshape(expected.shape), expected)


@pytest.mark.parametrize("which", [1, 2, 3])
def test_out_may_be_an_argument(state, which):
    system, q, v, u = state
    if which == 1 and system.nq != system.nv:
        pytest.skip("q is longer than a")
    for call in (CALLS["forward_dynamics"], CALLS["inverse_dynamics"]):
        expected, given = call(system, q, v, u), [system, q.copy(), v.copy(), u.copy()]
        assert call(*given, out=given[which]) is given[which]
        assert np.array_equal(given[which], expected)


def test_out_may_overlap_arguments_in_part(call, state):
    system, q, v, u = state
    expected = call(*state)
    memory = np.zeros(expected.size + q.size)
    shifted = memory[3 : 3 + q.size].reshape(q.shape)
    shifted[:] = q
    out = memory[: expected.size].reshape(expected.shape)
    call(system, shifted, v, u, out=out)
    assert np.array_equal(out, expected)


@pytest.mark.parametrize(
    ("wrong", "error", "match"),
    [
        (lambda a: np.zeros((*a.shape, 1)), ShapeError, r"out must have the shape of the answer, \(.*\), got"),
        (lambda a: np.zeros(a.shape, np.float32), ModelError, "out must be an array of float64, got float32"),
        (lambda a: np.zeros(a.shape, np.int64), ModelError, "out must be an array of float64, got int64"),
        (lambda a: np.zeros(a.shape).tolist(), ModelError, "out must be an array of NumPy's .* got"),
        (lambda a: np.broadcast_to(0.0, a.shape), ModelError, "out cannot be written to"),
        (lambda a: np.ma.masked_all(a.shape), ModelError, r"out must be an array without a mask.*out\.data"),
        (lambda a: as_strided(np.zeros(a.shape[-1]), a.shape, (0,) * a.ndim), ModelError, "memory of its own"),
        (lambda a: as_strided(np.zeros(2 * a.size), a.shape, (4,) * a.ndim), ModelError, "memory of its own"),
    ],
)
def test_what_cannot_hold_the_answer_is_refused(call, state, wrong, error, match):
    with pytest.raises(error, match=match):
        call(*state, out=wrong(call(*state)))


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "plain"])
def test_arguments_of_any_kind(call, state, kind):
    """Read-only, too: a sweep that wrote to what it is given would fail here, or change it."""
    system, *given = state
    seen = []
    for x in given:
        seen.append(KINDS[kind](x.shape))
        seen[-1][...] = x
        seen[-1].flags.writeable = False
    assert np.array_equal(call(system, *seen), call(system, *given))
    assert all(np.array_equal(x, y) for x, y in zip(seen, given))


def test_out_with_other_methods_lists_and_couplings():
    q, v = [0.1, 0.2], [0.3, 0.4]
    system, out = kf.models.double_pendulum(), np.zeros(2)
    for method in ("filter", "engine", "mass_matrix"):
        assert kf.forward_dynamics(system, q, v, [1.0, 2.0], method=method, out=out) is out
        assert np.allclose(out, kf.forward_dynamics(system, q, v, [1.0, 2.0]), rtol=1e-12)
        out[:] = 0
    geared = kf.System(system.bodies, couplings=[kf.Coupling(system.hinge_names, [[1.0], [2.0]])])
    assert kf.mass_matrix(geared, [0.1], out=(M := np.zeros((1, 1)))) is M and M[0, 0] > 0
    assert np.array_equal(kf.bias_forces(geared, [0.1], out=(c := np.zeros(1))), c) and c[0] != 0
    with pytest.raises(ShapeError, match="out must have the shape"):
        kf.forward_dynamics(system, np.zeros((3, 2)), v, [0.0, 0.0], out=out)
