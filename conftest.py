"""Which examples the property tests draw: the same everywhere, or new ones where KFDYN_EXAMPLES is "new".

``make test`` draws the same ones on every machine and every day, so that it fails where something has changed and
nowhere else. ``make fuzz`` and ``make test-all`` draw new ones, and say how to draw them again.
"""

import os
import time
from collections import Counter
from functools import wraps

import pytest
from hypothesis import settings

os.environ.setdefault("KFDYN_QUIET", "1")  # what a command says must not depend on what was compiled before

# No deadline: an example that compiles something, or a machine that is busy, is not wrong.
settings.register_profile("same", derandomize=True, database=None, deadline=None)
settings.register_profile("new", derandomize=False, print_blob=True, deadline=None)
settings.load_profile(os.environ.get("KFDYN_EXAMPLES") or "same")

# Set by tests/fuzz.py: when to stop, and where to leave the number of examples of each test.
_UNTIL, _COUNTS = os.environ.get("KFDYN_FUZZ_UNTIL"), os.environ.get("KFDYN_FUZZ_COUNTS")
_drawn: Counter[str] = Counter()


def pytest_collection_modifyitems(config, items):
    """While fuzzing, keep the property tests and count their examples."""
    if _UNTIL is None:
        return
    properties = [item for item in items if hasattr(getattr(item, "obj", None), "hypothesis")]
    config.hook.pytest_deselected(items=[item for item in items if item not in properties])
    items[:] = properties
    for handle, name in {id(i.obj.hypothesis): (i.obj.hypothesis, i.nodeid.split("[")[0]) for i in items}.values():
        handle.inner_test = _counted(handle.inner_test, name)


def _counted(test, name):
    @wraps(test)
    def counted(*args, **kwargs):
        _drawn[name] += 1
        return test(*args, **kwargs)

    return counted


def pytest_runtest_logfinish(nodeid, location):
    """Stop when the time is over."""
    if _UNTIL is not None and time.time() > float(_UNTIL):
        _session.shouldstop = "the time is over"


def pytest_sessionstart(session):
    """Remember what is to be stopped."""
    global _session
    _session = session


def pytest_sessionfinish(session):
    """Leave the counts."""
    if _COUNTS is not None:
        with open(_COUNTS, "w") as file:
            file.writelines(f"{count} {name}\n" for name, count in _drawn.items())


@pytest.fixture(autouse=True, scope="session")
def _one_profile():
    """A module that loads a profile of its own would take the same examples away from all that follow."""
    yield
    assert settings._current_profile == (os.environ.get("KFDYN_EXAMPLES") or "same")
