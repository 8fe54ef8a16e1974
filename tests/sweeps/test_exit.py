"""A process that used compiled code ends in peace: nothing is looked at that has been let go of."""

import os
import subprocess
import sys

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
