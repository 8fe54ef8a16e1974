"""Compiled code that is kept is never stale: after an edit, an upgrade in place, in two processes, without a place."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import kfdyn
from kfdyn.sweeps.compiler import cache

HERE = Path(kfdyn.__file__).parent

ASK = """
import numpy as np
from kfdyn.sample import scaled
out = np.ones(3)
scaled(out)
print(out[0])
"""
SWEEP = """
from kfdyn.sample_factor import factor
from kfdyn.sweeps import loop, sweep

@sweep
def scaled(x):
    for i in loop(x.size):
        x[i] = factor(x[i])
"""
FACTOR = "def factor(x):\n    return x * {0}\n"


def tree(place):
    """A copy of the package, with a sweep that calls what stands in another file."""
    copy = place / "site" / "kfdyn"
    shutil.copytree(HERE / "sweeps", copy / "sweeps", ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "__init__.py").write_text("__version__ = '0'\n")
    for needed in ("errors.py", "first_use.py", "lazy.py"):
        shutil.copy(HERE / needed, copy)
    (copy / "sample.py").write_text(SWEEP)
    (copy / "sample_factor.py").write_text(FACTOR.format("2.0"))
    return copy


def environment(copy, place):
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("KFDYN_", "PYTHON"))}
    return clean | {"PYTHONPATH": str(copy.parent), "KFDYN_CACHE_DIR": str(place / "cache")}


def run(copy, place, code=ASK, **more):
    env = {**environment(copy, place), **more}
    return subprocess.Popen([sys.executable, "-c", code], env=env, cwd=place, stdout=subprocess.PIPE, encoding="utf-8")


def answer(*args, **more):
    answered, _ = (process := run(*args, **more)).communicate()
    assert process.returncode == 0
    return float(answered)


def told(copy, place, code=ASK, **more):
    """The answer, and what was said on the standard error stream."""
    env = {**environment(copy, place), **more}
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=place, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return float(done.stdout), done.stderr


def test_an_edit_is_seen_at_once(tmp_path):
    copy = tree(tmp_path)
    assert answer(copy, tmp_path) == 2
    files = set((tmp_path / "cache").iterdir())
    assert len(files) == 1
    assert answer(copy, tmp_path) == 2
    assert set((tmp_path / "cache").iterdir()) == files  # nothing was compiled again
    before = (copy / "sample_factor.py").stat()
    (copy / "sample_factor.py").write_text(FACTOR.format("3.0"))
    os.utime(copy / "sample_factor.py", ns=(before.st_atime_ns, before.st_mtime_ns))  # as unpacked files may have it
    shutil.rmtree(copy / "__pycache__", ignore_errors=True)
    assert answer(copy, tmp_path) == 3
    (copy / "sample_factor.py").write_text(FACTOR.format("2.0"))  # and back: the old code is right again
    shutil.rmtree(copy / "__pycache__", ignore_errors=True)
    assert answer(copy, tmp_path) == 2
    assert len(set((tmp_path / "cache").iterdir())) == 2


def test_an_upgrade_in_place_is_seen_at_once(tmp_path):
    """Another version of the language itself, over the old one, with the same sample on top."""
    copy = tree(tmp_path)
    assert answer(copy, tmp_path) == 2
    values = copy / "sweeps" / "values.py"
    text = values.read_text(encoding="utf-8")
    edited = text.replace('return self._binary(other, "fmul", "mul")', 'return self._binary(other, "fadd", "mul")')
    assert edited != text
    shutil.rmtree(copy / "sweeps")
    shutil.copytree(HERE / "sweeps", copy / "sweeps", ignore=shutil.ignore_patterns("__pycache__"))
    values.write_text(edited, encoding="utf-8")
    assert answer(copy, tmp_path) == 3  # 1 + 2


def edit_unseen(file, text):
    """Another text of the same size and the same time, as two edits within a second are."""
    before = file.stat()
    file.write_text(text)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


@pytest.mark.parametrize("first", ["the old process", "the new one"])
def test_a_process_that_has_imported_what_is_edited_then_neither_takes_nor_leaves_code(tmp_path, first):
    copy = tree(tmp_path)
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    code, env = ASK.replace("out =", "print(flush=True)\ninput()\nout ="), environment(copy, tmp_path)
    old = subprocess.Popen([sys.executable, "-c", code], env=env, cwd=tmp_path, encoding="utf-8", **pipes)
    assert old.stdout.readline() == "\n"
    (copy / "sample_factor.py").write_text(FACTOR.format("3.00"))  # of another size, so that Python sees it, too
    if first == "the new one":
        assert answer(copy, tmp_path) == 3
    answered, said = old.communicate("\n")
    assert float(answered) == 2
    assert said == (
        "kfdyn: compiling scaled for this process alone: files of kfdyn have changed since it was imported, "
        "so begin a new process\n"
    )
    assert answer(copy, tmp_path) == answer(copy, tmp_path) == 3
    assert len(list((tmp_path / "cache").iterdir())) == 1


@pytest.mark.parametrize("file", ["sample_factor.py", "sample.py"])
def test_what_python_itself_takes_from_an_old_translation_is_not_kept_as_the_new_one(tmp_path, file):
    """The number stands in a function, or beside one."""
    copy = tree(tmp_path)
    text = {"sample_factor.py": FACTOR.format("2.0"), "sample.py": f"{SWEEP}\n        x[i] *= MORE\n\nMORE = 1.0\n"}[
        file
    ]
    (copy / file).write_text(text)
    assert answer(copy, tmp_path) == 2
    edit_unseen(copy / file, text.replace("2.0", "3.0").replace("1.0", "1.5"))
    assert answer(copy, tmp_path) == 2  # Python has not seen the edit
    shutil.rmtree(copy / "__pycache__")
    assert answer(copy, tmp_path) == answer(copy, tmp_path) == 3


def test_a_number_that_somebody_has_put_there_is_in_the_name(tmp_path):
    copy = tree(tmp_path)
    (copy / "sample_factor.py").write_text("FACTOR = 2.0\n\n\ndef factor(x):\n    return x * FACTOR\n")
    changed = ASK.replace("out =", "import kfdyn.sample_factor\nkfdyn.sample_factor.FACTOR = 5.0\nout =")
    assert [answer(copy, tmp_path, code) for code in (changed, ASK, changed)] == [5, 2, 5]


def test_files_from_the_future_are_kept_and_their_edits_seen(tmp_path):
    """As a clock that was ahead, or an archive, may leave them: else nothing would be kept until that date."""
    copy = tree(tmp_path)
    file = copy / "sample_factor.py"
    os.utime(file, (2**32, 2**32))
    assert answer(copy, tmp_path) == 2
    (kept,) = (tmp_path / "cache").iterdir()
    before = kept.stat()
    assert told(copy, tmp_path) == (2, "")
    assert kept.stat().st_mtime_ns == before.st_mtime_ns
    edit = f"import os, pathlib\nfile = pathlib.Path({str(file)!r})\nfile.write_text({FACTOR.format('3.00')!r})\n"
    code = ASK.replace("out =", f"{edit}os.utime(file, (2**32, 2**32))\nout =")
    answered, said = told(copy, tmp_path, code)
    assert answered == 2 and "files of kfdyn have changed" in said
    assert list((tmp_path / "cache").iterdir()) == [kept]


def test_what_is_compiled_is_named_and_why_again(tmp_path):
    copy = tree(tmp_path)
    kept = f"it is kept in {tmp_path / 'cache'} (`kfdyn warm` compiles ahead of time)\n"
    assert told(copy, tmp_path) == (2, f"kfdyn: compiling scaled for its first use on this machine; {kept}")
    assert told(copy, tmp_path) == (2, "")
    (copy / "sample_factor.py").write_text(FACTOR.format("3.00"))
    assert told(copy, tmp_path) == (3, f"kfdyn: compiling scaled again, since kfdyn or NumPy has changed; {kept}")


needs_root = pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only root gives files away")
SOMEBODY = 54321


def give_away(path):
    os.chown(path, SOMEBODY, SOMEBODY)


def open_to_all(path):
    path.chmod(0o777)


def open_to_the_group(path):
    path.chmod(0o775)


@pytest.mark.parametrize(
    ("whose", "reason"),
    [
        (open_to_all, "can be written by others: `chmod go-w` it"),
        (open_to_the_group, "can be written by others: `chmod go-w` it"),
        pytest.param(give_away, f"belongs to another user (uid {SOMEBODY}): set KFDYN_CACHE_DIR", marks=needs_root),
    ],
)
def test_a_folder_of_others_is_not_used_and_one_line_says_so(tmp_path, whose, reason):
    """What is in it would be run."""
    copy, place = tree(tmp_path), tmp_path / "cache"
    assert answer(copy, tmp_path) == 2
    (kept,) = place.iterdir()
    before = kept.stat()
    whose(place)
    for _ in range(2):
        answered, said = told(copy, tmp_path)
        assert answered == 2 and said.count("\n") == 1
        assert f"compiling scaled for this process alone: {place} is not used, since it {reason}" in said
    assert list(place.iterdir()) == [kept] and kept.stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.parametrize("whose", [open_to_all, pytest.param(give_away, marks=needs_root)])
def test_a_file_of_others_is_not_run_but_replaced(tmp_path, whose):
    copy = tree(tmp_path)
    assert answer(copy, tmp_path) == 2
    (kept,) = (tmp_path / "cache").iterdir()
    whose(kept)
    assert "compiling scaled" in told(copy, tmp_path)[1]
    assert (kept.stat().st_uid, kept.stat().st_mode & 0o777) == (os.geteuid(), 0o644)
    assert told(copy, tmp_path) == (2, "")


def test_code_under_another_name_is_not_run(tmp_path):
    """Sound, and of this user, but not what was asked for."""
    copy = tree(tmp_path)
    assert answer(copy, tmp_path) == 2
    (old,) = (tmp_path / "cache").iterdir()
    (copy / "sample_factor.py").write_text(FACTOR.format("3.00"))
    assert answer(copy, tmp_path) == 3
    (new,) = set((tmp_path / "cache").iterdir()) - {old}
    new.write_bytes(old.read_bytes())
    assert answer(copy, tmp_path) == 3


@needs_root
def test_what_root_has_compiled_serves_another_user_who_cannot_write():
    """An image that was warmed. What is imported is imported before: Python itself may be where only root can look."""
    with tempfile.TemporaryDirectory() as somewhere:
        place = Path(somewhere)
        place.chmod(0o755)
        copy = tree(place)
        assert answer(copy, place) == 2
        (kept,) = (place / "cache").iterdir()
        become = f"os.setgroups([])\nos.setgid({SOMEBODY})\nos.setuid({SOMEBODY})\n"
        load = "import os\nfrom kfdyn.sweeps.compiler import cache, driver\ncache.digest('kfdyn.sample')\n"
        theirs = ASK.replace("out =", f"{load}{become}out =")
        assert told(copy, place, theirs, PYTHONDONTWRITEBYTECODE="1") == (2, "")
        kept.unlink()
        answered, said = told(copy, place, theirs, PYTHONDONTWRITEBYTECODE="1")
        assert answered == 2 and not list((place / "cache").iterdir())
        assert f"for this process alone: {place / 'cache'} cannot be written; set KFDYN_CACHE_DIR" in said


def test_from_an_archive(tmp_path):
    copy = tree(tmp_path)
    archive = Path(shutil.make_archive(str(tmp_path / "site"), "zip", copy.parent))
    for _ in range(2):
        assert answer(archive / "kfdyn", tmp_path) == 2
        assert len(list((tmp_path / "cache").iterdir())) == 1


def test_a_full_disk_is_told(tmp_path):
    pytest.importorskip("resource")
    full = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n" + ASK
    env = environment(tree(tmp_path), tmp_path)
    done = subprocess.run([sys.executable, "-c", full], env=env, cwd=tmp_path, capture_output=True, encoding="utf-8")
    assert (done.returncode, float(done.stdout)) == (0, 2), done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"kfdyn: what was compiled cannot be kept in {tmp_path / 'cache'} (File too large): every")
    assert not list((tmp_path / "cache").iterdir())


def test_two_processes_at_once(tmp_path):
    copy = tree(tmp_path)
    both = [run(copy, tmp_path) for _ in range(2)]
    assert [float(process.communicate()[0]) for process in both] == [2, 2]
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".o"]


def test_no_place_to_write_and_a_damaged_file(tmp_path, monkeypatch):
    copy = tree(tmp_path)
    (tmp_path / "cache").write_text("a file stands where the folder should")
    assert answer(copy, tmp_path) == 2
    (tmp_path / "cache").unlink()
    home = tmp_path / "home"
    assert answer(copy, tmp_path, KFDYN_CACHE_DIR="", XDG_CACHE_HOME=str(home)) == 2  # the installation is not touched
    (file,) = (home / "kfdyn").iterdir()
    file.write_bytes(file.read_bytes()[:-9] + b"nonsense!")
    assert answer(copy, tmp_path, KFDYN_CACHE_DIR="", XDG_CACHE_HOME=str(home)) == 2
    assert not list(copy.rglob("*.o")) and not list(copy.rglob("*.nbi"))


def test_the_closure_is_all_that_is_imported():
    found = cache.closure("kfdyn.sweeps.jit")
    assert {
        "kfdyn.sweeps.jit",
        "kfdyn.sweeps.values",
        "kfdyn.sweeps.compiler.driver",
        "kfdyn.sweeps.compiler.wrapper",
    } <= found
    assert not {name for name in found if not name.startswith("kfdyn.")}


@pytest.mark.parametrize("fact", [("x",), ("x", 1), (("x", 1),)])
def test_every_fact_is_in_the_name(fact):
    names = {cache.digest("kfdyn.sweeps.algebra", *f) for f in (fact, (), ("y",))}
    assert len(names) == 3


def test_what_others_write_is_kept_nowhere(tmp_path):
    """A function made in another takes a number along that no source tells: each has code of its own."""
    (tmp_path / "theirs.py").write_text(
        "from kfdyn.sweeps import loop, sweep\n\n\n"
        "def scaling(c):\n"
        "    @sweep\n"
        "    def scaled(s):\n"
        "        for k in loop(s.size):\n"
        "            s[k] = c * s[k]\n"
        "    return scaled\n"
    )
    code = (
        "import numpy as np, theirs\n"
        "for c in (2.0, 3.0):\n"
        "    x = np.ones(2)\n"
        "    theirs.scaling(c)(x)\n"
        "    print(x[0])\n"
    )
    kept = tmp_path / "kept"
    env = os.environ | {"KFDYN_CACHE_DIR": str(kept), "PYTHONPATH": f"{tmp_path}{os.pathsep}{HERE.parent}"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.split() == ["2.0", "3.0"]
    assert not list(kept.glob("*.o"))
