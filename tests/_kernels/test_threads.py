"""How many threads a batch may use."""

from kfdyn._kernels.threads import alone, threads


def test_leaving_an_inner_alone_leaves_the_outer_one_alone(monkeypatch):
    monkeypatch.setenv("KFDYN_NUM_THREADS", "3")
    with alone():
        with alone():
            assert threads() == 1
        assert threads() == 1
    assert threads() == 3
