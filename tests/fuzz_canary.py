"""A property that is false of some numbers: what ``make fuzz`` must find. Not collected unless named."""

from hypothesis import given
from hypothesis import strategies as st

DRAWN = []


@given(st.integers(0, 10**6))
def test_canary(n):
    DRAWN.append(n)
    assert n % 7 != 3


def test_what_was_drawn():
    print("drawn", DRAWN[:5])
