"""The first use: it says that it compiles, survives Ctrl-C, and works where nothing can be written."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import kfdyn
from kfdyn import first_use
from kfdyn.cli.warm import chores

SMALL = """
import numpy as np
import kfdyn as kf
print(kf.integrate(kf.models.pendulum(), [0.5], [0.25]))
"""


def python(code, cwd, *arguments, **environment):
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("KFDYN_", "NUMBA_", "PYTHON"))}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=cwd,
        env=clean | environment,
        capture_output=True,
        encoding="utf-8",
    )


@pytest.fixture
def copied(tmp_path):
    """The package somewhere else, nothing of it compiled."""
    ignore = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc")
    shutil.copytree(Path(kfdyn.__file__).parent, tmp_path / "kfdyn", ignore=ignore)
    return tmp_path


def test_one_line_when_something_is_compiled_and_none_when_it_is_not(copied):
    cache = {"KFDYN_CACHE_DIR": str(copied / "cache")}
    first, second = (python(SMALL, copied, **cache) for _ in range(2))
    assert (first.returncode, first.stdout) == (second.returncode, second.stdout) == (0, "[0.75]\n")
    assert first.stderr == (
        f"kfdyn: compiling integrate for its first use on this machine; it is kept in {copied / 'cache'} "
        "(`kfdyn warm` compiles ahead of time)\n"
    )
    assert second.stderr == ""


def test_nothing_can_be_written(copied):
    """A file where a folder should be is as good as a read-only one: beside the sources, at home, in /tmp."""
    for folder in (copied / "kfdyn").rglob("*"):
        if folder.is_dir():
            (folder / "__pycache__").write_text("")
    (copied / "kfdyn" / "__pycache__").write_text("")
    nowhere = str(copied / "kfdyn" / "__pycache__" / "x")
    for _ in range(2):
        done = python(SMALL, copied, HOME=nowhere, XDG_CACHE_HOME=nowhere, KFDYN_CACHE_DIR=nowhere, TMPDIR=nowhere)
        assert (done.returncode, done.stdout) == (0, "[0.75]\n")
        assert (
            "for this process alone: there is no folder to keep it in" in done.stderr
            and "set KFDYN_CACHE_DIR" in done.stderr
        )
        assert done.stderr.count("\n") == 1


def test_an_interrupt_waits():
    done = []

    def load():
        with first_use.uninterrupted():
            signal.raise_signal(signal.SIGINT)
            done.append("the rest of the import")

    with pytest.raises(KeyboardInterrupt):
        load()
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    worker = threading.Thread(target=lambda: first_use.uninterrupted().__enter__())
    worker.start()  # where signals do not arrive, and handlers cannot be set
    worker.join()


INTERRUPTED = """
import signal, sys, kfdyn as kf, kfdyn.dynamics

def interrupt(event, arguments):
    if event == "import" and arguments[0] == sys.argv[1] and not done:
        done.append(event)
        signal.raise_signal(signal.SIGINT)

done = []
sys.addaudithook(interrupt)
try:
    kf.integrate(kf.models.pendulum(), [0.5], [0.25])
except KeyboardInterrupt:
    print("interrupted")
print(kf.integrate(kf.models.pendulum(), [0.5], [0.25]))
"""


@pytest.mark.parametrize(
    "module",
    [
        "kfdyn.sweeps.values",
        "llvmlite.binding",
        "llvmlite.binding.ffi",
        "llvmlite.ir.builder",
        "kfdyn.sweeps.compiler.driver",
        "kfdyn.multibody.recursions.outward",
    ],
)
def test_an_interrupt_while_the_compiler_is_loaded_leaves_it_whole(module):
    """At the moment when a module is asked for: a moment by the clock is another one on every machine."""
    done = python(INTERRUPTED, Path(kfdyn.__file__).parents[1], module)
    assert done.stdout == "interrupted\n[0.75]\n", done.stderr


def test_an_interrupt_while_the_processor_is_prepared_leaves_it_whole():
    prepared = """
import signal, kfdyn as kf, kfdyn.sweeps.compiler.driver as driver

def interrupted(prepare=driver.llvm.initialize_native_target):
    signal.raise_signal(signal.SIGINT)
    prepare()

driver.llvm.initialize_native_target = interrupted
try:
    kf.integrate(kf.models.pendulum(), [0.5], [0.25])
except KeyboardInterrupt:
    print("interrupted", len(driver._ready))
print(kf.integrate(kf.models.pendulum(), [0.5], [0.25]))
"""
    done = python(prepared, Path(kfdyn.__file__).parents[1])
    assert done.stdout == "interrupted 1\n[0.75]\n", done.stderr


@pytest.mark.slow
def test_what_was_warmed_is_not_compiled_again():
    for _, work in chores(couplings=True):
        work()
    code = "from kfdyn.cli.warm import chores\nfor _, work in chores(True): work()"
    assert python(code, Path(kfdyn.__file__).parents[1]).stderr == ""
