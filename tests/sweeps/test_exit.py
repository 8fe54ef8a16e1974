"""What used compiled code ends in peace, is forked in peace, and nothing is looked at that has been let go of."""

import gc
import os
import subprocess
import sys
import weakref

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.sweeps.compiler import driver

USE = """
import numpy as np
import kfdyn as kf

arm = kf.models.puma560()
kf.forward_dynamics(arm, *np.zeros((3, 6)))
kf.forward_dynamics(arm, *np.zeros((3, 9, 6)))
kf.mass_matrix(arm, np.zeros(6))
ss = kf.as_estimation(arm, np.zeros(6))
kf.bryson_frazier(ss, kf.kalman_filter(ss, np.zeros(6)))
"""


def test_a_process_ends_in_peace():
    """With the C library writing over what is freed, functions whose definition was freed before them crashed here.

    Without it that happened once in some hundred processes. The byte sets the flag by which a function has a class.
    """
    environment = os.environ | {"PYTHONMALLOC": "malloc", "MALLOC_PERTURB_": "2"}
    done = subprocess.run([sys.executable, "-c", USE], env=environment, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, (done.returncode, done.stderr)


FORKED = """
import os, signal, sys, threading
import numpy as np
import kfdyn as kf
import kfdyn.sweeps.compiler.driver
from kfdyn.sweeps.entry import Entry

inside, forking = threading.Event(), threading.Event()
os.register_at_fork(before=forking.set)  # the last registered is the first asked

def held(work):
    def slow(*args, **more):
        inside.set()
        forking.wait()
        return work(*args, **more)
    return slow

owner, name = {"driver": (kfdyn.sweeps.compiler.driver, "_object_code"), "property": (Entry, "compiled")}[sys.argv[1]]
setattr(owner, name, held(getattr(owner, name)))
arm, zeros = kf.models.puma560(), np.zeros((3, 9, 6))
thread = threading.Thread(target=kf.forward_dynamics, args=(arm, *zeros))
thread.start()
inside.wait()
child = os.fork()
if child == 0:
    signal.alarm(120)  # else it waits for ever
    kf.forward_dynamics(arm, *zeros)
    kf.mass_matrix(arm, zeros[0])
    os._exit(0)
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.parametrize("where", ["driver", "property"])
def test_a_process_that_is_forked_while_another_thread_compiles(where, tmp_path):
    """The child has neither that thread nor what it would have given back."""
    environment = os.environ | {"KFDYN_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKED, where]
    done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8")
    assert done.stdout == "0\n", done.stderr


def test_the_code_of_a_robot_that_is_dropped_is_given_back(monkeypatch):
    linked, engines = driver._linked, []

    def seen(code):
        engine = linked(code)
        engines.append(weakref.ref(engine))
        return engine

    robot = kf.specialise(kf.models.random_tree(3, 77))
    q = np.stack([robot.neutral()] * 9)
    kf.mass_matrix(kf.specialise(kf.models.double_pendulum()), np.zeros((9, 2)))  # what all robots share
    monkeypatch.setattr(driver, "_linked", seen)
    before = kf.mass_matrix(robot, q)
    assert len(engines) == 1 and engines[0]() is not None
    assert np.array_equal(kf.mass_matrix(robot, q), before)
    del robot
    gc.collect()
    assert engines[0]() is None
