"""Code for processors other than this one: LLVM can write it, and one that hides what it has gets the same bits.

What LLVM cannot write ends the process, so all is asked in others.
"""

import os
import platform
import subprocess
import sys

import pytest

CROSS = """
import sys
import llvmlite.binding as llvm
from kfdyn.dynamics.recursions.forward import FORWARD
from kfdyn.dynamics.recursions.inverse import INVERSE
from kfdyn.dynamics.recursions.mass_matrix_inverse import MASS_MATRIX_INVERSE
from kfdyn.multibody.recursions.energy import KINETIC
from kfdyn.multibody.system import System
from kfdyn.sweeps.compiler import driver

triple, name, features = sys.argv[1:]
driver.machine()
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
try:
    there = driver.Machine(triple, name, {feature: True for feature in features.split()})
except RuntimeError:
    print("this llvmlite does not know", triple)
    raise SystemExit
driver._ready[:] = [there]
made = []
driver.compiled = lambda code: made.append(driver._object_code(code))
for entry in (FORWARD, INVERSE, MASS_MATRIX_INVERSE, KINETIC):
    entry.single(System, "address")
    entry.narrow
    entry.wide
print(there.register, there.lanes, len(made), all(made))
"""


@pytest.mark.parametrize(
    ("triple", "name", "features", "register", "lanes"),
    [
        ("aarch64-unknown-linux-gnu", "generic", "", 2, 4),
        ("arm64-apple-darwin", "apple-m1", "", 2, 4),
        ("x86_64-unknown-linux-gnu", "x86-64", "", 2, 4),
        ("x86_64-unknown-linux-gnu", "haswell", "avx fma", 4, 4),
        ("x86_64-unknown-linux-gnu", "skylake-avx512", "avx avx512f fma", 8, 8),
        ("powerpc64le-unknown-linux-gnu", "pwr9", "", 2, 4),
    ],
)
def test_other_processors(triple, name, features, register, lanes):
    done = subprocess.run([sys.executable, "-c", CROSS, triple, name, features], capture_output=True, encoding="utf-8")
    if "does not know" in done.stdout:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(register), str(lanes), "12" if lanes == 8 else "8", "True"], done.stdout


HIDDEN = """
import llvmlite.binding as llvm
import numpy as np

real = llvm.get_host_cpu_features()
hidden = ("avx", "amx", "fma", "f16c", "xop", "vaes", "vpclmulqdq")
shown = {name: there and not name.startswith(hidden) for name, there in real.items()}
llvm.get_host_cpu_features = lambda: shown
llvm.get_host_cpu_name = lambda: "x86-64"

import kfdyn as kf
from kfdyn.sweeps.compiler.driver import machine

system, rng = kf.models.random_tree(13, 3), np.random.default_rng(0)
q = np.stack([system.random_configuration(rng) for _ in range(9)])
v, tau = rng.normal(size=(2, 9, system.nv))
a = kf.forward_dynamics(system, q, v, tau)
assert np.array_equal(kf.forward_dynamics(system, q[:3], v[:3], tau[:3]), a[:3])
for k in range(9):
    assert np.array_equal(kf.forward_dynamics(system, q[k], v[k], tau[k]), a[k])
print(machine().register, machine().fuses)
"""


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="hides AVX, which others never have")
def test_one_state_has_the_bits_of_a_batch_without_avx(tmp_path):
    environment = os.environ | {"KFDYN_CACHE_DIR": str(tmp_path), "KFDYN_QUIET": "1"}
    environment.pop("KFDYN_CHECK", None)
    done = subprocess.run([sys.executable, "-c", HIDDEN], env=environment, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["2", "False"]
