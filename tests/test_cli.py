"""The command line as a user calls it: what it says, what it writes, what it returns, and that its checks can fail."""

import contextlib
import functools
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading

import numpy as np
import pinocchio as pin
import pytest
from rich.cells import cell_len
from rich.console import Console

import kfdyn as kf
from kfdyn import cli
from kfdyn.cli import bench
from kfdyn.cli.demo import arm, nile, robot
from kfdyn.cli.robots import count, join_numbers
from kfdyn.duality.peers import ask_peers

LINK = (
    '<link name="{}"><inertial><origin xyz="0.1 -0.2 0.3" rpy="0.3 -0.5 0.7"/><mass value="{}"/>'
    '<inertia ixx="0.5" ixy="0.02" ixz="-0.03" iyy="0.6" iyz="0.01" izz="0.4"/></inertial></link>'
)
JOINT = (
    '<joint name="{}" type="{}"><parent link="{}"/><child link="{}"/><axis xyz="{}"/>'
    '<origin xyz="0.3 0.1 -0.2" rpy="0.2 0.4 -0.6"/><limit lower="-2" upper="2" effort="9" velocity="9"/></joint>'
)
URDF = "\n".join(
    [
        '<robot name="[/red]tree:smile:">',  # what a console could take for its own marks
        *(LINK.format(name, mass) for name, mass in (("base", 3), ("arm", 2), ("slider", 1.5), ("hand", 0.5))),
        # Pinocchio sorts joints by name: its order is not the file's
        JOINT.format("turn", "continuous", "base", "arm", "0 0.6 0.8"),
        JOINT.format("slide", "prismatic", "arm", "slider", "0 0 1"),
        JOINT.format("grip", "continuous", "arm", "hand", "1 0 0"),
        "</robot>",
    ]
)
MJCF = """<mujoco model="bird"><worldbody><body name="trunk" pos="0 0 1"><freejoint name="root"/>
<geom type="box" size="0.1 0.2 0.3"/><body name="wing" pos="0 0.2 0">
<joint name="flap" axis="1 0 0" armature="0.1" ref="0.2"/>
<geom type="box" size="0.2 0.3 0.02" pos="0 0.3 0"/><body name="tip" pos="0 0.6 0"><joint name="fold" type="ball"/>
<geom type="box" size="0.1 0.2 0.02" pos="0 0.2 0"/></body></body></body></worldbody></mujoco>"""


@pytest.fixture
def files(tmp_path):
    """A folder with a robot in both formats."""
    (tmp_path / "tree.urdf").write_text(URDF)
    (tmp_path / "bird.xml").write_text(MJCF)
    return tmp_path


def kfdyn(*argv, cwd=None, **environment):
    """Run a command as a user does, a warning being an error."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "kfdyn", *map(str, argv)],
        env=os.environ | environment,
        capture_output=True,
        encoding="utf-8",
        cwd=cwd,
    )


@pytest.fixture(scope="module", autouse=True)
def fonts():
    """Matplotlib's list of fonts, made here: a command that needs five seconds to make it says so among its errors."""
    import matplotlib.font_manager  # noqa: F401


# --- demo


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """One run of the demo, piped to a reader without Greek letters: the process and its folder."""
    folder = tmp_path_factory.mktemp("demo")
    out = folder / "new" / "figures"
    return kfdyn("demo", "--output", out, cwd=folder, PYTHONIOENCODING="ascii", TERM="xterm-256color"), out


def test_demo_passes_its_checks(shown):
    done, _ = shown
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("holds") == 7
    assert "FAILS" not in done.stdout
    assert "-641.58558" in done.stdout


def test_demo_ends_with_a_robot(shown):
    done, _ = shown
    slide = done.stdout[done.stdout.index("PUMA 560 as a random process: 200,000 samples") :]
    for words in ("output co-state", "joint acceleration", "filterpy", "operator identities", "PASSED: "):
        assert words in slide
    assert "REJECTED" not in slide


def test_demo_pipes_plain_text(shown):
    done, _ = shown
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines()[:-1])) <= 120  # the last line names the files
    assert done.stderr == ""


