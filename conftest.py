"""Which examples the property tests draw: the same everywhere, or new ones where KFDYN_EXAMPLES is "new".

``make test`` draws the same ones on every machine and every day, so that it fails where something has changed and
nowhere else. ``make fuzz`` and ``make test-all`` draw new ones, and say how to draw them again.
"""

import os
import signal
import time
from collections import Counter
from functools import wraps
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

# What a command says and draws must depend neither on what was compiled before nor on the terminal and the language of
# who tests.
os.environ.setdefault("KFDYN_QUIET", "1")
os.environ.update(TERM="xterm", MPLBACKEND="Agg", PYTHONUTF8="1")
for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
    os.environ.pop(name, None)

# A shell that runs the tests in the background hands down an ignored Ctrl-C, also to what the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Neither a deadline nor a check of health by the clock: an example that compiles something, or a machine that is busy,
# is not wrong.
PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("same", derandomize=True, database=None, **PATIENT)
settings.register_profile("new", derandomize=False, print_blob=True, **PATIENT)
settings.load_profile(os.environ.get("KFDYN_EXAMPLES") or "same")

# Hypothesis also draws constants that it finds in the modules imported by then: other examples in another order of the
# tests, in another worker, or when one failure is drawn again. It has no setting for that; this way it finds none.
providers._get_local_constants = lambda: providers._local_constants

# Modules that need what is not among the test tools are left out where it is missing.
collect_ignore = [
    f"kfdyn/bridge/{name}{part}.py" for name in ("jax", "torch") if not find_spec(name) for part in ("", "_calls")
]

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