def test_demo_writes_its_figures_and_names_them(shown):
    done, folder = shown
    assert sorted(path.name for path in folder.iterdir()) == ["arm.png", "nile.png", "puma560"]
    assert {"cross_check.png", "inverse.png", "convergence.png"} <= {
        path.name for path in (folder / "puma560").iterdir()
    }
    for path in folder.rglob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
    assert all(str(path) in done.stdout for path in folder.iterdir())


def failed(show, tmp_path):
    """How many of the claims fail."""
    return sum(not check.passed for check in show(Console(file=io.StringIO()), tmp_path / "figure.png"))


def test_a_wrong_model_fails_the_demo(tmp_path, monkeypatch):
    assert failed(nile.show_nile, tmp_path) == 0
    monkeypatch.setattr(nile, "NILE_Q", 1600.0)  # far enough: the likelihood is flat at the published maximum
    assert failed(nile.show_nile, tmp_path) == 1


def test_a_wrong_inverse_fails_the_demo(tmp_path, monkeypatch):
    right = kf.InnovationsFactor.inverse

    def wrong(self):
        out = right(self)
        out[0, -1] += 1e-9 * np.sqrt(out[0, 0] * out[-1, -1])
        return out

    assert failed(arm.show_arm, tmp_path) == 0
    monkeypatch.setattr(kf.InnovationsFactor, "inverse", wrong)
    assert failed(arm.show_arm, tmp_path) == 1


def test_wrong_samples_fail_the_demo(tmp_path, monkeypatch):
    right = kf.InnovationsFactor.solve
    monkeypatch.setattr(kf.InnovationsFactor, "solve", lambda self, T: 1.02 * right(self, T))
    assert failed(arm.show_arm, tmp_path) == 1


@pytest.mark.parametrize("broken", ["arm", "robot"])
def test_one_failure_is_the_demos(broken, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(robot, "SAMPLES", 2000)
    monkeypatch.setattr(robot, "save_figures", lambda report, folder: [])
    if broken == "arm":
        monkeypatch.setattr(nile, "NILE_LLF", -641.6)
    else:
        right = kf.cross_check
        monkeypatch.setattr(  # the samples come from a robot that moves twice as fast
            kf, "cross_check", lambda s, q, v, **k: right(s, q, v, truth=kf.as_estimation(s, q, 2 * v), **k)
        )
    assert cli.main(["demo", "--output", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert ("FAILS" in said, "REJECTED" in said) == (broken == "arm", broken == "robot")


def test_the_arm_is_the_robot_it_says():
    """Its output covariance is the mass matrix that Pinocchio finds for the same hinges and rods."""
    model = pin.Model()
    joints = {"x": pin.JointModelRX, "y": pin.JointModelRY, "z": pin.JointModelRZ}
    ids = {-1: 0}
    for k, (name, parent, axis, lever, rod, mass) in enumerate(arm.ARM):
        ids[k] = model.addJoint(ids[parent], joints[axis](), pin.SE3(np.eye(3), np.array(lever)), name)
        rod = np.array(rod)
        about_centre = mass * ((rod @ rod * np.eye(3) - np.outer(rod, rod)) / 12 + 0.03**2 * np.eye(3))
        model.appendBodyToJoint(ids[k], pin.Inertia(mass, rod / 2, about_centre), pin.SE3.Identity())
    expected = pin.crba(model, model.createData(), np.zeros(model.nv))
    expected = np.triu(expected) + np.triu(expected, 1).T
    order = [model.joints[ids[k]].idx_v for k in range(len(arm.ARM))]
    ours = np.linalg.inv(kf.innovations_factor(kf.StateSpace(*arm.arm_blocks())).inverse())
    np.testing.assert_allclose(ours, expected[np.ix_(order, order)], rtol=1e-11, atol=1e-13)


# --- check


def test_check_prints_json_alone(files):
    done = kfdyn(
        "check", files / "tree.urdf", "--samples", "2e3", "--json", "--seed", 3, "--q", -0.5, "1e-1,-.3", "--v", "zero"
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    report = json.loads(done.stdout)
    assert report["passed"]
    assert report["title"] == "[/red]tree:smile:"
    assert (report["samples"], report["requested"], report["seed"]) == (2000, 2000, 3)
    assert (report["q"], report["v"]) == ([-0.5, 0.1, -0.3], [0.0, 0.0, 0.0])
    gaps = {party["name"]: party["gap"] for party in report["parties"]}
    assert gaps["Pinocchio"] < 1e-12


def test_check_prints_tables_and_writes_figures(files):
    done = kfdyn("check", "bird.xml", "--samples", 2000, "--figures", "deep/er", cwd=files, COLUMNS="80", NO_COLOR="1")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert "bird as a random process: 2,000 samples" in done.stdout
    assert re.search(r"MuJoCo .*gap \de-1\d", done.stdout)
    tables, _, named = done.stdout.rpartition("Figures: ")
    assert max(map(cell_len, tables.splitlines())) <= 80
    assert all((files / name).read_bytes().startswith(b"\x89PNG") for name in named.strip().split(", "))


def test_check_repeats_itself(files, capsys):
    said = []
    for _ in range(2):
        assert cli.main(["check", str(files / "tree.urdf"), "--floating-base", "--samples", "500", "--json"]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert len(json.loads(said[0])["v"]) == 9


def test_check_rejects(files, monkeypatch, capsys):
    """A peer that says otherwise by one in a million."""

    def wrong(*args):
        answers, notes = ask_peers(*args)
        return [answer._replace(inverse=answer.inverse * (1 + 1e-6)) for answer in answers], notes

    monkeypatch.setattr("kfdyn.duality.independent_checks.ask_peers", wrong)
    assert cli.main(["check", str(files / "tree.urdf"), "--samples", "500"]) == 1
    said = capsys.readouterr().out
    assert "REJECTED" in said
    assert "Pinocchio: 𝓜⁻¹ of tree.urdf differs by 1.0e-06" in " ".join(said.split())
    assert cli.main(["check", str(files / "tree.urdf"), "--samples", "500", "--json"]) == 1
    assert not json.loads(capsys.readouterr().out)["passed"]


@pytest.mark.parametrize(("name", "floating"), [("tree.urdf", False), ("tree.urdf", True), ("bird.xml", False)])
def test_peers_agree(files, name, floating):
    """Each in its own coordinates: other orders, cosines for angles, linear before angular, world axes."""
    file = str(files / name)
    system = kf.load(file, floating_base=floating)
    q = system.random_configuration(7)
    ((peer, source, inverse),), notes = ask_peers(system, q)
    assert not notes
    assert (peer, source) == ("MuJoCo" if name == "bird.xml" else "Pinocchio", name)
    expected = np.linalg.inv(kf.mass_matrix(system, q))
    np.testing.assert_allclose(inverse, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_a_peer_that_cannot_read_the_file_is_named(files, capsys, monkeypatch):
    def refuse(*args):
        raise ValueError("I cannot")

    monkeypatch.setattr(pin, "buildModelFromUrdf", refuse)
    assert cli.main(["check", str(files / "tree.urdf"), "--samples", "500"]) == 0
    assert capsys.readouterr().err == "kfdyn: warning: Pinocchio was not asked: I cannot\n"


def test_check_interrupted_keeps_what_was_done():
    """Ctrl-C once the bar shows a rate: the report is on the samples so far, and says so."""
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "kfdyn", "check", "builtin:double_pendulum", "--samples", "1e10"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=end, encoding="utf-8", start_new_session=True)
    os.close(end)
    shown, rate = b"", threading.Event()

    def watch():  # to the end: a terminal that nobody reads is full after some frames, and who writes there waits
        nonlocal shown
        with contextlib.suppress(OSError):  # how Linux says that the other end is closed
            while piece := os.read(terminal, 4096):
                shown += piece
                if re.search(rb"\d/s", shown):
                    rate.set()
        rate.set()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        rate.wait()
        run.send_signal(signal.SIGINT)
        out, _ = run.communicate(timeout=1200)
    finally:
        run.kill()
    watcher.join()
    os.close(terminal)
    out = " ".join(out.split())
    assert re.search(r"interrupted after [\d,]+ of 10,000,000,000 samples", out)
    assert "PASSED" not in out
    # how many samples they were is chance, and so, once in a thousand runs, is the verdict
    assert run.returncode == (130 if "PARTIAL" in out else 1)
    assert ("PARTIAL" in out) != ("REJECTED" in out)


# --- info, identities, dictionary, bench


def test_info_tells_the_file(files):
    done = kfdyn("info", files / "tree.urdf", "--floating-base")
    assert done.returncode == 0
    assert done.stdout == kf.describe(kf.load(files / "tree.urdf", floating_base=True)) + "\n"
    assert "4 bodies, 9 dofs" in done.stdout


def test_names_do_not_steer_the_terminal(files, capsys):
    file = files / "rude.urdf"
    file.write_text(URDF.replace('"slider"', '"slider&#x9b;31m"'))
    assert cli.main(["info", str(file)]) == 0
    said = capsys.readouterr().out
    assert "\x9b" not in said
    assert "slider\ufffd31m" in said


def test_identities_hold_on_a_robot(files, capsys):
    done = kfdyn("identities", files / "tree.urdf", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "PASSED: 34 identities hold to" in done.stdout
    assert cli.main(["identities", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["robot"] == "PUMA 560"
    assert len(found["identities"]) == 29  # the PUMA has rotors, R > 0
    assert max(one["residual"] for one in found["identities"].values()) < 1e-13


def test_an_identity_that_fails_is_named(capsys, monkeypatch):
    from kfdyn.duality import IDENTITIES

    wrong = functools.partial(lambda symbols: 2e-9)
    monkeypatch.setitem(IDENTITIES, "trace", type(IDENTITIES["trace"])("trace", "tr", "SKO:trace", wrong))
    assert cli.main(["identities", "builtin:pendulum"]) == 1
    assert "REJECTED: residual above 1e-09 in trace." in capsys.readouterr().out


def test_dictionary_without_a_robot(capsys):
    from kfdyn.duality.dictionary import DICTIONARY

    assert cli.main(["dictionary"]) == 0
    said = capsys.readouterr().out
    assert "articulated body inertia" in said
    assert "this robot" not in said
    assert all(entry.symbol in said for entry in DICTIONARY)


def test_dictionary_is_filled_with_the_robots_numbers(capsys):
    """Hanging from its upper link at rest, the double pendulum's lower link: D = m l², T = 0."""
    argv = ["dictionary", "builtin:double_pendulum", "--q", "neutral", "--v", "zero", "--body", "lower"]
    assert cli.main(argv) == 0
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in capsys.readouterr().out.splitlines()]
    found = {row[0]: row[-1] for row in rows if row}
    assert (found["D"], found["T(k)"]) == ("1", "0")
    # massless rods, point masses at their ends: 𝓜⁻¹ of the straight pendulum is [[1, −2], [−2, 5]]
    assert found["𝓜⁻¹"] == "5"


def test_bench_hands_over(capfd):
    assert cli.main(["bench", "juggling"]) == 2
    assert "no part 'juggling'; there are engine" in capfd.readouterr().err


def test_bench_passes_its_options_on(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(
        bench.subprocess, "run", lambda command, **k: seen.append(command) or subprocess.CompletedProcess(command, 0)
    )
    monkeypatch.chdir(tmp_path)
    assert cli.main(["bench", "engine", "--quick", "--output", "here"]) == 0
    assert seen[0][2:] == ["benchmarks", "engine", "--quick", "--output", str(tmp_path / "here")]


def test_bench_without_a_checkout(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(kf, "__file__", str(tmp_path / "kfdyn" / "__init__.py"))
    assert cli.main(["bench"]) == 2
    assert "in a checkout: make bench" in capsys.readouterr().err


# --- usage and bad input


@pytest.mark.parametrize(
    ("argv", "status"),
    [
        ([], 0),
        (["dance"], 2),
        (["demo", "--colour"], 2),
        (["check"], 2),
        (["check", "builtin:pendulum", "--samples", "1.5"], 2),
        (["check", "builtin:pendulum", "--seed", "-1"], 2),
        (["--version"], 0),
        (["-h"], 0),
        *([[command, "-h"], 0] for command in ("demo", "check", "info", "identities", "dictionary", "warm", "bench")),
    ],
    ids=str,
)
def test_usage(argv, status, capsys):
    assert cli.main(argv) == status
    said = capsys.readouterr()
    assert "kfdyn" in (said.err if status else said.out)
    if argv[-1:] == ["-h"]:
        assert "examples:\n  kfdyn " in said.out


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ("info missing.urdf", "missing.urdf: No such file"),
        ("info .", "not a regular file"),
        ("info puma560", "the built-in robot is builtin:puma560"),
        ("info builtin:puma", "built in are chain, "),
        ("info builtin:chain", "should be builtin:chain:BODIES[:SEED]"),
        ("info builtin:chain:2:3:4", "should be builtin:chain:BODIES[:SEED]"),
        ("info builtin:chain:x", "should be builtin:chain:BODIES[:SEED]"),
        ("info builtin:puma560:3", "should be builtin:puma560"),
        ("info builtin:chain:0", "0"),
        ("info builtin:puma560 --floating-base", "--floating-base is for URDF files"),
        ("info broken.urdf", "broken.urdf:2"),
        ("check bird.xml --floating-base", "freejoint"),
        ("check builtin:puma560 --q 1 2", "--q has 2 numbers, but 'PUMA 560' takes 6: joint_1, joint_2"),
        ("check builtin:free_flyer --q 1", "(7)"),
        ("check builtin:puma560 --v bent", "give 6 numbers, 'zero' or 'random'"),
        ("check builtin:pendulum --q nan", "not finite"),
        ("check builtin:puma560 --samples 5", "give at least 36"),
        ("check builtin:pendulum --figures tree.urdf", "tree.urdf: File exists"),
        ("demo --output tree.urdf", "tree.urdf: File exists"),
        ("check weightless.urdf --samples 100", "hinge 'grip': nothing outboard of it has mass"),
        ("identities weightless.urdf", "hinge 'grip': nothing outboard of it has mass"),
        ("dictionary weightless.urdf", "hinge 'grip': nothing outboard of it has mass"),
        ("identities builtin:chain:600", "up to 500 bodies"),
        ("dictionary --body arm", "name the robot too"),
        ("dictionary builtin:puma560 --body arm", "no body 'arm'"),
    ],
)
def test_bad_input_is_told_in_one_line(argv, words, files, monkeypatch, capsys):
    (files / "broken.urdf").write_text("<robot name='x'>\n<link name='a'></robot>")
    (files / "weightless.urdf").write_text(URDF.replace(LINK.format("hand", 0.5), '<link name="hand"/>'))
    monkeypatch.chdir(files)
    assert cli.main(argv.split()) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("kfdyn: ")
    assert words in said.err
    assert said.err.count("\n") == 1


def test_bad_input_ends_the_process_with_2():
    done = kfdyn("check", "missing.urdf")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "kfdyn: missing.urdf: No such file or directory\n"


def test_a_reader_that_stops_reading():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "kfdyn", "info", "builtin:humanoid"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, encoding="utf-8")
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("command", [["check", "builtin:pendulum", "--samples", "100"], ["dictionary"], ["identities"]])
def test_a_reader_that_stops_reading_tables(command, monkeypatch):
    """As in ``kfdyn check | head``: rich, left to itself, would exit with 1, which is "rejected"."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", encoding="utf-8") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert cli.main([*command, "builtin:pendulum"] if command == ["identities"] else command) == 141
        monkeypatch.undo()


@pytest.mark.parametrize(("file", "status"), [("builtin:pendulum", 0), ("missing.urdf", 2)])
@pytest.mark.parametrize("closed", [(1,), (2,), (1, 2)])
def test_streams_that_were_closed(file, status, closed):
    """As in ``kfdyn info robot.urdf >&- 2>&-``: who asks for the exit status alone gets it."""
    without = " ".join(f"{stream}>&-" for stream in closed)
    command = f'exec "$0" -m kfdyn info "$1" {without}'
    done = subprocess.run(["sh", "-c", command, sys.executable, file], capture_output=True)
    assert done.returncode == status
    assert b"Traceback" not in done.stdout + done.stderr


def test_an_error_of_our_own_is_no_rejection(monkeypatch, capsys):
    def fail(*args, **kwargs):
        raise ZeroDivisionError("nobody thought of it")

    monkeypatch.setattr("kfdyn.io.describe", fail)
    assert cli.main(["info", "builtin:pendulum"]) == 70
    said = capsys.readouterr().err
    assert "nobody thought of it" in said and "please report it" in said


def test_kfdyn_alone_prints_its_help(capsys):
    assert cli.main([]) == 0
    assert "commands:" in capsys.readouterr().out


def test_check_takes_a_claimed_inverse(files, capsys, tmp_path):
    """Right as .npy (an upper triangle of float32 too) and as text; 30 % off in one entry, it is found and named."""
    system = kf.load(files / "tree.urdf")
    inverse = kf.mass_matrix_inverse(system, system.neutral())
    np.save(tmp_path / "right.npy", np.triu(inverse).astype(np.float32))
    np.savetxt(tmp_path / "right.csv", inverse, delimiter=",")
    np.save(tmp_path / "mass.npy", kf.mass_matrix(system, system.neutral()))
    wrong = inverse.copy()
    wrong[0, 1] = wrong[1, 0] = wrong[0, 1] + 0.3 * np.sqrt(inverse[0, 0] * inverse[1, 1])
    np.save(tmp_path / "wrong.npy", wrong)
    base = ["check", str(files / "tree.urdf"), "--q", "neutral", "--samples", "4000"]
    assert cli.main([*base, "--minv", str(tmp_path / "right.npy")]) == 0
    assert "𝓜⁻¹ as claimed (upper triangle, float32) was tested by samples of a" in capsys.readouterr().out
    assert cli.main([*base, "--minv", str(tmp_path / "right.csv"), "--mass-matrix", str(tmp_path / "mass.npy")]) == 0
    assert cli.main([*base, "--minv", str(tmp_path / "wrong.npy")]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "REJECTED" in said
    assert re.search(r"single entry of a: p = \S+ after Holm \(entry \(turn, slide\) should differ by", said)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--minv", "mine.npy"], "--minv is of one configuration; say which by --q"),
        (["--q", "neutral", "--minv", "none.npy"], "none.npy: No such file"),
        (["--q", "neutral", "--minv", "tree.urdf"], "holds no matrix of numbers"),
        (["--q", "neutral", "--minv", "mine.npy"], "has shape (2, 2), but the model's is (3, 3)"),
    ],
)
def test_bad_matrices_are_told_in_one_line(argv, words, files, monkeypatch, capsys):
    monkeypatch.chdir(files)
    np.save("mine.npy", np.eye(2))
    assert cli.main(["check", "tree.urdf", "--samples", "500", *argv]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_interrupted(monkeypatch, capsys):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("kfdyn.io.describe", interrupt)
    assert cli.main(["info", "builtin:pendulum"]) == 130
    assert capsys.readouterr().err == "kfdyn: interrupted\n"


@pytest.mark.parametrize(
    ("argv", "joined"),
    [
        ("check --q -1 2e-3 FILE", "check --q=-1,2e-3 FILE"),
        ("check FILE --q -1e-3,2, .5 --v 1. -2 --json", "check FILE --q=-1e-3,2,.5 --v=1.,-2 --json"),
        ("check FILE --q random --v", "check FILE --q random --v"),
        ("check 12 --q=3 4", "check 12 --q=3 4"),
    ],
)
def test_numbers_are_not_options(argv, joined):
    assert join_numbers(argv.split()) == joined.split()


def test_counts():
    assert [count(text) for text in ("0", "1e6", "1_000", "20.0")] == [0, 10**6, 1000, 20]


def test_the_command_line_loads_nothing_heavy():
    code = "import sys, kfdyn.cli; print(*{'rich', 'matplotlib', 'llvmlite', 'scipy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == ""
